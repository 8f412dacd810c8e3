"""The filter against filterpy (an independent implementation) and against mathematics."""

from __future__ import annotations

import numpy as np
import pytest
from filterpy.common import Q_continuous_white_noise
from filterpy.kalman import ExtendedKalmanFilter, KalmanFilter
from hypothesis import given
from hypothesis import strategies as st

from mmedge_ros.core.data_types import Box
from mmedge_ros.tracking.kalman_filter import (
    BoxNoise,
    BoxState,
    RateNoise,
    RateSpread,
    box_values,
    inverse_3,
    mixture,
    predict,
    predict_boxes,
    radial_velocity,
    start_box,
    update_boxes,
    update_position,
    update_scalar,
    weighted_square,
)

ACCELERATION = np.array([1.5, 1.0, 0.3])
POSITION = np.eye(3, 6)


def transition(dt: float) -> np.ndarray:
    return np.kron([[1.0, dt], [0.0, 1.0]], np.eye(3))


def process_noise(dt: float) -> np.ndarray:
    """White acceleration of ``ACCELERATION`` by filterpy, which orders x, vx, y, vy, z, vz."""
    noise = np.zeros((6, 6))
    for axis, deviation in enumerate(ACCELERATION):
        places = np.ix_([axis, axis + 3], [axis, axis + 3])
        noise[places] = Q_continuous_white_noise(2, dt, deviation**2)
    return noise


def random_covariance(random: np.random.Generator, size: int) -> np.ndarray:
    root = random.normal(size=(size, size))
    return root @ root.T + 0.1 * np.eye(size)


def updated_by_doppler(mean, covariance, origin, velocity, variance):
    """States (..., 6) corrected by Doppler velocities (...) seen from ``origin`` (..., 3)."""
    predicted, row = radial_velocity(mean, origin)
    noise = np.asarray(variance, np.float64)
    return update_scalar(mean, covariance, row, velocity - predicted, noise)


def oracle(kind: type, mean: np.ndarray, covariance: np.ndarray, measured: int):
    kf = kind(dim_x=6, dim_z=measured)
    kf.x, kf.P = mean.reshape(6, 1).copy(), covariance.copy()
    return kf


@pytest.mark.parametrize('dt', [0.001, 0.05, 0.5, 3.0])
def test_prediction_agrees_with_filterpy(dt: float) -> None:
    random = np.random.default_rng(1)
    means = random.normal(size=(4, 6))
    covariances = np.stack([random_covariance(random, 6) for _ in means])
    result, spreads = predict(means, covariances, dt, ACCELERATION)
    for i, mean in enumerate(means):
        kf = oracle(KalmanFilter, mean, covariances[i], 3)
        kf.predict(F=transition(dt), Q=process_noise(dt))
        np.testing.assert_allclose(result[i], kf.x[:, 0], atol=1e-12)
        np.testing.assert_allclose(spreads[i], kf.P, atol=1e-12)


def test_a_position_update_agrees_with_filterpy() -> None:
    random = np.random.default_rng(2)
    for _ in range(20):
        mean, covariance = random.normal(size=6), random_covariance(random, 6)
        position, noise = random.normal(size=3), random_covariance(random, 3)
        kf = oracle(KalmanFilter, mean, covariance, 3)
        kf.update(position[:, None], R=noise, H=POSITION)
        result, spread = update_position(mean, covariance, position, noise)
        np.testing.assert_allclose(result, kf.x[:, 0], atol=1e-12)
        np.testing.assert_allclose(spread, kf.P, atol=1e-12)


def test_a_radial_velocity_update_agrees_with_filterpy() -> None:
    random = np.random.default_rng(3)
    for _ in range(20):
        mean, covariance = random.normal(size=6), random_covariance(random, 6)
        origin, velocity, variance = random.normal(size=3), float(random.normal()), 0.2
        kf = oracle(ExtendedKalmanFilter, mean, covariance, 1)
        kf.update(
            np.array([[velocity]]),
            lambda x, o=origin: radial_velocity(x[:, 0], o)[1][None],
            lambda x, o=origin: np.array([[radial_velocity(x[:, 0], o)[0]]]),
            R=np.array([[variance]]),
        )
        result, spread = updated_by_doppler(mean, covariance, origin, velocity, variance)
        np.testing.assert_allclose(result, kf.x[:, 0], atol=1e-12)
        np.testing.assert_allclose(spread, kf.P, atol=1e-12)


def test_a_long_run_stays_with_filterpy() -> None:
    random = np.random.default_rng(4)
    mean, covariance = np.zeros(6), np.eye(6)
    kf = oracle(KalmanFilter, mean, covariance, 3)
    for _ in range(300):
        dt, noise = float(random.uniform(0.01, 0.1)), random_covariance(random, 3)
        position = random.normal(size=3)
        means, spreads = predict(mean[None], covariance[None], dt, ACCELERATION)
        mean, covariance = update_position(means[0], spreads[0], position, noise)
        kf.predict(F=transition(dt), Q=process_noise(dt))
        kf.update(position[:, None], R=noise, H=POSITION)
    np.testing.assert_allclose(mean, kf.x[:, 0], atol=1e-9)
    np.testing.assert_allclose(covariance, kf.P, atol=1e-9)


def test_the_jacobian_of_the_radial_velocity_is_its_derivative() -> None:
    random = np.random.default_rng(5)
    for _ in range(10):
        mean, origin = random.normal(size=6), random.normal(size=3)
        _, jacobian = radial_velocity(mean, origin)
        steps = 1e-6 * np.eye(6)
        slopes = [
            (radial_velocity(mean + s, origin)[0] - radial_velocity(mean - s, origin)[0]) / 2e-6
            for s in steps
        ]
        np.testing.assert_allclose(jacobian, slopes, atol=1e-6)


def test_a_receding_object_has_a_positive_radial_velocity() -> None:
    away = np.array([4.0, 0.0, 0.0, 1.5, 9.0, 0.0])
    assert radial_velocity(away, np.array([1.0, 0.0, 0.0]))[0] == pytest.approx(1.5)
    assert radial_velocity(away, np.array([8.0, 0.0, 0.0]))[0] == pytest.approx(-1.5)


def test_an_object_at_the_very_place_of_the_radar_does_no_harm() -> None:
    origin = np.array([1.0, 2.0, 3.0])
    mean = np.concatenate([origin, [1.0, 1.0, 1.0]])
    result, spread = updated_by_doppler(mean, np.eye(6), origin, 1.0, 0.1)
    assert np.isfinite(result).all()
    assert np.linalg.eigvalsh(spread).min() > 0


def test_two_short_predictions_make_one_long_one() -> None:
    random = np.random.default_rng(6)
    mean, covariance = random.normal(size=(1, 6)), random_covariance(random, 6)[None]
    once = predict(mean, covariance, 0.5, ACCELERATION)
    twice = predict(*predict(mean, covariance, 0.2, ACCELERATION), 0.3, ACCELERATION)
    np.testing.assert_allclose(once[0], twice[0], atol=1e-12)
    np.testing.assert_allclose(once[1], twice[1], atol=1e-12)


def test_going_back_in_time_adds_no_noise() -> None:
    random = np.random.default_rng(7)
    mean, covariance = random.normal(size=(1, 6)), random_covariance(random, 6)[None]
    result, spread = predict(mean, covariance, -0.3, ACCELERATION)
    move = transition(-0.3)
    np.testing.assert_allclose(result[0], move @ mean[0], atol=1e-12)
    np.testing.assert_allclose(spread[0], move @ covariance[0] @ move.T, atol=1e-12)


def test_a_second_adds_the_named_deviation_to_the_velocity() -> None:
    _, spread = predict(np.zeros((1, 6)), np.zeros((1, 6, 6)), 1.0, ACCELERATION)
    np.testing.assert_allclose(np.sqrt(np.diag(spread[0])[3:]), ACCELERATION)


def test_mahalanobis_distances_are_those_of_the_definition() -> None:
    random = np.random.default_rng(8)
    offsets = random.normal(size=(3, 2, 3))
    covariances = np.stack([random_covariance(random, 3) for _ in range(6)]).reshape(3, 2, 3, 3)
    result = weighted_square(offsets, inverse_3(covariances)[0])
    for i in range(3):
        for j in range(2):
            inverse = np.linalg.inv(covariances[i, j])
            assert result[i, j] == pytest.approx(offsets[i, j] @ inverse @ offsets[i, j])


def test_a_mixture_has_the_moments_of_what_is_drawn_from_it() -> None:
    random = np.random.default_rng(7)
    weights = np.array([0.5, 0.3, 0.2])
    means = random.normal(0.0, 2.0, (3, 2))
    covariances = np.array([random_covariance(random, 2) for _ in range(3)])
    mean, covariance = mixture(weights, means, covariances)
    drawn = np.concatenate(
        [
            random.multivariate_normal(m, c, round(1e5 * w))
            for w, m, c in zip(weights, means, covariances, strict=True)
        ]
    )
    np.testing.assert_allclose(mean, drawn.mean(axis=0), atol=0.05)
    np.testing.assert_allclose(covariance, np.cov(drawn.T), rtol=0.03, atol=0.05)


def test_what_is_surely_one_of_several_is_that_one() -> None:
    random = np.random.default_rng(8)
    means, covariances = random.normal(size=(4, 3, 6)), np.tile(np.eye(6), (4, 3, 1, 1))
    mean, covariance = mixture(np.tile([0.0, 1.0, 0.0], (4, 1)), means, covariances)
    np.testing.assert_array_equal(mean, means[:, 1])
    np.testing.assert_array_equal(covariance, covariances[:, 1])


def test_many_states_at_once_are_corrected_as_one_by_one() -> None:
    random = np.random.default_rng(10)
    means, positions = random.normal(size=(5, 6)), random.normal(size=(5, 3))
    covariances = np.stack([random_covariance(random, 6) for _ in means])
    noises = np.stack([random_covariance(random, 3) for _ in means])
    velocities, variances = random.normal(size=5), random.uniform(0.1, 1.0, 5)
    placed = update_position(means, covariances, positions, noises)
    timed = updated_by_doppler(means, covariances, positions, velocities, variances)
    for i, (mean, covariance) in enumerate(zip(means, covariances, strict=True)):
        alone = update_position(mean, covariance, positions[i], noises[i])
        np.testing.assert_allclose(placed[0][i], alone[0], atol=1e-12)
        np.testing.assert_allclose(placed[1][i], alone[1], atol=1e-12)
        alone = updated_by_doppler(
            mean, covariance, positions[i], float(velocities[i]), float(variances[i])
        )
        np.testing.assert_allclose(timed[0][i], alone[0], atol=1e-12)
        np.testing.assert_allclose(timed[1][i], alone[1], atol=1e-12)


@given(st.floats(-4.0, 4.0), st.floats(-4.0, 4.0), st.integers(0, 1000))
def test_the_quick_inverse_is_the_inverse_also_of_flat_ellipsoids(
    first: float, second: float, seed: int
) -> None:
    axes = np.linalg.qr(np.random.default_rng(seed).normal(size=(3, 3)))[0]
    matrix = (axes * [1.0, 10**first, 10**second]) @ axes.T
    expected = np.linalg.inv(matrix)
    inverse, determinant = inverse_3(matrix)
    np.testing.assert_allclose(inverse, expected, rtol=1e-6, atol=1e-6 * np.abs(expected).max())
    assert determinant == pytest.approx(np.linalg.det(matrix), rel=1e-6)


step = st.tuples(
    st.sampled_from(['position', 'radial velocity']),
    st.floats(1e-4, 10.0),
    st.tuples(*[st.floats(-1e3, 1e3)] * 3),
    st.floats(1e-4, 1e3),
)


@given(st.lists(step, min_size=1, max_size=30))
def test_whatever_is_measured_the_covariance_stays_symmetric_and_positive(
    steps: list[tuple[str, float, tuple[float, float, float], float]],
) -> None:
    mean, covariance = np.zeros(6), np.eye(6)
    for kind, dt, place, deviation in steps:
        means, spreads = predict(mean[None], covariance[None], dt, ACCELERATION)
        mean, covariance = means[0], spreads[0]
        if kind == 'position':
            noise = deviation**2 * np.eye(3)
            mean, covariance = update_position(mean, covariance, np.array(place), noise)
        else:
            origin = np.array([0.1, -0.2, 0.3])
            mean, covariance = updated_by_doppler(
                mean, covariance, origin, place[0] / 10, deviation**2
            )
        assert np.isfinite(mean).all()
        scale = np.abs(covariance).max()
        np.testing.assert_allclose(covariance, covariance.T, atol=1e-9 * scale)
        assert np.linalg.eigvalsh(covariance).min() > 0


# ------------------------------------------------------------------------------ boxes

SPREAD = RateSpread(0.01, 0.002, 0.1)
NOISE = BoxNoise(centre=RateNoise(0.04, 0.5, 0.8), size=RateNoise(0.08, 0.2, 0.3))


def predicted(state: BoxState, dt: float, noise: BoxNoise = NOISE) -> BoxState:
    return predict_boxes([state], dt, noise)[0]


def updated(state: BoxState, measured: Box) -> BoxState:
    return update_boxes([state], [measured], NOISE)[0]


@pytest.mark.parametrize(('part', 'index'), [('centre', 1), ('size', 3)])
def test_the_box_filter_agrees_with_filterpy(part: str, index: int) -> None:
    random = np.random.default_rng(9)
    state = start_box(Box(100.0, 100.0, 160.0, 250.0), NOISE)
    noise = getattr(NOISE, part)
    kf = KalmanFilter(dim_x=2, dim_z=1)
    kf.x = np.array([[state.values[index]], [0.0]])
    kf.P = np.diag([noise.measurement**2, noise.start_rate**2])
    kf.H, kf.R = np.array([[1.0, 0.0]]), np.array([[noise.measurement**2]])
    for _ in range(50):
        dt, (top, bottom) = float(random.uniform(0.02, 0.1)), random.normal((100, 250))
        measured = Box(100.0, top, 160.0, bottom)
        state = updated(predicted(state, dt), measured)
        process = Q_continuous_white_noise(2, dt, noise.motion**2)
        kf.predict(F=np.array([[1, dt], [0, 1]]), Q=process)
        kf.update(box_values(measured)[index])
        assert state.values[index] == pytest.approx(kf.x[0, 0])
        assert state.rates[index] == pytest.approx(kf.x[1, 0])
        spread = getattr(state, part)
        covariance = [[spread.value, spread.cross], [spread.cross, spread.rate]]
        np.testing.assert_allclose(covariance, kf.P, rtol=1e-9)


def test_many_boxes_are_corrected_as_each_alone() -> None:
    boxes = [Box(10.0 * n, 50.0, 10.0 * n + 5.0 + n, 90.0 + n) for n in range(1, 6)]
    states = [start_box(box, NOISE) for box in boxes]
    for old, new in zip(states[2:4], boxes[2:4], strict=True):
        states[boxes.index(new)] = predicted(old, 0.1)
    together = update_boxes(predict_boxes(states, 0.05, NOISE), boxes[::-1], NOISE)
    for state, measured, result in zip(states, boxes[::-1], together, strict=True):
        alone = updated(predicted(state, 0.05), measured)
        np.testing.assert_array_equal(result.values, alone.values)
        np.testing.assert_array_equal(result.rates, alone.rates)
        assert (result.centre, result.size) == (alone.centre, alone.size)
    assert predict_boxes([], 0.05, NOISE) == update_boxes([], [], NOISE) == []


def test_a_box_in_steady_motion_is_predicted_where_it_will_be() -> None:
    def true_box(time: float) -> Box:
        left, height = 100 + 80 * time, 100 + 20 * time
        return Box(left, 50.0, left + height / 3, 50.0 + height)

    state = start_box(true_box(0.0), NOISE)
    for n in range(1, 41):
        state = updated(predicted(state, 0.05), true_box(0.05 * n))
    ahead = predicted(state, 0.5).box()
    np.testing.assert_allclose(ahead, true_box(2.5), atol=1.0)


def test_a_box_carried_back_is_where_it_was_and_no_less_certain() -> None:
    still = RateNoise(0.04, 0.5, 0.0)
    state = BoxState(np.array([100.0, 50, 20, 40]), np.array([10.0, 0, 1, 2]), SPREAD, SPREAD)
    there = predicted(predicted(state, -0.2), 0.2, BoxNoise(still, still))
    np.testing.assert_allclose(there.values, state.values)
    assert there.centre == pytest.approx(state.centre)
    assert there.size == pytest.approx(state.size)


def test_a_box_never_shrinks_below_a_pixel() -> None:
    state = BoxState(np.array([100.0, 50, 20, 40]), np.array([0.0, 0, -30, -90]), SPREAD, SPREAD)
    box = predicted(state, 2.0).box()
    assert (box.width, box.height) == (1.0, 1.0)


def test_corners_and_centre_name_the_same_box() -> None:
    box = Box(10.0, 20.0, 50.0, 120.0)
    np.testing.assert_array_equal(box_values(box), [30, 70, 40, 100])
    assert start_box(box, NOISE).box() == box
