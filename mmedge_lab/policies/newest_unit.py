"""Fusion networks that are given the newest unit of each sensor alone: no window is aggregated."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mmedge_ros.aggregation.window_bank import Steps
from mmedge_ros.fusion.feature_fusion import FusionNetworks


class _NewestSteps:
    """Steps that forget the units before; windows are stepped in the order of stamps."""

    def __init__(self, steps: Steps[Any]) -> None:
        self._steps = steps

    def begin(self, end_ns: int) -> Any:
        return self._steps.begin(end_ns)

    def unit(self, grid: NDArray[np.floating]) -> Any:
        return self._steps.unit(grid)

    def step(self, state: Any, unit: Any, stamp_ns: int) -> Any:
        return self._steps.step(self._steps.begin(state.end_ns), unit, stamp_ns)


class _NewestAlone:
    def __init__(self, networks: FusionNetworks) -> None:
        self._networks = networks
        self.aggregators = {m: _NewestSteps(steps) for m, steps in networks.aggregators.items()}

    def fuse(self, states: Mapping[str, Any]) -> NDArray[np.float32]:
        return self._networks.fuse(states)


def newest_alone(networks: FusionNetworks | None) -> FusionNetworks | None:
    """Return networks that see of each window the newest unit of each sensor; None of none."""
    return None if networks is None else _NewestAlone(networks)
