"""Unit networks whose results can be worked out by hand.

Of a grid (1, 2, 2) of one value v: it adds v to its own encoding, 10 v to that of the unit after
it, and 100 v to that of the unit before it; a change to it from e adds 1000 |v - e| at the first
lag and 10000 |v - e| at the second. All of an aggregate's two channels are equal but for decays.
"""

from __future__ import annotations

from collections import Counter

import numpy as np

from mmedge_ros.windows.unit_networks import Pooling, Projection

SHAPE = (1, 2, 2)
WIDTH = 2
DECAYS = (0.0, 2.0)


class HandMadeNetworks:
    """``projected`` counts by value, ``compared`` by lag, value and earlier value."""

    place = 'hand-made'
    grid_shape = SHAPE

    def __init__(self, newest_only: bool = False) -> None:
        self.pooling = Pooling(np.array(DECAYS, np.float32), newest_only)
        self.projected: Counter[float] = Counter()
        self.compared: Counter[tuple[int, float, float]] = Counter()

    def project(self, grid: np.ndarray) -> Projection:
        value = float(grid[0, 0, 0])
        self.projected[value] += 1
        cells = np.full((WIDTH, *SHAPE[1:]), value, np.float32)
        return Projection(cells[None], cells, 10 * cells, 100 * cells)

    def change(self, lag: int, features: np.ndarray, earlier: np.ndarray) -> np.ndarray:
        self.compared[lag, float(features[0, 0, 0, 0]), float(earlier[0, 0, 0, 0])] += 1
        made: np.ndarray = 1000 * 10**lag * np.abs(features - earlier)[0]
        return made


def grid(value: float) -> np.ndarray:
    return np.full(SHAPE, value, np.float16)
