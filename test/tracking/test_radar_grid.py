"""What a radar sees in a direction lands where the camera sees that direction."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hand_made_units import features, unit
from hypothesis import given
from hypothesis import strategies as st

from mmedge_ros.core.data_types import RADAR
from mmedge_ros.encoding.feature_grid import CELL, RADAR_GRID, canvas_placement, view_positions
from mmedge_ros.geometry.projection import CameraModel
from mmedge_ros.geometry.sensor_poses import OPTICAL_TO_BODY, SensorGeometry
from mmedge_ros.geometry.transforms import Transform
from mmedge_ros.tracking import FusionError
from mmedge_ros.tracking.radar_grid import (
    RADAR_INPUT,
    radar_fusion_input,
    raster_of_returns,
    usable_grid,
    warped_grid,
)


def turned(yaw: float = 0.0, pitch: float = 0.0) -> np.ndarray:
    """Rotation of a body that is turned to the left, then down, by so many degrees."""
    a, b = math.radians(yaw), math.radians(pitch)
    about_z = [[math.cos(a), -math.sin(a), 0], [math.sin(a), math.cos(a), 0], [0, 0, 1]]
    about_y = [[math.cos(b), 0, math.sin(b)], [0, 1, 0], [-math.sin(b), 0, math.cos(b)]]
    return np.array(about_z) @ np.array(about_y)


def camera(width: int = 640, height: int = 480, focal: float = 420.0) -> CameraModel:
    k = np.array([[focal, 0, (width - 1) / 2], [0, focal, (height - 1) / 2], [0, 0, 1]])
    return CameraModel(width, height, k, np.zeros(0), 'none')


def geometry(
    model: CameraModel | None, camera_turn: np.ndarray, radar_turn: np.ndarray, body=None
) -> SensorGeometry:
    body = body or Transform.identity()
    return SensorGeometry(
        'odom',
        model,
        body.compose(Transform(camera_turn @ OPTICAL_TO_BODY, np.array([0.1, 0.0, 0.0]))),
        body.compose(Transform(radar_turn, np.zeros(3))),
    )


def scan(grid: np.ndarray | None = None):
    grid = np.zeros(RADAR_GRID, np.float16) if grid is None else grid
    return features(unit(100, RADAR), grid=grid)


@given(
    st.floats(-15, 15),
    st.floats(-15, 15),
    st.floats(-15, 15),
    st.floats(-15, 15),
    st.sampled_from([(640, 480), (1280, 720), (480, 640), (333, 222)]),
    st.floats(-0.55, 0.55),
    st.floats(-0.4, 0.4),
)
def test_a_direction_is_found_again_in_the_picture(
    yaw, pitch, camera_yaw, camera_pitch, size, y, z
):
    model = camera(*size, focal=0.66 * size[0])
    result = geometry(model, turned(camera_yaw, camera_pitch), turned(yaw, pitch))
    direction = np.array([1.0, y, z])
    row, column = view_positions(direction[None])[0]
    # A smooth mound in the radar's view, whose middle can be located to a part of a cell.
    rows, columns = np.mgrid[:30, :40] + 0.5
    mound = np.exp(-((rows - row) ** 2 + (columns - column) ** 2) / (2 * 1.5**2))
    warped = warped_grid(mound[None].astype(np.float32), result)[0]
    in_camera = result.camera_pose.rotation.T @ result.radar_pose.rotation @ direction
    pixels, in_view = model.project(in_camera[None])
    p = canvas_placement(*size)
    x = (pixels[0, 0] + 0.5) * p.x_scale + p.x_offset
    down = (pixels[0, 1] + 0.5) * p.y_scale + p.y_offset
    if not in_view[0] or not (40 < x < 600 and 40 < down < 440):
        return
    peak_row, peak_column = np.unravel_index(warped.argmax(), warped.shape)
    assert abs((peak_column + 0.5) * CELL - x) <= 1.1 * CELL
    assert abs((peak_row + 0.5) * CELL - down) <= 1.1 * CELL


def test_what_the_radar_does_not_see_is_zero() -> None:
    ones = np.ones(RADAR_GRID, np.float32)
    backwards = geometry(camera(), np.eye(3), turned(yaw=180))
    assert not warped_grid(ones, backwards).any()
    aside = warped_grid(ones, geometry(camera(), np.eye(3), turned(yaw=30)))[0]
    assert aside[:, 0].max() == pytest.approx(1.0)
    assert not aside[:, -1].any()


@given(st.floats(-180, 180), st.floats(-80, 80))
def test_how_the_drone_itself_is_turned_does_not_matter(yaw: float, pitch: float) -> None:
    grid = np.random.default_rng(2).normal(size=RADAR_GRID).astype(np.float32)
    level = geometry(camera(), turned(3, 10), turned(-2, 1))
    body = Transform(turned(yaw, pitch), np.array([300.0, -20.0, 40.0]))
    tilted = geometry(camera(), turned(3, 10), turned(-2, 1), body)
    np.testing.assert_allclose(warped_grid(grid, level), warped_grid(grid, tilted), atol=1e-3)


def test_the_input_of_fusion_is_the_grid_and_the_returns() -> None:
    rows = np.array([[10.0, 0.0, 0.0, 0.0, 20.0]], np.float32)
    given_scan = features(
        unit(100, RADAR), grid=np.full(RADAR_GRID, 0.5, np.float16), returns=rows
    )
    result = radar_fusion_input(given_scan, geometry(camera(), np.eye(3), np.eye(3)))
    assert result.shape == RADAR_INPUT
    assert result.dtype == np.float32
    assert result[:16, 15, 20] == pytest.approx(0.5)
    assert result[16].sum() == pytest.approx(math.log(2))


@pytest.mark.parametrize(
    ('grid', 'words'),
    [
        (np.zeros((0, 0, 0), np.float16), 'without a feature grid'),
        (np.zeros((16, 40, 30), np.float16), r'\(16, 40, 30\); this bundle takes \(16, 30, 40\)'),
        (np.full(RADAR_GRID, np.nan, np.float16), 'not finite'),
        (np.full(RADAR_GRID, np.inf, np.float16), 'not finite'),
    ],
)
def test_a_grid_that_cannot_be_used_is_refused_with_words(grid: np.ndarray, words: str) -> None:
    with pytest.raises(FusionError, match=words):
        usable_grid(scan(grid), RADAR_GRID)


# ------------------------------------------------------------------- the raster of returns

K = np.array([[400.0, 0, 319.5], [0, 400, 239.5], [0, 0, 1]])
MODEL = CameraModel(640, 480, K, np.zeros(0), 'none')
# The radar is half a metre to the right of the camera.
CAMERA_POSE = Transform(OPTICAL_TO_BODY, np.zeros(3))
RADAR_POSE = Transform(np.eye(3), np.array([0.0, -0.5, 0.0]))
STANDING = SensorGeometry('odom', MODEL, CAMERA_POSE, RADAR_POSE, radar_velocity=np.zeros(3))


def scan_of(*rows: tuple[float, float, float, float, float]):
    """Returns (x, y, z, velocity, snr) in the radar's frame."""
    return features(unit(100, RADAR), returns=np.array(rows, np.float32).reshape(-1, 5))


def occupied(raster: np.ndarray) -> list[tuple[int, int]]:
    return [tuple(place) for place in np.argwhere(raster[0]).tolist()]


def test_a_near_return_lies_aside_by_the_parallax() -> None:
    far = raster_of_returns(scan_of((400.0, 0.5, 0.0, 0.0, 10.0)), STANDING)
    near = raster_of_returns(scan_of((2.0, 0.0, 0.0, 0.0, 10.0)), STANDING)
    assert occupied(far) == [(15, 20)]
    # Half a metre to the right at two metres is 100 px.
    assert occupied(near) == [(15, 26)]


def test_each_channel_says_what_it_should() -> None:
    result = raster_of_returns(
        scan_of((10.0, 0.5, 0.0, 2.0, 10.0), (20.0, 0.5, 0.0, 4.0, 30.0)), STANDING
    )
    (place,) = occupied(result)
    count, nearness, velocity, strength = result[(slice(None), *place)]
    assert count == pytest.approx(math.log(3))
    assert nearness == pytest.approx(0.5)
    assert velocity == pytest.approx(0.6)
    assert strength == pytest.approx(0.75)


def test_what_is_not_known_of_a_return_counts_for_nothing() -> None:
    result = raster_of_returns(
        scan_of((10.0, 0.5, 0.0, math.nan, math.nan), (10.0, 0.5, 0.0, 2.0, math.nan)), STANDING
    )
    (place,) = occupied(result)
    assert result[(slice(2, 4), *place)] == pytest.approx([0.4, 0.0])
    alone = raster_of_returns(scan_of((10.0, 0.5, 0.0, math.nan, 5.0)), STANDING)
    assert np.isfinite(alone).all()
    assert alone[2].max() == 0.0


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
    high = scan_of((400.0, 0.5, 175.0, 0.0, 10.0))
    assert occupied(raster_of_returns(high, wide)) == [((240 - 175) // 16, 20)]


def test_without_calibration_the_camera_sees_what_the_radar_does() -> None:
    unknown = SensorGeometry('base_link', None, CAMERA_POSE, CAMERA_POSE_AS_RADAR)
    edge = scan_of((10.0, 7.9, 5.9, 0.0, 10.0))
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
        raster = raster_of_returns(scan_of(*rows), geometry)
        assert np.isfinite(raster).all()
        assert np.abs(raster).max(initial=0.0) <= 10.0
