"""Stands in for the networks of feature fusion and keeps what was asked of it."""

from __future__ import annotations

import math
from collections import Counter
from typing import NamedTuple

import numpy as np

from mmedge_ros.core.data_types import CAMERA, RADAR
from mmedge_ros.encoding.feature_grid import empty_semantics


class Taken(NamedTuple):
    """One unit that a window was given."""

    stamp_ns: int
    values: np.ndarray


class FakeState(NamedTuple):
    """A window, and the units of one modality that it was given."""

    end_ns: int
    taken: tuple[Taken, ...] = ()


class FakeFusionNetworks:
    """Puts out what the newest picture of a window says, each box ``distance`` m away.

    ``steps`` counts how often each unit was taken into each window, ``fused`` holds for each
    window that was fused the stamps it was given, in order.
    """

    def __init__(self, distance: float = 12.0) -> None:
        self.steps: Counter[tuple[int, str, int]] = Counter()
        self.order: list[tuple[int, str, int]] = []
        self.fused: dict[int, dict[str, list[int]]] = {}
        self._distance = distance

    @property
    def aggregators(self) -> dict[str, FakeAggregator]:
        return {modality: FakeAggregator(self, modality) for modality in (CAMERA, RADAR)}

    def step(self, state: FakeState, modality: str, grid: np.ndarray, stamp_ns: int) -> FakeState:
        self.steps[state.end_ns, modality, stamp_ns] += 1
        self.order.append((state.end_ns, modality, stamp_ns))
        return FakeState(state.end_ns, (*state.taken, Taken(stamp_ns, grid)))

    def fuse(self, states: dict[str, FakeState]) -> np.ndarray:
        self.fused[states[CAMERA].end_ns] = {
            modality: [unit.stamp_ns for unit in state.taken] for modality, state in states.items()
        }
        pictures = [unit.values[:48] for unit in states[CAMERA].taken]
        semantics = pictures[-1] if pictures else empty_semantics()
        distances = np.full((6, 30, 40), math.log(self._distance), np.float32)
        return np.concatenate([semantics, distances])


class FakeAggregator:
    """Steps of one modality, taken by the networks it belongs to."""

    def __init__(self, networks: FakeFusionNetworks, modality: str) -> None:
        self._networks = networks
        self._modality = modality

    def begin(self, end_ns: int) -> FakeState:
        return FakeState(end_ns)

    def unit(self, grid: np.ndarray) -> np.ndarray:
        return grid

    def step(self, state: FakeState, unit: np.ndarray, stamp_ns: int) -> FakeState:
        return self._networks.step(state, self._modality, unit, stamp_ns)
