"""Rules the gate is compared with; each is asked the same questions."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from mmedge_ros.skipping.question import Question


@dataclass(frozen=True)
class MaxScore:
    """As sure as the best track is: what early exits by confidence do."""

    def confidence(self, question: Question, end_ns: int) -> float:  # noqa: ARG002  # any
        return question.highest_score


@dataclass(frozen=True)
class AtRandom:
    """Says yes to a share of all questions, whatever they are; runs repeat."""

    share: float
    seed: int = 0

    def confidence(self, question: Question, end_ns: int) -> float:
        text = f'{self.seed}/{end_ns}/{question.lead!r}'
        digest = hashlib.blake2b(text.encode(), digest_size=8).digest()
        return float(int.from_bytes(digest, 'little') < self.share * 2.0**64)
