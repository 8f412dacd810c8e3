"""Trainings that came to what a test wants them to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mmedge_lab.training.ablation_table import (
    NETWORK,
    NEWEST_PICTURE,
    VARIANTS,
    Run,
)
from mmedge_lab.training.window_judging import JUDGED_CONFIGURATIONS, THRESHOLDS

FLIGHTS = ('one', 'two', 'three', 'four')
PEOPLE, TALL = 100, 60


def counts(iou: float, hits: int = 70, wrong: int = 10, error: float = 0.1) -> list[Any]:
    """Counts (F, T, 7), the same for all flights; of the thresholds 0.3 is the best."""
    rows = [
        [PEOPLE, TALL, iou, iou / 2, hits, wrong + (0 if threshold == 0.3 else 20), error]
        for threshold in THRESHOLDS
    ]
    return [rows] * len(FLIGHTS)


def run_of(variant: str, seed: int, iou: float, **others: Any) -> Run:
    figures = {
        name: {NETWORK: counts(iou, **others), NEWEST_PICTURE: counts(40.0)}
        for name in JUDGED_CONFIGURATIONS
    }
    return Run(variant, seed, FLIGHTS, (2.0, 1.0), 5.0, figures)


def runs(iou_of: Callable[[str, int], float], seeds: int = 3) -> list[Run]:
    return [run_of(v.name, s, iou_of(v.name, s)) for v in VARIANTS for s in range(seeds)]
