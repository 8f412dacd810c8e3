"""How far people are by their foot on the ground and by their size, seen from a drone."""

from __future__ import annotations

import numpy as np
import pytest
from hand_made_units import features, returns, unit

from mmedge_ros.core.data_types import CAMERA, RADAR, Box, Detection, Measurement
from mmedge_ros.geometry.ground_plane import GroundView
from mmedge_ros.geometry.projection import CameraModel
from mmedge_ros.geometry.rotations import rotation_by
from mmedge_ros.geometry.sensor_poses import OPTICAL_TO_BODY, SensorGeometry
from mmedge_ros.geometry.transforms import Transform
from mmedge_ros.tracking.box_ranges import GroundReadings
from mmedge_ros.tracking.decision_fusion import DecisionFusionParameters, fuse_detections

MODEL = CameraModel.nominal(640, 480, 450.0)
# Six metres up, and looking down by 20 degrees.
LEANS = rotation_by(np.array([0.0, np.radians(20.0), 0.0]))
EYE = np.array([0.0, 0.0, 6.0])
GEOMETRY = SensorGeometry(
    'odom', MODEL, Transform(LEANS @ OPTICAL_TO_BODY, EYE), Transform(LEANS, EYE)
)
KNOWN = GroundView(np.zeros(3), np.zeros(2), np.diag([0.05**2, 0.005**2, 0.005**2]))
VAGUE = KNOWN._replace(covariance=np.diag([3.0**2, 0.2**2, 0.2**2]))


def box_of(away: float, stature: float, feet: float = 0.0) -> Box:
    """Box of a person straight ahead of whom what is below ``feet`` m is hidden."""
    points = GEOMETRY.camera_pose.inverse().apply([[away, 0.0, feet], [away, 0.0, stature]])
    ((u, bottom), (_, top)), _ = MODEL.project(points)
    half = 0.15 * (bottom - top)
    return Box(u - half, top, u + half, bottom)


def measured(
    box: Box, ground: GroundView | None, *echoes: tuple[float, float, float, float]
) -> tuple[Measurement, GroundReadings | None]:
    """Measure one box; returns are at x, y, z in the tracking frame."""
    table = returns(*echoes)
    table[:, :3] = GEOMETRY.radar_pose.inverse().apply(table[:, :3])
    camera = features(
        unit(100.0, CAMERA), detections=(Detection(box, 0.9, 'person'),), image_size=(640, 480)
    )
    scans = [features(unit(100.0, RADAR), returns=table.astype(np.float32))] if echoes else []
    told: list[GroundReadings] = []
    first, *_ = fuse_detections(
        camera, scans, GEOMETRY, DecisionFusionParameters(), None, ground, told.append
    )
    return first, told[0] if told else None


def away(measurement: Measurement) -> float:
    return float(np.hypot(*measurement.position[:2]))


@pytest.mark.parametrize('stature', [1.2, 1.68, 2.0])
def test_on_known_ground_tall_and_small_people_are_where_they_stand(stature: float) -> None:
    box = box_of(14.0, stature)
    by_ground, _ = measured(box, KNOWN)
    by_size, _ = measured(box, None)
    assert away(by_ground) == pytest.approx(14.0, abs=0.7)
    assert by_ground.range_from == 'ground'
    assert by_size.range_from == 'height'
    assert abs(away(by_ground) - 14.0) <= abs(away(by_size) - 14.0) + 0.3
    assert np.trace(by_ground.covariance) < np.trace(by_size.covariance)


def test_on_ground_of_which_little_is_known_the_size_counts() -> None:
    by_size, _ = measured(box_of(14.0, 2.0), None)
    both, _ = measured(box_of(14.0, 2.0), VAGUE)
    assert both.range_from == 'height'
    assert away(both) == pytest.approx(away(by_size), rel=0.1)


def test_where_foot_and_size_disagree_both_are_believed_less() -> None:
    whole, _ = measured(box_of(14.0, 1.68), KNOWN)
    hidden, _ = measured(box_of(14.0, 1.68, feet=0.8), KNOWN)
    assert np.trace(hidden.covariance) > 2.0 * np.trace(whole.covariance)


def test_a_foot_below_the_picture_says_nothing_of_the_ground() -> None:
    near = box_of(4.0, 1.68)
    assert near.y1 > 478.0
    cut, readings = measured(near._replace(y1=479.0), KNOWN)
    assert readings is not None
    assert len(readings.rows) == 0
    assert cut.range_from == 'ground'


@pytest.mark.parametrize('shown', [0.25, 0.5, 0.9])
def test_who_comes_in_from_below_is_where_the_head_is_as_high_as_people(shown: float) -> None:
    whole = box_of(4.0, 1.75)
    cut = whole._replace(y1=479.0, y0=479.0 - shown * 60.0)
    # The head rises into the picture as the body comes nearer to its middle.
    there = EYE[2] - 1.68
    ray = GEOMETRY.camera_pose.rotate(MODEL.bearing(np.array([[cut.x0, cut.y0]])))[0]
    expected = there * np.hypot(ray[0], ray[1]) / -ray[2]
    by_head, _ = measured(cut, KNOWN)
    by_size, _ = measured(cut, None)
    assert away(by_head) == pytest.approx(expected, rel=0.05)
    assert away(by_size) > 2.0 * away(by_head)


def test_what_flies_with_the_drone_is_nobody() -> None:
    table = returns((0.4, 0.1, -0.1, 0.8))
    scan = features(unit(100.0, RADAR), returns=table)
    found = [
        len(fuse_detections(None, [scan], GEOMETRY, DecisionFusionParameters(), None, ground))
        for ground in (KNOWN, None)
    ]
    assert found == [0, 1]


def test_a_car_is_as_tall_as_cars_are() -> None:
    box = box_of(14.0, 1.5)
    placed = {}
    for label in ('person', 'car'):
        camera = features(
            unit(100.0, CAMERA), detections=(Detection(box, 0.9, label),), image_size=(640, 480)
        )
        (measurement,) = fuse_detections(camera, [], GEOMETRY, DecisionFusionParameters())
        placed[label] = away(measurement)
    assert placed['car'] == pytest.approx(14.0, abs=2.0)
    assert placed['car'] / placed['person'] == pytest.approx(1.5 / 1.68, abs=0.03)


def test_returns_of_a_person_tell_how_high_the_ground_is() -> None:
    # The ground is 0.5 m higher than is believed: the foot seems to be farther away.
    higher = box_of(14.0, 1.68 + 0.5, feet=0.5)
    echoes = [(14.0 + 0.02 * n, 0.0, 1.4, 0.8) for n in range(4)]
    _, readings = measured(higher, VAGUE, *echoes)
    assert readings is not None
    (row,), (innovation,) = readings.rows, readings.innovations
    assert innovation / row[0] == pytest.approx(0.5, abs=0.15)


def test_returns_are_as_high_as_people_whatever_the_elevation_of_the_radar_says() -> None:
    echoes = [(14.0, 3.0, 4.0, 0.8), (14.1, 3.0, 4.2, 0.8)]
    camera = features(unit(100.0, CAMERA), image_size=(640, 480))
    table = returns(*echoes)
    table[:, :3] = GEOMETRY.radar_pose.inverse().apply(table[:, :3])
    scan = features(unit(100.0, RADAR), returns=table.astype(np.float32))
    heights = []
    for ground in (KNOWN, None):
        (cluster,) = fuse_detections(
            camera, [scan], GEOMETRY, DecisionFusionParameters(), None, ground
        )
        heights.append(cluster.position[2])
        distance = np.linalg.norm(np.mean([e[:3] for e in echoes], axis=0) - EYE)
        assert np.linalg.norm(cluster.position - EYE) == pytest.approx(distance, rel=0.01)
    assert heights[0] == pytest.approx(0.9, abs=0.05)
    assert heights[1] == pytest.approx(4.1, abs=0.05)
