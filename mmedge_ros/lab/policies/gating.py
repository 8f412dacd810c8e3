"""Modality gating: a small network says whether the camera's full rate is needed for a window.

It is asked at the end of the window, once the radar's new scans are encoded, and before any of
the camera's new pictures is. Where it says no, these are encoded at the camera's lowest rate
only, and the others never.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from mmedge_ros.data_types import CAMERA, Configuration
from mmedge_ros.lab.policies.dense_network import DenseNetwork, logistic
from mmedge_ros.lab.policies.plugins import Facts
from mmedge_ros.lab.policies.seen import seen


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
        # Nobody rests before anything was seen.
        if not facts.features.get(CAMERA):
            return self.needed
        return self.resting if self.probability(facts) >= self.threshold else self.needed

    def probability(self, facts: Facts) -> float:
        """Return how likely a decision without the full rate of the camera is no worse, 0..1."""
        logit = self.network.outputs(seen(facts, self.levels))
        value = float(logistic(logit)[0])
        return value if math.isfinite(value) else 0.0
