"""Fusion networks that remember what they once made of the units of a window.

Configurations that differ in one sensor only have the same units of the other in each window,
and what aggregation makes of them is the same, bit for bit. So steps are put off until a window
is fused, and of each modality taken only for units that were not taken together before.
"""

from __future__ import annotations

import hashlib
import os
from collections import OrderedDict, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from mmedge_ros.aggregation.state_graph import Array
from mmedge_ros.aggregation.streaming_aggregator import WindowState
from mmedge_ros.aggregation.window_bank import Steps

# The windows of a ten-second flight: of one camera configuration and nine of the radar.
_MOST_BYTES = 1_750_000_000
_MEMORY_SHARE = 0.25
# A grid is taken into a handful of windows soon after one another.
_KEPT_DIGESTS = 64

Grid = NDArray[np.floating]


class Networks(Protocol):
    """Fusion networks, as `FusionNetworkRuntime` has them."""

    @property
    def aggregators(self) -> Mapping[str, Steps[WindowState]]: ...

    def fuse(self, states: Mapping[str, WindowState]) -> NDArray[np.float32]: ...


class _Taken(NamedTuple):
    """A unit to be taken into a window; equal digests are equal grids."""

    digest: bytes
    stamp_ns: int
    grid: Grid


@dataclass(frozen=True, eq=False)
class PutOff:
    """A window, and the units of one modality that belong to it, in order."""

    end_ns: int
    units: tuple[_Taken, ...] = ()


class PutOffSteps:
    """Steps of one modality that are not taken yet.

    :param digest_of: equal for equal grids
    """

    def __init__(self, steps: Steps[WindowState], digest_of: Callable[[Grid], bytes]) -> None:
        self._steps = steps
        self._digest_of = digest_of

    def begin(self, end_ns: int) -> PutOff:
        return PutOff(end_ns)

    def checked(self, grid: Grid) -> Array:
        return self._steps.checked(grid)

    def step(self, state: PutOff, grid: Grid, stamp_ns: int) -> PutOff:
        taken = _Taken(self._digest_of(grid), stamp_ns, grid)
        return PutOff(state.end_ns, (*state.units, taken))


class RememberedNetworks:
    """Does what the networks do, and each thing once.

    ``steps`` counts those really taken.

    :param most_bytes: states beyond this are forgotten, those not used for longest first
    """

    def __init__(self, networks: Networks, most_bytes: int | None = None) -> None:
        self.steps = 0
        self._networks = networks
        self._most_bytes = _affordable_bytes() if most_bytes is None else most_bytes
        self._bytes = 0
        self._states: OrderedDict[tuple[object, ...], WindowState] = OrderedDict()
        self._digests: deque[tuple[Grid, bytes]] = deque(maxlen=_KEPT_DIGESTS)
        self.aggregators = {
            modality: PutOffSteps(steps, self._digest)
            for modality, steps in networks.aggregators.items()
        }

    def fuse(self, states: Mapping[str, PutOff]) -> NDArray[np.float32]:
        return self._networks.fuse(
            {modality: self._state(modality, window) for modality, window in states.items()}
        )

    def _state(self, modality: str, window: PutOff) -> WindowState:
        units = ((unit.digest, unit.stamp_ns) for unit in window.units)
        key = (window.end_ns, modality, *units)
        known = self._states.get(key)
        if known is not None:
            self._states.move_to_end(key)
            return known
        aggregator = self._networks.aggregators[modality]
        state = aggregator.begin(window.end_ns)
        for unit in window.units:
            state = aggregator.step(state, unit.grid, unit.stamp_ns)
            self.steps += 1
        self._states[key] = state
        self._bytes += _bytes_of(state)
        while self._bytes > self._most_bytes and len(self._states) > 1:
            self._bytes -= _bytes_of(self._states.popitem(last=False)[1])
        return state

    def _digest(self, grid: Grid) -> bytes:
        for known, digest in self._digests:
            if known is grid:
                return digest
        made = hashlib.blake2b(grid.tobytes(), digest_size=16).digest()
        self._digests.append((grid, made))
        return made


def _bytes_of(state: WindowState) -> int:
    return sum(tensor.nbytes for tensor in state.tensors.values())


def _affordable_bytes() -> int:
    free = os.sysconf('SC_AVPHYS_PAGES') * os.sysconf('SC_PAGE_SIZE')
    return min(_MOST_BYTES, int(_MEMORY_SHARE * free))
