"""Fusion networks that cache the aggregate of the units of a window.

Configurations that differ in one sensor only have the same units of the other in each window,
and their aggregate is the same, bit for bit. So steps are deferred until a window is fused, and
taken only for units that were not aggregated together before.
"""

from __future__ import annotations

import hashlib
import os
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mmedge_ros.windows.fusion_runtime import FusionNetworkRuntime
from mmedge_ros.windows.streaming_aggregator import Aggregate
from mmedge_ros.windows.window_bank import Steps

# The windows of a ten-second flight: of one camera configuration and nine of the radar.
_MOST_BYTES = 1_750_000_000
_MEMORY_SHARE = 0.25

Grid = NDArray[np.floating]


class _Unit(NamedTuple):
    """A unit of a window; equal digests are equal grids."""

    digest: bytes
    unit: Any
    stamp_ns: int = 0


@dataclass(frozen=True, eq=False)
class DeferredWindow:
    """A window with the units of one modality that are still to be aggregated, in order."""

    end_ns: int
    units: tuple[_Unit, ...] = ()

    @property
    def key(self) -> tuple[object, ...]:
        """Equal for windows of one end with the same units."""
        return (self.end_ns, *((unit.digest, unit.stamp_ns) for unit in self.units))


class DeferredSteps:
    """Steps of one modality that are taken only when a window is fused."""

    def __init__(self, steps: Steps[Any]) -> None:
        self._steps = steps

    def begin(self, end_ns: int) -> DeferredWindow:
        return DeferredWindow(end_ns)

    def unit(self, grid: Grid) -> _Unit:
        digest = hashlib.blake2b(grid.tobytes(), digest_size=16).digest()
        return _Unit(digest, self._steps.unit(grid))

    def step(self, state: DeferredWindow, unit: _Unit, stamp_ns: int) -> DeferredWindow:
        stamped = unit._replace(stamp_ns=stamp_ns)
        return DeferredWindow(state.end_ns, (*state.units, stamped))


class CachedNetworks:
    """Fuses as the networks do, each aggregate computed once; ``steps`` counts steps taken.

    :param most_bytes: size of the cache; the least recently used aggregates are dropped
    """

    def __init__(self, networks: FusionNetworkRuntime, most_bytes: int | None = None) -> None:
        self.steps = 0
        self._networks = networks
        self._most_bytes = _affordable_bytes() if most_bytes is None else most_bytes
        self._bytes = 0
        self._known: OrderedDict[tuple[object, ...], Aggregate] = OrderedDict()
        # Of each modality the last window, which is fused once for each of its pictures.
        self._last: dict[str, tuple[DeferredWindow, Any]] = {}
        self.aggregators = {
            modality: DeferredSteps(steps) for modality, steps in networks.aggregators.items()
        }

    def fuse(self, states: Mapping[str, DeferredWindow]) -> NDArray[np.float32]:
        return self._networks.fuse_aggregates(
            {modality: self._aggregate(modality, window) for modality, window in states.items()}
        )

    def _aggregate(self, modality: str, window: DeferredWindow) -> Aggregate:
        key = (modality, *window.key)
        known = self._known.get(key)
        if known is not None:
            self._known.move_to_end(key)
            return known
        aggregator = self._networks.aggregators[modality]
        state: Any
        begun, state = self._last.get(modality, (None, None))
        if begun is None or window.key[: len(begun.units) + 1] != begun.key:
            begun, state = DeferredWindow(window.end_ns), aggregator.begin(window.end_ns)
        for unit in window.units[len(begun.units) :]:
            state = aggregator.step(state, unit.unit, unit.stamp_ns)
            self.steps += 1
        self._last[modality] = (window, state)
        made = aggregator.finish(state)
        self._known[key] = made
        self._bytes += _bytes_of(made)
        while self._bytes > self._most_bytes and len(self._known) > 1:
            self._bytes -= _bytes_of(self._known.popitem(last=False)[1])
        return made


def _bytes_of(aggregate: Aggregate) -> int:
    return aggregate.pooled.nbytes + aggregate.newest.nbytes


def _affordable_bytes() -> int:
    free = os.sysconf('SC_AVPHYS_PAGES') * os.sysconf('SC_PAGE_SIZE')
    return min(_MOST_BYTES, int(_MEMORY_SHARE * free))
