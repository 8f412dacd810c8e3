"""Radar returns laid over the picture, as a raster with the cells of a feature grid.

Unlike the grid of the radar's own network, which lives in the radar's view, returns have a
depth: they are projected with the true extrinsics, parallax included.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mmedge_ros.data_types import FloatArray, UnitFeatures
from mmedge_ros.encoding.feature_grid import (
    CANVAS,
    CELL,
    COLUMNS,
    ROWS,
    VIEW_HALF_WIDTH,
    canvas_placement,
)
from mmedge_ros.fusion.return_placement import speeds_over_ground, thinned
from mmedge_ros.geometry.projection import CameraModel
from mmedge_ros.geometry.sensor_poses import SensorGeometry

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

# Scales that bring each channel to about 1, and limits that keep a hostile return harmless.
_DEPTH_SCALE, _NEAREST = 5.0, 0.5
_SPEED_SCALE, _FASTEST = 5.0, 50.0
_SNR_SCALE, _STRONGEST = 40.0, 100.0


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
