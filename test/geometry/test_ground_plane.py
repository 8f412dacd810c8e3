"""Where the ground is: its height and tilt are learned, and shared by all who stand on it."""

from __future__ import annotations

import copy

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mmedge_ros.geometry.ground_plane import GroundPlane, GroundView

SECOND = 1_000_000_000
EYE = np.array([0.0, 0.0, 8.0])
HEIGHT_ROW = np.array([[1.0, 0.0, 0.0]])


def plane(height: float = 0.0, rise: float = 0.0) -> GroundView:
    return GroundView(np.array([0.0, 0.0, height]), np.array([rise, 0.0]), np.eye(3))


def ray_to(x: float, y: float, z: float) -> np.ndarray:
    offset = np.array([x, y, z]) - EYE
    return offset[None] / np.linalg.norm(offset)


@given(st.floats(-2.0, 2.0), st.floats(-0.1, 0.1), st.floats(3.0, 30.0), st.floats(-20.0, 20.0))
def test_a_ray_to_the_ground_meets_it_where_it_is(
    h: float, rise: float, x: float, y: float
) -> None:
    ground = plane(h, rise)
    distances, _ = ground.met_by(EYE, ray_to(x, y, h + rise * x))
    assert distances[0] == pytest.approx(np.linalg.norm([x, y, h + rise * x - 8.0]), rel=1e-6)


def test_how_far_the_ground_is_changes_with_the_plane_as_it_says() -> None:
    ray = ray_to(12.0, 5.0, 0.0)
    distances, rows = plane().met_by(EYE, ray)
    higher, _ = plane(1e-4).met_by(EYE, ray)
    steeper, _ = plane(0.0, 1e-5).met_by(EYE, ray)
    assert (higher - distances)[0] / 1e-4 == pytest.approx(rows[0, 0], rel=1e-2)
    assert (steeper - distances)[0] / 1e-5 == pytest.approx(rows[0, 1], rel=1e-2)


def test_level_rays_and_an_eye_on_the_ground_meet_nothing() -> None:
    assert np.isnan(plane().met_by(EYE, np.array([[1.0, 0.0, 0.0]]))[0]).all()
    assert np.isnan(plane(7.8).met_by(EYE, ray_to(9.0, 0.0, 0.0))[0]).all()


def test_points_are_pinned_at_their_distance_and_in_their_direction() -> None:
    points = np.array([[12.0, 9.0, 4.0], [0.3, 0.0, 1.0]])
    pinned, known = plane(0.0, 0.02).pinned(EYE, points, 0.9)
    assert known.tolist() == [True, False]
    assert pinned[0, 2] == pytest.approx(0.9 + 0.02 * pinned[0, 0], abs=0.02)
    assert pinned[0, 1] / pinned[0, 0] == pytest.approx(0.75)
    assert np.linalg.norm(pinned[0] - EYE) == pytest.approx(
        np.linalg.norm(points[0] - EYE), rel=1e-3
    )


def test_readings_move_the_ground_and_make_it_surer() -> None:
    ground = GroundPlane()
    before = ground.view(0, EYE)
    for n in range(20):
        left = 0.8 - float(ground.view(n * SECOND // 10, EYE).place[2])
        ground.learn(n * SECOND // 10, EYE, HEIGHT_ROW, np.array([left]), np.array([0.2]))
    after = ground.view(2 * SECOND, EYE)
    assert after.place[2] == pytest.approx(0.8, abs=0.1)
    assert after.covariance[0, 0] < 0.2 * before.covariance[0, 0]


def test_what_was_learned_is_forgotten_with_time() -> None:
    ground = GroundPlane()
    ground.learn(0, EYE, HEIGHT_ROW, np.array([0.8]), np.array([0.001]))
    later = ground.view(300 * SECOND, EYE)
    assert abs(later.place[2]) < 0.01
    assert later.covariance[0, 0] == pytest.approx(
        GroundPlane().view(0, EYE).covariance[0, 0], rel=0.01
    )


def test_on_a_slope_the_height_below_changes_as_the_drone_goes() -> None:
    ground = GroundPlane()
    for n in range(50):
        at = ground.view(n, EYE)
        points = np.array([[0.0, 0.0], [20.0, 0.0], [10.0, 8.0]])
        innovations = 0.05 * points[:, 0] - at.heights(points)
        ground.learn(n, EYE, at.rows(points), innovations, np.full(3, 0.05))
    ahead = ground.view(SECOND, EYE + np.array([10.0, 0.0, 0.0]))
    assert ahead.place[2] == pytest.approx(0.5, abs=0.1)


def test_where_the_ground_is_known_one_person_whose_feet_are_hidden_tilts_nothing() -> None:
    ground = GroundPlane()
    points = np.array([[12.0, 9.0], [15.0, 2.0], [14.0, -6.0]])
    for n in range(90):
        at = ground.view(n * SECOND // 30, EYE)
        # After a second the first one's foot seems to be 2 m above where the others stand.
        innovations = np.array([2.0 if n > 30 else 0.0, 0.0, 0.0]) - at.heights(points)
        variances, repeats = np.full(3, 0.2**2), np.full(3, 40.0)
        ground.learn(n * SECOND // 30, EYE, at.rows(points), innovations, variances, repeats)
    assert (np.abs(ground.view(3 * SECOND, EYE).tilt) < 0.02).all()


def test_a_reading_that_cannot_be_of_the_ground_is_left_out_until_it_lasts() -> None:
    ground = GroundPlane()
    for n in range(50):
        left = -float(ground.view(n * SECOND // 20, EYE).place[2])
        ground.learn(n * SECOND // 20, EYE, HEIGHT_ROW, np.array([left]), np.array([0.01]))
    sure = copy.copy(ground)
    ground.learn(3 * SECOND, EYE, HEIGHT_ROW, np.array([6.0]), np.array([0.01]))
    assert abs(ground.view(3 * SECOND, EYE).place[2]) < 0.05
    assert abs(sure.view(3 * SECOND, EYE).place[2]) < 0.05
    for n in range(200):
        at_ns = 3 * SECOND + (n + 1) * SECOND // 20
        left = 6.0 - float(ground.view(at_ns, EYE).place[2])
        ground.learn(at_ns, EYE, HEIGHT_ROW, np.array([left]), np.array([0.01]))
    assert ground.view(at_ns, EYE).place[2] == pytest.approx(6.0, abs=0.2)


def test_a_reading_that_is_no_number_changes_nothing() -> None:
    ground = GroundPlane()
    ground.learn(0, EYE, HEIGHT_ROW, np.array([np.nan]), np.array([0.1]))
    assert ground.view(0, EYE).place[2] == 0.0


def test_a_rangefinder_says_how_high_the_ground_is() -> None:
    ground = GroundPlane()
    for n in range(20):
        ground.learn_points(n * SECOND // 20, EYE, np.array([[0.3, 0.0, 1.2]]))
    assert ground.view(SECOND, EYE).place[2] == pytest.approx(1.2, abs=0.1)
    assert ground.learned_ns == 19 * SECOND // 20
    ground.learn_points(2 * SECOND, EYE, np.zeros((0, 3)))
    assert ground.learned_ns == 19 * SECOND // 20
