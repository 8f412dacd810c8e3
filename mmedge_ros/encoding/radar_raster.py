"""Radar returns as two rasters, the input of the radar's networks.

``view`` (6, 30, 40) has the cells of the radar's feature grid (feature_grid), ``birds_eye``
(6, 32, 40) the same columns and 32 bins of 2 m of range. Channels of both: ln(1 + count);
greatest SNR / 40 dB; 5 m / depth of the nearest; mean velocity / 5 m/s; the same with the
sensor's own motion taken out, as far as static returns show it; share of returns that move.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mmedge_ros.encoding.feature_grid import COLUMNS, ROWS, view_positions
from mmedge_ros.geometry.ego_velocity import ego_velocity

RASTER_CHANNELS = 6
RANGE_BINS = 32
RANGE_BIN = 2.0  # m

# Scales bring values to about one; limits keep hostile returns harmless.
_DEPTH_SCALE, _NEAREST = 5.0, 0.5
_SPEED_SCALE, _FASTEST = 5.0, 50.0
_SNR_SCALE, _STRONGEST = 40.0, 100.0
# Twice what static returns may differ from the sensor's velocity (ego_velocity).
_MOVING = 0.3
# All pairs of returns may be compared for the own velocity: of a dense cloud every k-th.
_MOST_RETURNS = 256


class RadarRasters(NamedTuple):
    """Both rasters of one scan, float32; zero in cells without returns."""

    view: NDArray[np.float32]
    birds_eye: NDArray[np.float32]


def radar_rasters(returns: NDArray[np.float32]) -> RadarRasters:
    """Lay a scan's returns on rasters; those outside the radar's view are left out.

    :param returns: (N, 5) x, y, z (m), velocity (m/s), snr (dB) in the sensor's frame; the
        latter two may be NaN
    """
    returns = returns[:: max(-(-len(returns) // _MOST_RETURNS), 1)]
    returns = returns[np.isfinite(returns[:, :3]).all(axis=1)]
    ahead = returns[returns[:, 0] > _NEAREST / 10]
    points = ahead[:, :3].astype(np.float64)
    places = np.floor(view_positions(points)) if len(points) else np.zeros((0, 2))
    values = return_values(ahead, points, returns)
    row, column = places.T
    beside = (column >= 0) & (column < COLUMNS)
    inside = beside & (row >= 0) & (row < ROWS)
    distance = np.sqrt((points**2).sum(axis=1))
    bins = np.minimum(distance // RANGE_BIN, RANGE_BINS - 1)
    # One below the other, both rasters are gathered at once.
    rows = np.concatenate((row[inside], ROWS + bins[beside]))
    columns = np.concatenate((column[inside], column[beside]))
    both = np.concatenate((values[:, inside], values[:, beside]), axis=1)
    raster = _gathered(both, (rows * COLUMNS + columns).astype(np.intp))
    return RadarRasters(raster[:, :ROWS], raster[:, ROWS:])


def return_values(
    ahead: NDArray[np.float32], points: NDArray[np.float64], returns: NDArray[np.float32]
) -> NDArray[np.float64]:
    """Return per return: snr, inverse depth, velocity, compensated velocity, is moving; (5, N)."""
    speeds = ahead[:, 3].astype(np.float64)
    own = ego_velocity(returns[:, :3].astype(np.float64), returns[:, 3].astype(np.float64))
    over_ground = speeds
    if own is not None:
        distance = np.sqrt((points**2).sum(axis=1))
        over_ground = speeds + points @ own / np.maximum(distance, 1e-6)
    snr = np.clip(np.nan_to_num(ahead[:, 4].astype(np.float64), nan=0.0), 0.0, _STRONGEST)
    return np.stack(
        (
            snr / _SNR_SCALE,
            _DEPTH_SCALE / np.maximum(points[:, 0], _NEAREST),
            np.clip(speeds, -_FASTEST, _FASTEST) / _SPEED_SCALE,
            np.clip(over_ground, -_FASTEST, _FASTEST) / _SPEED_SCALE,
            np.abs(over_ground) > _MOVING,
        )
    )


def _gathered(values: NDArray[np.float64], cells: NDArray[np.intp]) -> NDArray[np.float32]:
    """Gather values (5, N) of returns in cells (N,) of both rasters, to (6, 62, 40)."""
    rows = ROWS + RANGE_BINS
    size = rows * COLUMNS
    snr, depth, speed, over_ground, moving = values
    known = np.isfinite(speed) & np.isfinite(over_ground)
    timed = np.where(known, speed, 0.0), np.where(known, over_ground, 0.0)
    weights = np.concatenate((np.ones(len(cells)), moving, known, *timed))
    places = (cells + size * np.arange(5)[:, None]).ravel()
    sums = np.bincount(places, weights, 5 * size).reshape(5, size)
    raster = np.zeros((RASTER_CHANNELS, size), np.float32)
    raster[0] = np.log1p(sums[0])
    np.maximum.at(raster[1], cells, snr.astype(np.float32))
    np.maximum.at(raster[2], cells, depth.astype(np.float32))
    raster[3:5] = sums[3:] / np.maximum(sums[2], 1.0)
    raster[5] = sums[1] / np.maximum(sums[0], 1.0)
    return raster.reshape(RASTER_CHANNELS, rows, COLUMNS)
