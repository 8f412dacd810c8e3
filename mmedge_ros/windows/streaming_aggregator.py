"""Aggregates the units of one modality in one window, one at a time, without torch.

A window's state is passed in and returned; nothing is hidden. It is small: sums over the units
that are complete, and the newest unit, whose encoding waits for the unit after it. What does
not depend on the window is computed once for all windows of a unit.
"""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from itertools import count
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from mmedge_ros.core.data_types import NS_PER_S
from mmedge_ros.windows import AggregationError
from mmedge_ros.windows.network_graph import Array
from mmedge_ros.windows.temporal_rules import REMEMBERED, neighbours, weights
from mmedge_ros.windows.unit_networks import Projection, UnitNetworks

# Of one modality; those of the open windows are thirty at most. Each has up to 2.5 MB.
_MOST_COMPUTED = 64
# Neighbours differ between windows that begin shortly before the unit; in time there are three
# sets of them. Units that come late make more.
_MOST_KEPT = 6
_NUMBERS = count()
_NONE = -1

Key = TypeVar('Key', bound=Hashable)


class SharedUnit:
    """A unit of a window: its ``grid`` (C, H, V), and what has been computed of it so far.

    Units refer to each other by their ``number`` only, so that each goes with its windows.
    """

    __slots__ = ('__weakref__', 'changes', 'grid', 'number', 'pending', 'projection')

    def __init__(self, grid: Array) -> None:
        self.grid = grid
        self.number = next(_NUMBERS)
        self.forget()

    def forget(self) -> None:
        """Forget what was computed; it is computed again when it is needed."""
        self.projection: Projection | None = None
        self.changes: dict[tuple[int, int], Array] = {}
        self.pending: dict[tuple[int, ...], Array] = {}


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


class UnitEncodings:
    """Computes the parts of encodings, each once; see `unit_networks` for what they are."""

    def __init__(self, networks: UnitNetworks) -> None:
        self._networks = networks
        self._computed: deque[weakref.ref[SharedUnit]] = deque()

    def unit(self, grid: NDArray[np.floating]) -> SharedUnit:
        """Return a new unit; nothing is computed yet.

        :param grid: (C, H, V)
        :raises AggregationError: if it has another shape, or values that are not finite
        """
        if grid.shape != self._networks.grid_shape:
            raise AggregationError(
                f'a grid of {list(grid.shape)} cannot be aggregated by {self._networks.place}, '
                f'which takes {list(self._networks.grid_shape)}; encoder and fusion must be of '
                'one bundle'
            )
        values = np.ascontiguousarray(grid, np.float32)
        # One value that is no number would stay in the windows until they end.
        if not (np.isfinite(values.min()) and np.isfinite(values.max())):
            raise AggregationError(
                f'a grid for {self._networks.place} has values that are not finite; this unit '
                'is not used'
            )
        return SharedUnit(values)

    def pending(
        self,
        unit: SharedUnit,
        previous: SharedUnit | None,
        lagged: Sequence[SharedUnit | None],
    ) -> Array:
        """Return the encoding of a unit as far as it is known before the unit after it comes.

        :param previous: its neighbour in the temporal shift
        :param lagged: for each lag what it is compared with
        :return: (W, H, V), not to be written to
        """
        key = (_number(previous), *map(_number, lagged))
        known = unit.pending.get(key)
        if known is not None:
            return known
        made = self._projection(unit).own + self._projection(previous or unit).onward
        for lag, earlier in enumerate(lagged):
            if earlier is not None:
                made += self._change(lag, unit, earlier)
        return _kept(unit.pending, key, made)

    def encoded(self, pending: Array, following: SharedUnit) -> Array:
        """Return a unit's encoding (W, H, V), which is the caller's to write to.

        :param following: its neighbour in the temporal shift, itself where there is none
        """
        made: Array = pending + self._projection(following).back
        return np.maximum(made, 0.0, out=made)

    def _projection(self, unit: SharedUnit) -> Projection:
        if unit.projection is not None:
            return unit.projection
        made = unit.projection = self._networks.project(unit.grid)
        self._computed.append(weakref.ref(unit))
        while len(self._computed) > _MOST_COMPUTED:
            oldest = self._computed.popleft()()
            if oldest is not None and oldest is not unit:
                oldest.forget()
        return made

    def _change(self, lag: int, unit: SharedUnit, earlier: SharedUnit) -> Array:
        key = (lag, earlier.number)
        known = unit.changes.get(key)
        if known is not None:
            return known
        features = self._projection(unit).features, self._projection(earlier).features
        return _kept(unit.changes, key, self._networks.change(lag, *features))


class StreamingAggregator:
    """Takes the units of one modality into windows; the caller keeps the state of each.

    ``grid_shape`` (C, H, V) is that of a unit's grid.
    """

    def __init__(self, networks: UnitNetworks) -> None:
        self._encodings = UnitEncodings(networks)
        self._pooling = networks.pooling
        self.grid_shape = networks.grid_shape
        width = len(self._pooling.decays)
        self._nothing = np.zeros((width, *self.grid_shape[1:]), np.float32)
        self._no_weight = np.zeros(width, np.float32)
        self._no_unit = np.zeros(self.grid_shape, np.float32)

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
        :raises EncodingError: if the unit is older, or a network fails
        """
        if state.newest_ns is not None and stamp_ns < state.newest_ns:
            raise AggregationError(
                f'a unit stamped {stamp_ns} ns came after one of {state.newest_ns} ns; take '
                'units in the order of their stamps'
            )
        begun = self.begin(state.end_ns) if self._pooling.newest_only else state
        seconds = np.float32((state.end_ns - stamp_ns) / NS_PER_S)
        near = neighbours(begun.seconds, seconds)
        previous = begun.recent[0] if near.is_near else None
        lagged = [None if place is None else begun.recent[place] for place in near.lagged]
        total, weight = begun.total, begun.weight
        if begun.recent:
            total, weight = self._pooled_up_to(begun, unit if near.is_near else begun.recent[0])
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

        :raises EncodingError: if a network fails
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


def _number(unit: SharedUnit | None) -> int:
    return _NONE if unit is None else unit.number


def _kept(memory: dict[Key, Array], key: Key, made: Array) -> Array:
    """Keep what was made, in place of the oldest where there is no room."""
    while len(memory) >= _MOST_KEPT:
        del memory[next(iter(memory))]
    memory[key] = made
    return made
