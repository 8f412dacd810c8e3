"""Returns land in the cell of the picture that shows them, with what is known of them."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hand_made_units import features, unit
from hypothesis import given
from hypothesis import strategies as st

from mmedge_ros.data_types import RADAR
from mmedge_ros.fusion.return_raster import raster_of_returns
from mmedge_ros.geometry.projection import CameraModel
from mmedge_ros.geometry.sensor_poses import OPTICAL_TO_BODY, SensorGeometry
from mmedge_ros.geometry.transforms import Transform

K = np.array([[400.0, 0, 319.5], [0, 400, 239.5], [0, 0, 1]])
MODEL = CameraModel(640, 480, K, np.zeros(0), 'none')
# The radar is half a metre to the right of the camera.
CAMERA_POSE = Transform(OPTICAL_TO_BODY, np.zeros(3))
RADAR_POSE = Transform(np.eye(3), np.array([0.0, -0.5, 0.0]))
STANDING = SensorGeometry('odom', MODEL, CAMERA_POSE, RADAR_POSE, radar_velocity=np.zeros(3))


def scan(*rows: tuple[float, float, float, float, float]):
    """Returns (x, y, z, velocity, snr) in the radar's frame."""
    return features(unit(100, RADAR), returns=np.array(rows, np.float32).reshape(-1, 5))


def occupied(raster: np.ndarray) -> list[tuple[int, int]]:
    return [tuple(place) for place in np.argwhere(raster[0]).tolist()]


def test_a_near_return_lies_aside_by_the_parallax() -> None:
    far = raster_of_returns(scan((400.0, 0.5, 0.0, 0.0, 10.0)), STANDING)
    near = raster_of_returns(scan((2.0, 0.0, 0.0, 0.0, 10.0)), STANDING)
    assert occupied(far) == [(15, 20)]
    # Half a metre to the right at two metres is 100 px.
    assert occupied(near) == [(15, 26)]


def test_each_channel_says_what_it_should() -> None:
    found = raster_of_returns(
        scan((10.0, 0.5, 0.0, 2.0, 10.0), (20.0, 0.5, 0.0, 4.0, 30.0)), STANDING
    )
    (place,) = occupied(found)
    count, nearness, velocity, strength = found[(slice(None), *place)]
    assert count == pytest.approx(math.log(3))
    assert nearness == pytest.approx(0.5)
    assert velocity == pytest.approx(0.6)
    assert strength == pytest.approx(0.75)


def test_what_is_not_known_of_a_return_counts_for_nothing() -> None:
    found = raster_of_returns(
        scan((10.0, 0.5, 0.0, math.nan, math.nan), (10.0, 0.5, 0.0, 2.0, math.nan)), STANDING
    )
    (place,) = occupied(found)
    assert found[(slice(2, 4), *place)] == pytest.approx([0.4, 0.0])
    alone = raster_of_returns(scan((10.0, 0.5, 0.0, math.nan, 5.0)), STANDING)
    assert np.isfinite(alone).all()
    assert alone[2].max() == 0.0


def test_the_motion_of_the_drone_is_taken_out() -> None:
    flying = SensorGeometry(
        'odom', MODEL, CAMERA_POSE, RADAR_POSE, radar_velocity=np.array([5.0, 0.0, 0.0])
    )
    # A wall ahead comes closer as fast as the drone flies.
    found = raster_of_returns(scan((50.0, 0.0, 0.0, -5.0, 10.0)), flying)
    assert found[2].max() == pytest.approx(0.0, abs=1e-6)
    still = raster_of_returns(scan((50.0, 0.0, 0.0, -5.0, 10.0)), STANDING)
    assert still[2].min() == pytest.approx(-1.0)


def test_without_odometry_the_world_tells_how_the_drone_moves() -> None:
    unknown = SensorGeometry('base_link', MODEL, CAMERA_POSE, RADAR_POSE)
    angles = np.radians(np.linspace(-30, 30, 15))
    walls = [(30 * math.cos(a), 30 * math.sin(a), 0.0, -5 * math.cos(a), 10.0) for a in angles]
    found = raster_of_returns(scan(*walls), unknown)
    assert np.abs(found[2]).max() < 0.02


def test_what_is_outside_the_picture_is_left_out() -> None:
    behind, aside = (-5.0, 0.0, 0.0, 1.0, 10.0), (5.0, 30.0, 0.0, 1.0, 10.0)
    assert not raster_of_returns(scan(behind, aside), STANDING).any()
    assert not raster_of_returns(scan(), STANDING).any()


def test_a_picture_of_another_shape_is_laid_onto_the_canvas_as_the_encoders_do() -> None:
    k = np.array([[800.0, 0, 639.5], [0, 800, 359.5], [0, 0, 1]])
    wide = SensorGeometry(
        'odom',
        CameraModel(1280, 720, k, np.zeros(0), 'none'),
        CAMERA_POSE,
        RADAR_POSE,
        radar_velocity=np.zeros(3),
    )
    # 350 px above the middle of 720: 175 px on the canvas, whose middle row is 240.
    high = scan((400.0, 0.5, 175.0, 0.0, 10.0))
    assert occupied(raster_of_returns(high, wide)) == [((240 - 175) // 16, 20)]


def test_without_calibration_the_camera_sees_what_the_radar_does() -> None:
    unknown = SensorGeometry('base_link', None, CAMERA_POSE, CAMERA_POSE_AS_RADAR)
    edge = scan((10.0, 7.9, 5.9, 0.0, 10.0))
    assert occupied(raster_of_returns(edge, unknown)) == [(0, 0)]


CAMERA_POSE_AS_RADAR = Transform.identity()


@given(
    st.lists(
        st.tuples(
            *[st.floats(width=32, allow_nan=False, allow_infinity=False)] * 3,
            *[st.floats(width=32, allow_infinity=False)] * 2,
        ),
        max_size=30,
    )
)
def test_hostile_returns_make_a_tame_raster(rows) -> None:
    for geometry in (STANDING, SensorGeometry('b', MODEL, CAMERA_POSE, RADAR_POSE)):
        raster = raster_of_returns(scan(*rows), geometry)
        assert np.isfinite(raster).all()
        assert np.abs(raster).max(initial=0.0) <= 10.0


def test_a_cloud_of_a_lidar_is_thinned() -> None:
    rows = np.tile(np.array([[10.0, 0.5, 0.0, 0.0, 10.0]], np.float32), (100_000, 1))
    raster = raster_of_returns(features(unit(100, RADAR), returns=rows), STANDING)
    assert 0 < raster[0].max() <= math.log(501)
