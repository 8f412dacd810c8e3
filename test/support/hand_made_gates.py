"""Gate features and gates made by hand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from mmedge_ros.windows.gate import Gate
from mmedge_ros.windows.gate_features import FIELDS, GateFeatures


def gate_features(**values: float) -> GateFeatures:
    """Gate features whose other fields are zero."""
    return GateFeatures(**{**dict.fromkeys(FIELDS, 0.0), **values})


def gate(hidden: int = 8, seed: int = 0) -> Gate:
    random = np.random.default_rng(seed)
    count = len(FIELDS)
    return Gate(
        random.normal(size=count).astype(np.float32).astype(float),
        random.uniform(0.5, 2.0, count).astype(np.float32).astype(float),
        random.normal(size=(count, hidden)).astype(np.float32).astype(float),
        random.normal(size=hidden).astype(np.float32).astype(float),
        random.normal(size=hidden).astype(np.float32).astype(float),
        float(np.float32(random.normal())),
    )


@dataclass
class Answering:
    """Answers by a function of the features and the window end, and notes them."""

    answer: Callable[[GateFeatures, int], float]
    evaluated: list[tuple[int, GateFeatures]]

    def confidence(self, features: GateFeatures, end_ns: int) -> float:
        self.evaluated.append((end_ns, features))
        return self.answer(features, end_ns)


def always(value: float) -> Answering:
    return Answering(lambda *_: value, [])
