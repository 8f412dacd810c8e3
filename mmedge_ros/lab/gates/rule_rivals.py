"""Rules the gate is compared with; each is given the same features."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from mmedge_ros.skipping.gate_features import GateFeatures


@dataclass(frozen=True)
class MaxScore:
    """As sure as the best track is: what early exits by confidence do."""

    def confidence(self, features: GateFeatures, end_ns: int) -> float:  # noqa: ARG002  # any
        return features.highest_score


@dataclass(frozen=True)
class AtRandom:
    """Says yes at a share of all moments, whatever they are; runs repeat."""

    share: float
    seed: int = 0

    def confidence(self, features: GateFeatures, end_ns: int) -> float:
        text = f'{self.seed}/{end_ns}/{features.lead!r}'
        digest = hashlib.blake2b(text.encode(), digest_size=8).digest()
        return float(int.from_bytes(digest, 'little') < self.share * 2.0**64)
