"""Model selection: a small network picks the camera's level for each window by what is seen."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mmedge_ros.data_types import CAMERA, Configuration, FloatArray
from mmedge_ros.lab.policies.dense_network import DenseNetwork
from mmedge_ros.lab.policies.plugins import Facts
from mmedge_ros.lab.policies.seen import seen


@dataclass(frozen=True, eq=False)
class TrainedSelector:
    """Picks the cheapest level that is expected to fall short of the best by little.

    ``levels`` are those of the camera, from the cheapest on, ``choices`` the configurations with
    them. The network says of each how far a window's quality (0..1) falls short of that of the
    best level; ``margin`` is how far it may.
    """

    network: DenseNetwork
    margin: float
    levels: tuple[str, ...]
    choices: tuple[Configuration, ...]

    def configuration(self, facts: Facts) -> Configuration:
        """Return what to encode the next window with."""
        # The best one before anything was seen.
        if not facts.features.get(CAMERA):
            return self.choices[-1]
        return self.choices[self.chosen(seen(facts, self.levels))]

    def chosen(self, inputs: FloatArray) -> int:
        """Return the place of the level for what is seen (F,)."""
        return int(cheapest_within(self.network.outputs(inputs), self.margin))


def cheapest_within(shortfalls: FloatArray, margin: float) -> FloatArray:
    """Return the first place (...) whose shortfall (..., K) is the least or at most so much more.

    :param shortfalls: by level, from the cheapest on
    """
    least = shortfalls.min(axis=-1, keepdims=True)
    found: FloatArray = np.argmax(shortfalls <= least + margin, axis=-1)
    return found
