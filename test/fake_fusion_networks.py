"""Stands in for the networks of feature fusion and keeps what was asked of it."""

from __future__ import annotations

import math
from collections import Counter
from typing import NamedTuple

import numpy as np

from mmedge_ros.data_types import CAMERA, RADAR
from mmedge_ros.encoding.feature_grid import empty_semantics


class Taken(NamedTuple):
    """One unit that a window was given."""

    modality: str
    stamp_ns: int
    values: np.ndarray


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

    def begin(self, end_ns: int) -> tuple[int, tuple[Taken, ...]]:
        return end_ns, ()

    def step(self, state, modality, grid, stamp_ns):
        end_ns, taken = state
        self.steps[end_ns, modality, stamp_ns] += 1
        self.order.append((end_ns, modality, stamp_ns))
        return end_ns, (*taken, Taken(modality, stamp_ns, grid))

    def fuse(self, state) -> np.ndarray:
        end_ns, taken = state
        self.fused[end_ns] = {
            modality: [unit.stamp_ns for unit in taken if unit.modality == modality]
            for modality in (CAMERA, RADAR)
        }
        pictures = [unit.values[:48] for unit in taken if unit.modality == CAMERA]
        semantics = pictures[-1] if pictures else empty_semantics()
        distances = np.full((6, 30, 40), math.log(self._distance), np.float32)
        return np.concatenate([semantics, distances])
