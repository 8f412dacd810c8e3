"""Stands in for a network that aggregates: its state is the list of what it was given."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import numpy as np

from mmedge_ros.aggregation.streaming_aggregator import StreamingAggregator

SHAPE = (1, 2, 2)


@dataclass
class ListingGraph:
    """A step that appends (value of the grid, seconds to the window's end) to ``units``.

    ``taken`` counts how often each value was stepped into the window that began with each call
    of ``initial``; the oldest entries of the state never change.
    """

    taken: Counter[tuple[float, float]] = field(default_factory=Counter)

    def initial(self):
        return {'units': np.zeros((0, 2), np.float32), 'newest': np.zeros((1, *SHAPE), np.float32)}

    def grid_shape(self):
        return SHAPE

    def step(self, tensors, grid, seconds_to_end):
        value = float(grid[0, 0, 0, 0])
        self.taken[value, round(seconds_to_end, 6)] += 1
        row = np.array([[value, seconds_to_end]], np.float32)
        return {'units': np.concatenate([tensors['units'], row]), 'newest': grid}


def listing(graph: ListingGraph | None = None) -> StreamingAggregator:
    """Return an aggregator whose pooled features are the rows it was stepped with."""
    return StreamingAggregator(graph or ListingGraph(), lambda tensors: tensors['units'], 'list')


def grid(value: float) -> np.ndarray:
    return np.full(SHAPE, value, np.float16)
