"""Stands in for an aggregator: its state is the list of what it was given."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

import numpy as np

from mmedge_ros.windows import AggregationError

SHAPE = (1, 2, 2)


class Listed(NamedTuple):
    """A window, and (value of the grid, seconds to its end) of each unit, in order."""

    end_ns: int
    units: tuple[tuple[float, float], ...] = ()

    @property
    def values(self) -> list[float]:
        return [value for value, _ in self.units]


class ListingAggregator:
    """Appends to lists; ``taken`` counts how often each entry was appended."""

    def __init__(self) -> None:
        self.taken: Counter[tuple[float, float]] = Counter()

    def begin(self, end_ns: int) -> Listed:
        return Listed(end_ns)

    def unit(self, grid: np.ndarray) -> float:
        if grid.shape != SHAPE:
            raise AggregationError(f'a grid of {list(grid.shape)} cannot be aggregated')
        return float(grid[0, 0, 0])

    def step(self, state: Listed, unit: float, stamp_ns: int) -> Listed:
        entry = unit, round((state.end_ns - stamp_ns) / 1e9, 6)
        self.taken[entry] += 1
        return Listed(state.end_ns, (*state.units, entry))


def grid(value: float) -> np.ndarray:
    return np.full(SHAPE, value, np.float16)
