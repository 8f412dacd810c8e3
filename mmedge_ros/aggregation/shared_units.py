"""Units, and what is computed of them once for all windows they belong to."""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Hashable, Sequence
from itertools import count
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from mmedge_ros.aggregation import AggregationError
from mmedge_ros.aggregation.network_graph import Array
from mmedge_ros.aggregation.unit_networks import Projection, UnitNetworks

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
        """Forget what was computed; it is computed again when it is asked for."""
        self.projection: Projection | None = None
        self.changes: dict[tuple[int, int], Array] = {}
        self.pending: dict[tuple[int, ...], Array] = {}


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


def _number(unit: SharedUnit | None) -> int:
    return _NONE if unit is None else unit.number


def _kept(memory: dict[Key, Array], key: Key, made: Array) -> Array:
    """Keep what was made, in place of the oldest where there is no room."""
    while len(memory) >= _MOST_KEPT:
        del memory[next(iter(memory))]
    memory[key] = made
    return made
