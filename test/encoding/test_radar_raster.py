"""Radar returns on rasters."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as numpy_strategies
from numpy.typing import NDArray

from mmedge_ros.encoding.radar_raster import radar_rasters

NAN = float('nan')


def scan(*returns: tuple[float, ...]) -> NDArray[np.float32]:
    return np.array(returns, np.float32).reshape(-1, 5)


def test_a_return_ahead_lies_in_the_middle_with_its_values() -> None:
    view, birds_eye = radar_rasters(scan((10.0, -0.1, -0.1, 2.5, 20.0)))
    expected = [np.log(2.0), 0.5, 0.5, 0.5, 0.5, 1.0]
    np.testing.assert_allclose(view[:, 15, 20], expected, rtol=1e-5)
    np.testing.assert_allclose(birds_eye[:, 5, 20], expected, rtol=1e-5)
    assert np.count_nonzero(view[0]) == np.count_nonzero(birds_eye[0]) == 1


def test_returns_of_one_cell_are_gathered() -> None:
    view, _ = radar_rasters(
        scan(
            (10.0, -0.1, -0.1, 2.0, 10.0),
            (5.0, -0.05, -0.05, 0.0, 30.0),
            (8, -0.1, -0.1, NAN, NAN),
        )
    )
    np.testing.assert_allclose(
        view[:, 15, 20], [np.log(4.0), 0.75, 1.0, 0.2, 0.2, 1.0 / 3.0], rtol=1e-5
    )


def test_left_is_left_up_is_up_and_far_is_far() -> None:
    view, birds_eye = radar_rasters(scan((10.0, 7.9, 5.9, 0.0, 10.0), (50, -39, -29, 0.0, 10.0)))
    assert view[0, 0, 0] > 0
    assert view[0, 29, 39] > 0
    assert birds_eye[0, 7, 0] > 0
    assert birds_eye[0, 31, 39] > 0  # 70 m: what is farther lies in the last bin


@pytest.mark.parametrize('point', [(10.0, 8.1, 0.0), (10.0, -8.1, 0.0), (-10.0, 0.0, 0.0)])
def test_returns_beside_the_view_are_left_out(point: tuple[float, float, float]) -> None:
    view, birds_eye = radar_rasters(scan((*point, 1.0, 10.0)))
    assert not view.any()
    assert not birds_eye.any()


def flight_past(walkers: int) -> NDArray[np.float32]:
    """Static returns seen from a radar that flies at 4 m/s ahead, and people who walk."""
    rng = np.random.default_rng(0)
    x = rng.uniform(5.0, 30.0, 40)
    points = np.stack((x, x * rng.uniform(-0.7, 0.7, 40), np.zeros(40)), axis=1)
    speeds = -4.0 * x / np.linalg.norm(points, axis=1)
    speeds[:walkers] += 1.5
    return np.column_stack((points, speeds, np.full(40, 20.0))).astype(np.float32)


def test_the_sensors_own_motion_is_taken_out() -> None:
    view, _ = radar_rasters(flight_past(walkers=0))
    assert np.abs(view[3]).max() > 0.5
    assert np.abs(view[4]).max() < 0.02
    assert not view[5].any()


def test_people_who_walk_are_told_from_the_ground() -> None:
    _, birds_eye = radar_rasters(flight_past(walkers=3))
    assert 1 <= np.count_nonzero(birds_eye[5]) <= 3
    assert birds_eye[4].max() == pytest.approx(0.3, abs=0.01)


def test_a_dense_cloud_is_thinned() -> None:
    cloud = np.tile(flight_past(walkers=0), (500, 1))
    counts = np.expm1(radar_rasters(cloud)[1][0])
    assert 200 <= counts.sum() <= 256


@settings(deadline=None, max_examples=60)
@given(
    numpy_strategies.arrays(
        np.float32, st.tuples(st.integers(0, 20), st.just(5)), elements=st.floats(width=32)
    )
)
def test_rasters_of_any_returns_are_finite_and_bounded(returns: NDArray[np.float32]) -> None:
    with np.errstate(all='ignore'):
        for raster in radar_rasters(returns):
            assert np.isfinite(raster).all()
            assert np.abs(raster).max() <= 10.0


def test_returns_above_the_view_are_seen_from_above_only() -> None:
    view, birds_eye = radar_rasters(scan((10.0, 0.0, 8.0, 1.0, 10.0)))
    assert not view.any()
    assert birds_eye.any()
