"""The range of one walking body over time, through all returns from where it is seen."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mmedge_ros.core.data_types import FloatArray

STEP = 0.1  # s
_CELL = 0.25  # m; a body is about as deep
# Cells that a path may move in one step: 7.5 m/s.
_REACH = 3
# More returns in one cell make a path no better.
_ENOUGH = 2.0
_SPREAD = ((-1, 0.5), (0, 1.0), (1, 0.5))
# What it costs to move by one cell, where Doppler says nothing, and for each cell it says
# otherwise.
_MOVING, _DISAGREEING = 0.05, 0.25
_LONGEST = 100_000


class RangePath(NamedTuple):
    """Ranges (N,) m at times (N,) s, and the weight of the returns (N,) that support each."""

    times: FloatArray
    ranges: FloatArray
    support: FloatArray


def range_path(
    times: FloatArray, ranges: FloatArray, velocities: FloatArray, weights: FloatArray
) -> RangePath | None:
    """Return the path that meets most returns and moves as their Doppler velocities say.

    Dynamic programming over cells of range and time. Returns (N) at ``times`` s and ``ranges``
    m recede with ``velocities`` m/s relative to the radar. None for times that lie too far
    apart.
    """
    begin, lowest = times.min(), ranges.min() - 1.0
    steps = int((times.max() - begin) / STEP) + 2
    cells = int((ranges.max() + 1.0 - lowest) / _CELL) + 2
    if steps * cells > _LONGEST * 10 or steps > _LONGEST:
        return None
    step = np.rint((times - begin) / STEP).astype(np.intp)
    at_step = ranges + velocities * (begin + step * STEP - times)
    cell = np.rint((at_step - lowest) / _CELL).astype(np.intp)
    support, moved = np.zeros((steps, cells)), np.zeros((steps, cells))
    for offset, share in _SPREAD:
        place = (step, np.clip(cell + offset, 0, cells - 1))
        np.add.at(support, place, share * weights)
        np.add.at(moved, place, share * weights * velocities)
    expected = np.where(support > 0.2, moved / np.maximum(support, 1e-9) * (STEP / _CELL), np.nan)
    path = _best_path(np.minimum(support, _ENOUGH), expected)
    at = np.arange(steps)
    return RangePath(begin + at * STEP, lowest + path * _CELL, support[at, path])


def _best_path(reward: FloatArray, expected: FloatArray) -> NDArray[np.intp]:
    """Return the cell (N,) at each step of the path with most reward (N, M).

    :param expected: (N, M) cells by which a path in that cell moves on, NaN where not known
    """
    steps, cells = reward.shape
    shifts = np.arange(-_REACH, _REACH + 1)
    came_from = np.zeros((steps, cells), np.intp)
    best = reward[0]
    at = np.arange(cells)
    source = at - shifts[:, None]
    inside = (source >= 0) & (source < cells)
    source = np.clip(source, 0, cells - 1)
    for step in range(1, steps):
        surprise = np.minimum(np.abs(shifts[:, None] - expected[step - 1][source]), 4.0)
        cost = np.where(
            np.isnan(surprise), _MOVING * np.abs(shifts[:, None]), _DISAGREEING * surprise
        )
        candidates = np.where(inside, best[source] - cost, -np.inf)
        chosen = candidates.argmax(axis=0)
        came_from[step] = source[chosen, at]
        best = candidates[chosen, at] + reward[step]
    path = np.zeros(steps, np.intp)
    path[-1] = best.argmax()
    for step in range(steps - 1, 0, -1):
        path[step - 1] = came_from[step, path[step]]
    return path
