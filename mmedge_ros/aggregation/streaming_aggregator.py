"""Aggregates the units of one modality in one window, one at a time, without torch.

A window's state is passed in and returned; nothing is hidden. It is small: sums over the units
that are complete, and the newest unit, whose encoding waits for the unit after it. What does
not depend on the window is computed once for all of them, see `shared_units`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mmedge_ros.aggregation import AggregationError
from mmedge_ros.aggregation.network_graph import Array
from mmedge_ros.aggregation.shared_units import SharedUnit, UnitEncodings
from mmedge_ros.aggregation.temporal_rules import REMEMBERED, neighbours, weights
from mmedge_ros.aggregation.unit_networks import UnitNetworks
from mmedge_ros.data_types import NS_PER_S


@dataclass(frozen=True, slots=True, eq=False)
class WindowState:
    """What the units taken in so far have left behind, for the window that ends then.

    ``total`` (W, H, V) and ``weight`` (W,) are sums over the units before the newest;
    ``recent`` are the last units, newest first, and ``seconds`` (N,) from them to the window's
    end; ``pending`` (W, H, V) is the newest one's encoding without what the unit after it
    brings. ``newest_ns`` is its stamp, None before the first.

    No array may be written to: states of the same past share them.
    """

    end_ns: int
    total: Array
    weight: Array
    recent: tuple[SharedUnit, ...]
    seconds: Array
    pending: Array
    newest_ns: int | None = None
    count: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class Aggregate:
    """Summary of one modality in a window.

    ``pooled`` (W, H, V) and ``newest`` (C, H, V), the newest unit's grid; ``present`` is False
    where there is no unit, and both are zeros. ``age`` in s from the newest unit to the window's
    end (0 without one), ``count`` of units.
    """

    pooled: Array
    newest: Array
    present: bool
    age: float
    count: int


class StreamingAggregator:
    """Takes the units of one modality into windows; a window's state is the caller's to keep."""

    def __init__(self, networks: UnitNetworks) -> None:
        self._encodings = UnitEncodings(networks)
        self._pooling = networks.pooling
        self._grid_shape = networks.grid_shape
        width = len(self._pooling.decays)
        self._nothing = np.zeros((width, *self._grid_shape[1:]), np.float32)
        self._no_weight = np.zeros(width, np.float32)
        self._no_unit = np.zeros(self._grid_shape, np.float32)

    @property
    def grid_shape(self) -> tuple[int, ...]:
        """Channels, rows and columns of a unit's grid."""
        return self._grid_shape

    @property
    def pooled_shape(self) -> tuple[int, ...]:
        """Channels, rows and columns of what a window is pooled to."""
        return self._nothing.shape

    def begin(self, end_ns: int) -> WindowState:
        """Return the state of a window that ends then and has no units yet."""
        no_seconds = np.zeros(0, np.float32)
        return WindowState(end_ns, self._nothing, self._no_weight, (), no_seconds, self._nothing)

    def unit(self, grid: NDArray[np.floating]) -> SharedUnit:
        """Return a unit as steps take it; nothing is computed yet.

        :param grid: (C, H, V); it is kept and must not be written to
        :raises AggregationError: if it has another shape, or values that are not finite
        """
        return self._encodings.unit(grid)

    def step(self, state: WindowState, unit: SharedUnit, stamp_ns: int) -> WindowState:
        """Return the state with one more unit, which may not be older than those before.

        :param unit: made by this aggregator; the same one in all windows it belongs to
        :raises AggregationError: if the unit is older, or a network fails
        """
        if state.newest_ns is not None and stamp_ns < state.newest_ns:
            raise AggregationError(
                f'a unit stamped {stamp_ns} ns came after one of {state.newest_ns} ns; take '
                'units in the order of their stamps'
            )
        begun = self.begin(state.end_ns) if self._pooling.newest_only else state
        seconds = np.float32((state.end_ns - stamp_ns) / NS_PER_S)
        found = neighbours(begun.seconds, seconds)
        previous = begun.recent[0] if found.is_near else None
        lagged = [None if place is None else begun.recent[place] for place in found.lagged]
        total, weight = begun.total, begun.weight
        if begun.recent:
            total, weight = self._pooled_up_to(begun, unit if found.is_near else begun.recent[0])
        return WindowState(
            state.end_ns,
            total,
            weight,
            (unit, *begun.recent[: REMEMBERED - 1]),
            np.append(seconds, begun.seconds[: REMEMBERED - 1]),
            self._encodings.pending(unit, previous, lagged),
            stamp_ns,
            begun.count + 1,
        )

    def finish(self, state: WindowState) -> Aggregate:
        """Summarise a window; its state can still be stepped on.

        :raises AggregationError: if a network fails
        """
        if state.newest_ns is None:
            return Aggregate(self._nothing, self._no_unit, False, 0.0, 0)
        # The newest unit has none after it and keeps its own channels.
        total, weight = self._pooled_up_to(state, state.recent[0])
        total /= weight[:, None, None]
        age = (state.end_ns - state.newest_ns) / NS_PER_S
        return Aggregate(total, state.recent[0].grid, True, age, state.count)

    def _pooled_up_to(self, state: WindowState, following: SharedUnit) -> tuple[Array, Array]:
        """Return total and weight with the newest unit, given what follows it."""
        share = weights(self._pooling.decays, state.seconds[0])
        total = self._encodings.encoded(state.pending, following)
        total *= share[:, None, None]
        total += state.total
        return total, state.weight + share
