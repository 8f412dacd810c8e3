"""The radar's part of feature fusion, brought into the camera's view.

A radar's grid lies in a virtual pinhole view along the radar's x axis. What is far compared to
the distance between the sensors is seen by the camera in the same direction, so a rotation and
the camera's intrinsics carry the grid over; parallax and lens distortion are neglected, they are
less than a cell of 16 px. Returns have a depth: they are laid over the picture with the true
extrinsics, as a raster with the same cells.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mmedge_ros.core.data_types import FloatArray, UnitFeatures
from mmedge_ros.encoding.feature_grid import (
    CANVAS,
    CELL,
    COLUMNS,
    RADAR_CHANNELS,
    RADAR_GRID,
    ROWS,
    VIEW_HALF_WIDTH,
    canvas_placement,
    cell_middles,
    view_positions,
)
from mmedge_ros.geometry.projection import CameraModel
from mmedge_ros.geometry.sensor_poses import SensorGeometry
from mmedge_ros.tracking import FusionError
from mmedge_ros.tracking.return_placement import speeds_over_ground, thinned

RASTER_CHANNELS = 4

_FOCAL = CANVAS[0] / 2 / VIEW_HALF_WIDTH
# Without calibration the camera is taken for one that sees what the radar's grid shows.
ASSUMED_CAMERA = CameraModel(
    *CANVAS,
    np.array(
        [
            [_FOCAL, 0.0, (CANVAS[0] - 1) / 2],
            [0.0, _FOCAL, (CANVAS[1] - 1) / 2],
            [0.0, 0.0, 1.0],
        ]
    ),
    np.zeros(0),
    'none',
)
RADAR_INPUT = (RADAR_CHANNELS + RASTER_CHANNELS, ROWS, COLUMNS)

# Scales that bring each channel to about 1, and limits that keep a hostile return harmless.
_DEPTH_SCALE, _NEAREST = 5.0, 0.5
_SPEED_SCALE, _FASTEST = 5.0, 50.0
_SNR_SCALE, _STRONGEST = 40.0, 100.0
_GRID_STRIDE = 16
# Directions nearly at right angles to the radar's axis are far outside its view.
_LEAST_FORWARD = 1e-3
# Rotations that differ by less than this (in the entries of their matrix) are one: what
# odometry adds to both sensors' poses cancels, but for rounding.
_ROTATION_DIGITS = 6


class _View(NamedTuple):
    """What a warp depends on: rotation from optical to radar axes, and the camera."""

    rotation: tuple[float, ...]
    intrinsics: tuple[float, ...]
    width: int
    height: int


class _Sampling(NamedTuple):
    """Four cells of the radar's grid per cell of the canvas, with weights; both (4, 1200)."""

    cells: NDArray[np.intp]
    weights: NDArray[np.float32]


def radar_fusion_input(scan: UnitFeatures, geometry: SensorGeometry) -> NDArray[np.float32]:
    """Return what fusion takes of one scan: its grid and its returns in the camera's view.

    The result is (20, 30, 40), 16 channels of the grid and 4 of `raster_of_returns`. It depends
    on nothing but the arguments; training and flight both take it from here. Without a
    calibrated camera the picture is taken to show what the radar's view shows.

    :param geometry: sensor poses at the stamp of the scan
    :raises FusionError: if the grid has a wrong shape or a value that is not finite
    """
    grid = usable_grid(scan, RADAR_GRID)
    return np.concatenate((warped_grid(grid, geometry), raster_of_returns(scan, geometry)))


def warped_grid(grid: NDArray[np.floating], geometry: SensorGeometry) -> NDArray[np.float32]:
    """Carry a grid (C, 30, 40) from the radar's view to the canvas, bilinearly.

    Cells that the radar's view does not reach are zero.
    """
    sampling = _sampling(_view_of(geometry))
    flat = grid.reshape(len(grid), -1).astype(np.float32)
    warped = (flat[:, sampling.cells] * sampling.weights).sum(axis=1)
    return np.asarray(warped.reshape(grid.shape), np.float32)


def usable_grid(unit: UnitFeatures, shape: tuple[int, int, int]) -> NDArray[np.float32]:
    """Return a unit's grid in float32.

    :raises FusionError: if it has another shape or a value that is not finite
    """
    if unit.grid.shape != shape:
        if not unit.grid.size:
            raise FusionError(f'a {unit.modality} unit without a feature grid')
        raise FusionError(
            f'a {unit.modality} unit with a feature grid of {unit.grid.shape}; this bundle takes '
            f'{shape}: encoders and fusion must use the same one'
        )
    grid = unit.grid.astype(np.float32)
    # Aggregation would carry one such value through all that follows in the window.
    if not np.isfinite(grid).all():
        raise FusionError(f'a {unit.modality} unit with a feature grid that is not finite')
    return grid


def _view_of(geometry: SensorGeometry) -> _View:
    camera = geometry.camera or ASSUMED_CAMERA
    rotation = geometry.radar_pose.rotation.T @ geometry.camera_pose.rotation
    # Adding zero makes -0 and 0 one key.
    rounded = np.round(rotation, _ROTATION_DIGITS) + 0.0
    return _View(
        tuple(rounded.ravel().tolist()),
        tuple(camera.k.ravel().tolist()),
        camera.width,
        camera.height,
    )


@lru_cache(maxsize=16)
def _sampling(view: _View) -> _Sampling:
    """Find for each cell of the canvas where the radar's grid shows the same direction."""
    placement = canvas_placement(view.width, view.height)
    middles = cell_middles(_GRID_STRIDE).reshape(-1, 2).astype(np.float64)
    offset = (placement.x_offset, placement.y_offset)
    # Pixel (0, 0) is the centre of the upper left pixel, which begins at 0 on the canvas.
    pixels = (middles - offset) / (placement.x_scale, placement.y_scale) - 0.5
    plane = np.column_stack([pixels, np.ones(len(pixels))])
    rays = plane @ np.linalg.inv(np.reshape(view.intrinsics, (3, 3))).T
    seen = rays @ np.reshape(view.rotation, (3, 3)).T
    ahead = seen[:, 0] > _LEAST_FORWARD
    seen[~ahead] = (1.0, 0.0, 0.0)
    places = view_positions(seen)
    inside = ahead & ((places >= 0.0) & (places < (ROWS, COLUMNS))).all(axis=1)
    places = np.where(inside[:, None], places - 0.5, 0.0)
    first = np.floor(places).astype(np.intp)
    share = places - first
    cells, weights = [], []
    for down in (0, 1):
        for right in (0, 1):
            row = np.clip(first[:, 0] + down, 0, ROWS - 1)
            column = np.clip(first[:, 1] + right, 0, COLUMNS - 1)
            cells.append(row * COLUMNS + column)
            vertical = share[:, 0] if down else 1.0 - share[:, 0]
            horizontal = share[:, 1] if right else 1.0 - share[:, 1]
            weights.append(np.where(inside, vertical * horizontal, 0.0))
    return _Sampling(np.array(cells, np.intp), np.array(weights, np.float32))


def raster_of_returns(scan: UnitFeatures, geometry: SensorGeometry) -> NDArray[np.float32]:
    """Return the raster (4, 30, 40) of a scan's returns over the canvas.

    Channels: ln(1 + count); 5 / depth of the nearest, depth in m along the optical axis; mean
    velocity over ground / 5 m/s (returns without one are left out); largest SNR / 40 dB.
    Cells without returns are zero. Without a calibrated camera `ASSUMED_CAMERA` stands in.

    :param geometry: sensor poses at the stamp of the scan
    """
    returns = thinned(scan.returns)
    points = returns[:, :3].astype(np.float64)
    with np.errstate(over='ignore', invalid='ignore'):
        speeds = speeds_over_ground(points, returns[:, 3].astype(np.float64), geometry)
        to_camera = geometry.camera_pose.inverse().compose(geometry.radar_pose)
        optical = to_camera.apply(points)
    camera = geometry.camera or ASSUMED_CAMERA
    pixels, in_view = camera.project(optical)
    cells = _cells(pixels[in_view], camera)
    raster = np.zeros((RASTER_CHANNELS, ROWS * COLUMNS), np.float32)
    raster[0] = np.log1p(np.bincount(cells, minlength=ROWS * COLUMNS))
    depths = np.maximum(optical[in_view, 2], _NEAREST)
    np.maximum.at(raster[1], cells, (_DEPTH_SCALE / depths).astype(np.float32))
    raster[2] = _mean(np.clip(speeds[in_view], -_FASTEST, _FASTEST) / _SPEED_SCALE, cells)
    strengths = np.clip(np.nan_to_num(returns[in_view, 4], nan=0.0), 0.0, _STRONGEST)
    np.maximum.at(raster[3], cells, strengths / np.float32(_SNR_SCALE))
    return raster.reshape(RASTER_CHANNELS, ROWS, COLUMNS)


def _cells(pixels: FloatArray, camera: CameraModel) -> NDArray[np.intp]:
    """Return the cell (N,), row by row, of pixels (N, 2) in the picture."""
    placement = canvas_placement(camera.width, camera.height)
    # Pixel (0, 0) is the centre of the upper left pixel, which begins at 0 on the canvas.
    columns = (pixels[:, 0] + 0.5) * placement.x_scale + placement.x_offset
    rows = (pixels[:, 1] + 0.5) * placement.y_scale + placement.y_offset
    column = np.clip(columns // CELL, 0, COLUMNS - 1).astype(np.intp)
    row = np.clip(rows // CELL, 0, ROWS - 1).astype(np.intp)
    return np.asarray(row * COLUMNS + column, np.intp)


def _mean(values: FloatArray, cells: NDArray[np.intp]) -> FloatArray:
    """Return the mean (1200,) of the values in each cell; NaN are not counted."""
    known = np.isfinite(values)
    sums = np.bincount(cells[known], values[known], minlength=ROWS * COLUMNS)
    counts = np.bincount(cells[known], minlength=ROWS * COLUMNS)
    return np.asarray(sums / np.maximum(counts, 1), np.float64)
