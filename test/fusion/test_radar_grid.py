"""What a radar sees in a direction lands where the camera sees that direction."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hand_made_units import features, unit
from hypothesis import given
from hypothesis import strategies as st

from mmedge_ros.data_types import RADAR
from mmedge_ros.encoding.feature_grid import CELL, RADAR_GRID, canvas_placement, view_positions
from mmedge_ros.fusion import FusionError
from mmedge_ros.fusion.radar_grid import (
    RADAR_INPUT,
    radar_fusion_input,
    usable_grid,
    warped_grid,
)
from mmedge_ros.geometry.projection import CameraModel
from mmedge_ros.geometry.sensor_poses import OPTICAL_TO_BODY, SensorGeometry
from mmedge_ros.geometry.transforms import Transform


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
    found = geometry(model, turned(camera_yaw, camera_pitch), turned(yaw, pitch))
    direction = np.array([1.0, y, z])
    row, column = view_positions(direction[None])[0]
    # A smooth mound in the radar's view, whose middle can be told to a part of a cell.
    rows, columns = np.mgrid[:30, :40] + 0.5
    mound = np.exp(-((rows - row) ** 2 + (columns - column) ** 2) / (2 * 1.5**2))
    warped = warped_grid(mound[None].astype(np.float32), found)[0]
    in_camera = found.camera_pose.rotation.T @ found.radar_pose.rotation @ direction
    pixels, in_view = model.project(in_camera[None])
    p = canvas_placement(*size)
    x = (pixels[0, 0] + 0.5) * p.x_scale + p.x_offset
    down = (pixels[0, 1] + 0.5) * p.y_scale + p.y_offset
    if not in_view[0] or not (40 < x < 600 and 40 < down < 440):
        return
    peak_row, peak_column = np.unravel_index(warped.argmax(), warped.shape)
    assert abs((peak_column + 0.5) * CELL - x) <= 1.1 * CELL
    assert abs((peak_row + 0.5) * CELL - down) <= 1.1 * CELL


def test_without_calibration_the_picture_shows_what_the_radar_sees() -> None:
    grid = np.random.default_rng(1).normal(size=RADAR_GRID).astype(np.float16)
    same = geometry(None, np.eye(3), np.eye(3))
    np.testing.assert_allclose(warped_grid(grid, same), grid.astype(np.float32), atol=1e-6)


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
    found = radar_fusion_input(given_scan, geometry(camera(), np.eye(3), np.eye(3)))
    assert found.shape == RADAR_INPUT
    assert found.dtype == np.float32
    assert found[:16, 15, 20] == pytest.approx(0.5)
    assert found[16].sum() == pytest.approx(math.log(2))


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
