"""How tall a followed body is, and how sure a range by its returns can be."""

from __future__ import annotations

import numpy as np
import pytest
from hand_made_readings import BODY, NAN, PERIOD, by_height, by_radar, deviation, followed
from hand_made_units import at
from hypothesis import given
from hypothesis import strategies as st

from mmedge_ros.core.data_types import CAMERA, RADAR, Measurement, Track
from mmedge_ros.tracking.height_bias import UNKNOWN, HeightBias, unbiased, updated_bias
from mmedge_ros.tracking.track import TrackerState
from mmedge_ros.tracking.tracker import Tracker, TrackerParameters

TALL, LOOKS = 10.0, 8.5  # m: where a tall person is, and where their box alone puts them


def ranged(count: int, height_deviation: float = BODY) -> list[Measurement]:
    """A tall person ranged by the radar too."""
    return [
        by_radar(n * PERIOD, TALL, LOOKS, height_deviation=height_deviation) for n in range(count)
    ]


def silent(count: int, begin: int, height_deviation: float = BODY) -> list[Measurement]:
    """The same person when the radar says nothing any more."""
    return [by_height((begin + n) * PERIOD, LOOKS, height_deviation) for n in range(count)]


def learned_from(count: int, x: float = TALL, height_x: float = LOOKS) -> HeightBias:
    bias = UNKNOWN
    for _ in range(count):
        reading = by_radar(0.0, x, height_x, height_deviation=BODY)
        bias = updated_bias(bias, reading, own=1.0, exchanged=0.0, since=PERIOD / 1e3)
    return bias


def test_the_range_of_a_tall_person_stays_right_when_the_radar_goes_silent() -> None:
    state = followed(*ranged(60), *silent(100, 60))
    assert state.tracks[0].mean[0] == pytest.approx(TALL, abs=0.2)
    assert deviation(state) < 0.5 * BODY * TALL
    unlearned = followed(*ranged(60, NAN), *silent(200, 60, NAN))
    assert unlearned.tracks[0].mean[0] == pytest.approx(LOOKS, abs=0.2)


def test_a_height_bias_is_believed_by_and_by_and_never_fully() -> None:
    biases = [learned_from(count) for count in (1, 20, 2000)]
    values = [s.value for s in biases]
    assert 0.0 < values[0] < values[1] < values[2]
    assert values[2] == pytest.approx(np.log(TALL / LOOKS), abs=0.01)
    assert BODY**2 > biases[0].variance > biases[1].variance > biases[2].variance
    assert np.sqrt(biases[2].variance) == pytest.approx(0.03, abs=0.005)


def test_returns_of_another_object_say_nothing_of_the_height_bias() -> None:
    reading = by_radar(0.0, TALL, LOOKS, height_deviation=BODY)
    assert updated_bias(UNKNOWN, reading, own=0.4, exchanged=0.0, since=1.0) == UNKNOWN


def test_a_height_bias_is_forgotten_as_far_as_the_body_is_another_by_now() -> None:
    known = learned_from(200)
    box = by_height(0.0, LOOKS, BODY)
    kept, doubted, gone = (updated_bias(known, box, 1.0, share, 1.0) for share in (0.0, 0.5, 1.0))
    assert kept == known
    assert doubted.value == pytest.approx(0.5 * known.value)
    assert doubted.variance > known.variance + (0.4 * known.value) ** 2
    assert gone == pytest.approx((0.0, BODY**2))


def test_a_person_a_box_has_gone_over_to_is_not_taken_for_as_tall_as_the_one_before() -> None:
    known = followed(*ranged(60))
    others = [by_radar((60 + n) * PERIOD, 13.0, 13.0, height_deviation=BODY) for n in range(5)]
    before = known.tracks[0].height_bias
    kept, widened = (
        followed(*others, state=known, exchange_rate=rate).tracks[0].height_bias
        for rate in (0.0, 0.1)
    )
    assert kept == before
    assert widened.value < 0.5 * before.value
    assert widened.variance > 3.0 * before.variance


def test_a_box_without_a_height_only_ends_a_bias_that_is_surely_over() -> None:
    known = learned_from(200)
    cut = by_height(0.0, LOOKS, NAN)
    assert updated_bias(known, cut, 1.0, 0.4, 1.0) == known
    assert updated_bias(known, cut, 1.0, 0.6, 1.0) == UNKNOWN


def test_only_ranges_by_the_height_of_a_box_are_read_anew() -> None:
    reading = by_radar(0.0, TALL, LOOKS, height_deviation=BODY)
    read = unbiased(reading, learned_from(200))
    np.testing.assert_array_equal(read.position, reading.position)
    assert reading.otherwise is not None
    assert read.otherwise is not None
    assert read.otherwise.position[0] == pytest.approx(TALL, abs=0.1)
    assert read.otherwise.depth == pytest.approx(TALL, abs=0.1)
    assert read.otherwise.covariance[0, 0] < 0.6 * reading.otherwise.covariance[0, 0]
    assert unbiased(reading, UNKNOWN) is reading


depths = st.floats(0.01, 1e4)


@given(st.lists(st.tuples(depths, depths, st.floats(0, 1), st.floats(0, 1)), max_size=20))
def test_whatever_is_compared_a_height_bias_stays_finite(
    steps: list[tuple[float, float, float, float]],
) -> None:
    bias = UNKNOWN
    for x, height_x, own, exchanged in steps:
        reading = by_radar(0.0, x, height_x, height_deviation=BODY)
        bias = updated_bias(bias, reading, own, exchanged, 0.0)
        assert np.isfinite(bias.value)
        assert np.isnan(bias.variance) or 0.0 < bias.variance < 1e3
        assert np.isfinite(unbiased(reading, bias).covariance).all()


# ------------------------------------------------------------------- returns of another object


def reported(state: TrackerState, share: float) -> Track:
    tracker = Tracker(TrackerParameters(misassociation_share=share), noise_scale=1.0)
    (track,) = tracker.report(state, state.stamp_ns, state.stamp_ns - 1)
    return track


def test_a_range_by_radar_is_reported_as_sure_as_other_objects_in_the_box_leave_it() -> None:
    state = followed(*ranged(20))
    learned = state.tracks[0].noise_scale.factor(1.0)
    plain, wide = (reported(state, share).covariance / learned for share in (0.0, 0.02))
    widened = np.zeros((6, 6))
    widened[0, 0] = 0.02 * (BODY * TALL) ** 2  # along the ray, which is x
    np.testing.assert_allclose(wide - plain, widened, atol=1e-12)
    np.testing.assert_allclose(plain, state.tracks[0].covariance)


def test_what_may_be_another_objects_changes_nothing_that_the_tracker_does() -> None:
    readings = [*ranged(20), by_radar(20 * PERIOD, 12.0, LOOKS), *silent(10, 21)]
    one, other = (followed(*readings, misassociation_share=share) for share in (0.0, 0.5))
    np.testing.assert_array_equal(one.tracks[0].mean, other.tracks[0].mean)
    np.testing.assert_array_equal(one.tracks[0].covariance, other.tracks[0].covariance)


def test_a_track_the_radar_never_ranged_is_not_in_doubt_of_misassociation() -> None:
    state = followed(*silent(20, 0))
    assert state.tracks[0].updated_ns == {CAMERA: at(19 * PERIOD)}
    np.testing.assert_array_equal(reported(state, 0.0).covariance, reported(state, 0.5).covariance)


def test_the_doubt_stays_when_the_radar_goes_silent_as_does_the_height_bias_it_taught() -> None:
    state = followed(*ranged(20), *silent(40, 20))
    assert state.tracks[0].updated_ns[RADAR] == at(19 * PERIOD)
    learned = state.tracks[0].noise_scale.factor(1.0)
    plain, wide = (reported(state, share).covariance[0, 0] / learned for share in (0.0, 0.02))
    assert wide - plain == pytest.approx(0.02 * (BODY * TALL) ** 2)
