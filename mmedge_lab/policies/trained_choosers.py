"""Trained choosers: modality gating and model selection by small networks.

Both choose at the end of a window. The gate is called once the radar's new scans are encoded and
before any new picture is: where the camera's full rate is not needed, pictures are encoded at its
lowest rate only, and the others never.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from mmedge_lab.policies.policy_features import policy_features
from mmedge_lab.policies.steering import Facts
from mmedge_ros.core.data_types import CAMERA, Configuration, FloatArray
from mmedge_ros.windows.gate import DenseNetwork


@dataclass(frozen=True, eq=False)
class TrainedGate:
    """Lets the camera rest where more pictures are likely to change nothing for the better.

    ``threshold`` is the probability from which on it rests. ``needed`` and ``resting`` are the
    configurations of either answer, at the highest and the lowest rate of the camera;
    ``levels`` are those of the camera, from the cheapest on.
    """

    network: DenseNetwork
    threshold: float
    needed: Configuration
    resting: Configuration
    levels: tuple[str, ...] = ()

    def configuration(self, facts: Facts) -> Configuration:
        """Return what to encode with from now on."""
        # The camera does not rest before a first picture.
        if not facts.features.get(CAMERA):
            return self.needed
        return self.resting if self.probability(facts) >= self.threshold else self.needed

    def probability(self, facts: Facts) -> float:
        """Return how likely a decision without the full rate of the camera is no worse, 0..1."""
        logit = self.network.outputs(policy_features(facts, self.levels))
        value = float(expit(logit)[0])
        return value if math.isfinite(value) else 0.0


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
        # The best level until there is a first picture.
        if not facts.features.get(CAMERA):
            return self.choices[-1]
        return self.choices[self.chosen(policy_features(facts, self.levels))]

    def chosen(self, inputs: FloatArray) -> int:
        """Return the place of the level for policy features (F,)."""
        return int(cheapest_within(self.network.outputs(inputs), self.margin))


def cheapest_within(shortfalls: FloatArray, margin: float) -> FloatArray:
    """Return the first place (...) whose shortfall (..., K) is the least or at most so much more.

    :param shortfalls: by level, from the cheapest on
    """
    least = shortfalls.min(axis=-1, keepdims=True)
    first: FloatArray = np.argmax(shortfalls <= least + margin, axis=-1)
    return first
