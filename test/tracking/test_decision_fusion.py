"""People at known places, seen by a camera and a radar whose geometry is known."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hand_made_units import features, returns, unit
from hypothesis import given
from hypothesis import strategies as st

from mmedge_ros.core.data_types import CAMERA, RADAR, Box, Detection, Measurement, UnitFeatures
from mmedge_ros.geometry.projection import CameraModel
from mmedge_ros.geometry.sensor_poses import OPTICAL_TO_BODY, SensorGeometry
from mmedge_ros.geometry.transforms import Transform
from mmedge_ros.tracking.decision_fusion import (
    RADAR_ONLY_LABEL,
    DecisionFusionParameters,
    fuse_detections,
)

FOCAL, WIDTH, HEIGHT = 450.0, 640, 480
MODEL = CameraModel(
    WIDTH,
    HEIGHT,
    np.array([[FOCAL, 0, WIDTH / 2], [0, FOCAL, HEIGHT / 2], [0, 0, 1]]),
    np.zeros(0),
    'none',
)
# A metre above the ground; the radar a hand's breadth beside the camera.
CAMERA_POSE = Transform(OPTICAL_TO_BODY, np.array([0.0, 0.0, 1.0]))
RADAR_POSE = Transform(np.eye(3), np.array([0.0, -0.1, 1.0]))
GEOMETRY = SensorGeometry('base_link', MODEL, CAMERA_POSE, RADAR_POSE)
# Bodies without depth, so that returns lie where people are.
PARAMETERS = DecisionFusionParameters(body_depth=0.0)
STATURE = PARAMETERS.person_height


def box_of(x: float, y: float, pose: Transform = CAMERA_POSE) -> Box:
    """Box of a person of mean height who stands on the ground at (x, y)."""
    optical = pose.inverse()
    pixels, _ = MODEL.project(optical.apply([[x, y, 0.0], [x, y, STATURE]]))
    (u, bottom), (_, top) = pixels
    half = 0.15 * (bottom - top)
    return Box(u - half, top, u + half, bottom)


def camera_unit(*boxes: Box, available: float = 100.0) -> UnitFeatures:
    result = tuple(Detection(box, 0.9, 'person') for box in boxes)
    return features(unit(available, CAMERA), detections=result, image_size=(WIDTH, HEIGHT))


def scan(*rows: tuple[float, float, float, float], available: float = 100.0) -> UnitFeatures:
    """A scan of returns at (x, y, z) in the tracking frame with their radial velocities."""
    table = returns(*rows)
    table[:, :3] = RADAR_POSE.inverse().apply(table[:, :3])
    return features(unit(available, RADAR), returns=table.astype(np.float32))


def body(x: float, y: float, velocity: float, count: int = 5) -> list[tuple[float, ...]]:
    """Returns of a person: from knee to head, at slightly different depths."""
    heights = np.linspace(0.4, 1.6, count)
    return [(x + 0.05 * (n % 3 - 1), y, z, velocity) for n, z in enumerate(heights)]


def walls() -> list[tuple[float, ...]]:
    """What does not move: returns all over the field of view."""
    angles = np.linspace(-0.9, 0.9, 12)
    return [(9 * np.cos(a), 9 * np.sin(a), 1.0, 0.0) for a in angles]


def fuse(
    camera: UnitFeatures | None,
    *scans: UnitFeatures,
    geometry: SensorGeometry = GEOMETRY,
    parameters: DecisionFusionParameters = PARAMETERS,
) -> list[Measurement]:
    return fuse_detections(camera, scans, geometry, parameters)


# ------------------------------------------------------------------------------ boxes


def test_returns_in_a_box_give_its_range_and_velocity() -> None:
    # A tall person: by the height of the box 5.1 m away, in truth 6 m.
    box = box_of(5.1, 0.6)
    (result,) = fuse(camera_unit(box), scan(*body(6.0, 0.7, 0.8), *walls()))
    assert result.range_from == 'radar'
    assert result.seen_by == (CAMERA, RADAR)
    assert result.radial_velocity == pytest.approx(0.8)
    assert result.depth == pytest.approx(6.0, abs=0.05)
    np.testing.assert_allclose(result.position[:2], [6.0, 0.6 / 5.1 * 6.0], atol=0.05)
    np.testing.assert_allclose(result.origin, RADAR_POSE.translation)
    assert (result.box, result.label, result.score) == (box, 'person', 0.9)


def test_a_box_without_returns_gets_its_range_from_its_height() -> None:
    (result,) = fuse(camera_unit(box_of(6.0, 0.7)), scan(*walls()))
    assert result.range_from == 'height'
    assert result.seen_by == (CAMERA,)
    assert np.isnan(result.radial_velocity)
    np.testing.assert_allclose(result.position, [6.0, 0.7, STATURE / 2], atol=0.1)


def test_a_camera_alone_is_enough() -> None:
    (result,) = fuse(camera_unit(box_of(6.0, 0.7)))
    assert result.range_from == 'height'


def test_a_range_from_height_is_uncertain_along_the_line_of_sight() -> None:
    by_height, by_radar = (
        fuse(camera_unit(box_of(6.0, 2.0)), *scans)[0]
        for scans in ((), (scan(*body(6.0, 2.0, 0.8)),))
    )
    ray = by_height.position - CAMERA_POSE.translation
    distance, ray = np.linalg.norm(ray), ray / np.linalg.norm(ray)
    across = np.cross([0.0, 0.0, 1.0], ray)
    p = PARAMETERS
    by_bodies = np.hypot(p.height_deviation, p.box_deviation) * distance
    by_surface = np.hypot(p.range_deviation, p.surface_deviation)
    for result, deviation in ((by_height, by_bodies), (by_radar, by_surface)):
        assert np.sqrt(ray @ result.covariance @ ray) == pytest.approx(deviation, rel=0.02)
        assert np.sqrt(across @ result.covariance @ across) < 0.2
        assert np.linalg.eigvalsh(result.covariance).min() > 0


def test_returns_lie_before_the_middle_of_a_body() -> None:
    deep = replace(PARAMETERS, body_depth=0.2)
    thin, thick = (
        fuse(camera_unit(box_of(6.0, 0.0)), scan(*body(6.0, 0.0, 0.8)), parameters=parameters)[0]
        for parameters in (PARAMETERS, deep)
    )
    offset = np.linalg.norm(thick.position - thin.position)
    assert offset == pytest.approx(0.2)
    assert thick.position[0] > thin.position[0]


def test_what_the_height_says_holds_if_the_returns_are_of_another_object() -> None:
    box = box_of(6.0, 0.0)
    (alone,) = fuse(camera_unit(box))
    (near, far) = (
        fuse(camera_unit(box), scan(*body(x, 0.0, 0.8), *walls()))[0] for x in (6.2, 8.5)
    )
    assert alone.otherwise is None
    for result in (near, far):
        assert result.range_from == 'radar'
        assert result.otherwise is not None
        assert result.otherwise.range_from == 'height'
        assert result.otherwise.seen_by == (CAMERA,)
        np.testing.assert_array_equal(result.otherwise.position, alone.position)
    assert near.odds > far.odds + 1.0


def test_errors_of_bodies_last_and_those_of_boxes_do_not() -> None:
    by_height, by_radar = (
        fuse(camera_unit(box_of(6.0, 0.0)), *scans)[0]
        for scans in ((), (scan(*body(6.0, 0.0, 0.8)),))
    )
    assert list(by_height.lasting) == [CAMERA]
    assert list(by_radar.lasting) == [RADAR]
    for result in (by_height, by_radar):
        (part,) = result.lasting.values()
        assert 0.0 < part.trace() < result.covariance.trace()
        assert np.linalg.eigvalsh(result.covariance - part).min() > 0.0


def test_only_a_whole_body_gives_a_height_deviation() -> None:
    near, whole = box_of(1.2, 0.0), box_of(6.0, 0.0)
    cut = Box(near.x0, 0.0, near.x1, 300.0)
    (ranged,) = fuse(camera_unit(whole), scan(*body(6.0, 0.0, 0.8)))
    assert fuse(camera_unit(whole))[0].height_deviation == PARAMETERS.height_deviation
    assert np.isnan(fuse(camera_unit(cut))[0].height_deviation)
    assert np.isnan(ranged.height_deviation), 'the range is that of the returns'
    assert ranged.otherwise is not None
    assert ranged.otherwise.height_deviation == PARAMETERS.height_deviation


def test_overlapping_boxes_at_different_depths_get_their_own_returns() -> None:
    near, far = box_of(4.0, 0.1), box_of(7.0, 0.15)
    assert near.x0 < far.x0 < far.x1 < near.x1, 'the far person is in the box of the near one'
    first, second = fuse(
        camera_unit(near, far), scan(*body(4.0, 0.1, 1.0), *body(7.0, 0.15, -1.2), *walls())
    )
    assert first.depth == pytest.approx(4.0, abs=0.1)
    assert first.radial_velocity == pytest.approx(1.0)
    assert second.depth == pytest.approx(7.0, abs=0.1)
    assert second.radial_velocity == pytest.approx(-1.2)


def test_people_an_arms_length_behind_each_other_get_their_own_returns() -> None:
    near, far = box_of(4.0, 0.0), box_of(5.0, 0.05)
    # From knee to chest, so that every return lies in both boxes.
    rows = body(4.0, 0.0, 1.0)[1:4] + body(5.0, 0.05, -1.2)[1:4]
    second, first = fuse(camera_unit(far, near), scan(*rows, *walls()))
    assert (first.radial_velocity, second.radial_velocity) == pytest.approx((1.0, -1.2))


def test_returns_far_before_a_person_are_not_of_the_person() -> None:
    result, *_ = fuse(camera_unit(box_of(6.0, 0.0)), scan(*body(2.0, 0.0, 2.0)[1:4], *walls()))
    assert result.range_from == 'height'


def test_the_range_of_a_person_at_the_side_is_that_of_the_returns() -> None:
    (result,) = fuse(camera_unit(box_of(5.0, 3.0)), scan(*body(5.0, 3.0, 0.8), *walls()))
    np.testing.assert_allclose(result.position[:2], [5.0, 3.0], atol=0.05)


def test_returns_far_behind_a_person_are_not_of_the_person() -> None:
    (result,) = fuse(camera_unit(box_of(4.0, 0.0)), scan(*body(8.5, 0.0, 2.0), *walls()))
    assert result.range_from == 'height'
    assert result.depth == pytest.approx(4.0, rel=0.05)


def test_a_few_stray_returns_do_not_move_a_person() -> None:
    stray = [(x, 0.0, 1.0, 3.0) for x in (6.5, 6.9, 7.3, 7.7, 8.1, 8.5)]
    (result,) = fuse(camera_unit(box_of(5.5, 0.0)), scan(*body(5.5, 0.0, 0.7), *stray, *walls()))
    assert result.depth == pytest.approx(5.5, abs=0.1)
    assert result.radial_velocity == pytest.approx(0.7)


def test_static_returns_are_walls_whatever_box_they_lie_in() -> None:
    slow = [(x, y, z, 0.09) for x, y, z, _ in body(6.0, 0.0, 0.0)]
    (result,) = fuse(camera_unit(box_of(6.0, 0.0)), scan(*slow, *walls()))
    assert result.range_from == 'height'


def test_returns_of_unknown_velocity_are_not_used() -> None:
    unknown = [(x, y, z, np.nan) for x, y, z, _ in body(6.0, 0.0, 0.0)]
    (result,) = fuse(camera_unit(box_of(6.0, 0.0)), scan(*unknown, *walls()))
    assert result.range_from == 'height'


def test_a_body_cut_by_the_picture_may_be_nearer_than_its_box_says() -> None:
    whole = box_of(1.2, 0.0)
    cut = Box(whole.x0, 0.0, whole.x1, 300.0)
    by_height, by_radar = (
        fuse(camera_unit(cut), *scans)[0] for scans in ((), (scan(*body(1.2, 0.0, 0.6)),))
    )
    assert by_height.depth > 2.0
    assert by_radar.range_from == 'radar'
    assert by_radar.depth == pytest.approx(1.2, abs=0.1)
    uncut = fuse(camera_unit(replace_edge(cut)))[0]
    assert by_height.covariance.trace() > 4 * uncut.covariance.trace()


def replace_edge(box: Box) -> Box:
    """The same box a little below the edge of the picture."""
    return Box(box.x0, box.y0 + 5.0, box.x1, box.y1 + 5.0)


def test_boxes_without_an_extent_are_left_out() -> None:
    flat, thin = Box(100, 100, 200, 101), Box(100, 100, 100.5, 300)
    assert fuse(camera_unit(flat, thin)) == []


def test_without_calibration_boxes_cannot_be_placed_but_returns_can() -> None:
    blind = replace(GEOMETRY, camera=None)
    camera = camera_unit(box_of(6.0, 0.0))
    (result,) = fuse(camera, scan(*body(6.0, 0.0, 0.8), *walls()), geometry=blind)
    assert result.range_from == 'cluster'
    assert result.box is None


# ------------------------------------------------------------------------------ clusters


def test_moving_clusters_outside_all_boxes_are_kept() -> None:
    person, other = fuse(
        camera_unit(box_of(6.0, 0.0)),
        scan(*body(6.0, 0.0, 0.8), *body(5.0, 4.5, -0.9), *walls()),
    )
    assert person.label == 'person'
    assert other.label == RADAR_ONLY_LABEL == 'moving'
    assert other.box is None
    assert other.seen_by == (RADAR,)
    assert other.score == pytest.approx(0.5)
    assert other.radial_velocity == pytest.approx(-0.9)
    np.testing.assert_allclose(other.position[:2], [5.0, 4.5], atol=0.05)
    assert np.linalg.eigvalsh(other.covariance).min() > 0


def test_returns_in_a_box_make_no_cluster_even_when_they_do_not_fit_it() -> None:
    result = fuse(camera_unit(box_of(4.0, 0.0)), scan(*body(8.5, 0.0, 2.0), *walls()))
    assert [m.range_from for m in result] == ['height']


def test_a_radar_alone_is_enough() -> None:
    (result,) = fuse(None, scan(*body(6.0, 0.0, 0.8), *walls()))
    assert result.range_from == 'cluster'


def test_a_cluster_behind_the_camera_is_kept() -> None:
    turned = replace(GEOMETRY, radar_pose=Transform(np.diag([-1.0, -1.0, 1.0]), np.zeros(3)))
    rows = returns(*body(6.0, 0.0, 0.8), *walls()).astype(np.float32)
    behind = features(unit(100.0, RADAR), returns=rows)
    (result,) = fuse(camera_unit(), behind, geometry=turned)
    np.testing.assert_allclose(result.position[:2], [-6.0, 0.0], atol=0.05)


def test_a_single_return_is_a_poor_cluster() -> None:
    (result,) = fuse(None, scan((6.0, 0.0, 1.0, 0.8), *walls()))
    assert result.score == pytest.approx(0.1)


def test_an_empty_scan_gives_nothing() -> None:
    assert fuse(None, scan()) == []
    assert fuse(camera_unit(), scan()) == []


@pytest.mark.parametrize('place', [(0.0, 0.0, 0.0), (0.0, 0.0, 3.0)])
def test_a_cluster_at_the_radar_or_straight_above_it_has_a_sound_covariance(
    place: tuple[float, float, float],
) -> None:
    above = features(unit(100.0, RADAR), returns=returns((*place, 0.8), (*place, 0.8)))
    at_the_origin = replace(GEOMETRY, radar_pose=Transform.identity())
    (result,) = fuse(None, above, geometry=at_the_origin)
    assert np.linalg.eigvalsh(result.covariance).min() > 5e-4


# ------------------------------------------------------------------------------ time


def test_scans_are_brought_to_the_instant_of_the_picture() -> None:
    # Both scans saw the person before the picture, on the way towards the sensors.
    early = scan(*body(6.2, 0.0, -2.0), *walls(), available=0.0)
    late = scan(*body(6.1, 0.0, -2.0), *walls(), available=50.0)
    picture = camera_unit(box_of(6.0, 0.0), available=100.0)
    (result,) = fuse(picture, early, late)
    assert result.stamp_ns == picture.stamp_ns
    assert result.depth == pytest.approx(6.0, abs=0.03)


def test_scans_without_a_picture_are_brought_to_the_last_of_them() -> None:
    early = scan(*body(6.2, 0.0, -2.0), *walls(), available=0.0)
    late = scan(*body(6.1, 0.0, -2.0), *walls(), available=50.0)
    (result,) = fuse(None, late, early)
    assert result.stamp_ns == late.stamp_ns
    assert result.position[0] == pytest.approx(6.1, abs=0.03)


def test_a_cloud_of_a_hundred_thousand_returns_is_thinned_and_not_choked_on() -> None:
    places = np.random.default_rng(1).uniform([5.8, -0.2, 0.3], [6.2, 0.2, 1.6], (100_000, 3))
    dense = np.column_stack([places, np.full(100_000, 0.8)])
    (result,) = fuse(camera_unit(box_of(6.0, 0.0)), scan(*dense, *walls()))
    assert result.range_from == 'radar'
    assert result.depth == pytest.approx(6.0, abs=0.05)
    assert len(fuse(None, scan(*dense))) == 1


edge_of = st.floats(-50.0, 700.0)
coordinate = st.floats(-70.0, 70.0)


@given(
    st.lists(st.tuples(edge_of, edge_of, edge_of, edge_of), max_size=5),
    st.lists(st.tuples(coordinate, coordinate, coordinate, st.floats(-40, 40)), max_size=20),
)
def test_whatever_is_seen_measurements_are_finite_with_positive_covariances(
    boxes: list[tuple[float, float, float, float]],
    rows: list[tuple[float, float, float, float]],
) -> None:
    for result in fuse(camera_unit(*(Box(*box) for box in boxes)), scan(*rows)):
        assert np.isfinite(result.position).all()
        assert np.isfinite(result.covariance).all()
        assert np.linalg.eigvalsh(result.covariance).min() > 0
        assert np.isfinite(result.radial_velocity) == (RADAR in result.seen_by)


def test_what_a_followed_picture_shows_is_marked_as_repeated_and_clusters_are_not() -> None:
    followed = replace(camera_unit(box_of(6.0, 0.7)), followed=True)
    person, other = fuse(followed, scan(*body(6.0, 0.7, 0.8), *body(5.0, 4.5, -0.9), *walls()))
    assert person.repeated
    assert person.otherwise is not None
    assert person.otherwise.repeated
    assert other.box is None
    assert not other.repeated
