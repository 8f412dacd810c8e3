"""Figures of cases made up, so that what a report says of them is known beforehand."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mmedge_lab.judging.bundle_cases import Case, CasePlan, plan_cases
from mmedge_lab.judging.bundle_report import Evaluation
from mmedge_lab.judging.case_figures import (
    BEYOND,
    COLUMNS,
    EASY,
    OVERALL,
    CaseFigures,
    Stratum,
)
from mmedge_lab.judging.flight_bootstrap import Drawings

LEVELS = {'camera': ('small', 'medium', 'large'), 'radar': ('small', 'medium', 'large')}
Worth = Callable[[Case, int], float]


def sums(people: float = 100.0, **shares: float) -> np.ndarray:
    """A row of sums: of ``people`` in every column, these shares."""
    row = np.full(len(COLUMNS), people)
    for name, share in shares.items():
        row[COLUMNS.index(name)] = people * share
    return row


def flight_figures(
    overlap: float, light: str = 'day', people: float = 100.0, error: float = 0.3
) -> CaseFigures:
    """A flight in which every mean overlap and share is the same."""
    shares = ('overlap', 'overlap_20px', 'overlap_40px', 'stream_overlap', 'stream_overlap_20px')
    row = sums(people, **dict.fromkeys((*shares, 'found', 'found_20px', 'placed'), overlap))
    strata = [OVERALL, Stratum('light', light), BEYOND, Stratum('size', '20-40')]
    if light == 'day':
        strata.append(EASY)
    errors = np.tile([error, 2.0 * error, 30.0], (5, 1))
    return CaseFigures(dict.fromkeys(strata, row), errors, (Stratum('light', light),))


def evaluation(
    worth: Worth,
    flights: int = 8,
    *,
    every_configuration: bool = True,
    learned_fusion: bool = True,
) -> Evaluation:
    """An evaluation in which ``worth(case, flight)`` is every figure."""
    plan: CasePlan = plan_cases(
        LEVELS, every_configuration=every_configuration, learned_fusion=learned_fusion
    )
    figures = {
        case: [
            flight_figures(worth(case, number), 'night' if number % 2 else 'day')
            for number in range(flights)
        ]
        for case in plan.cases
    }
    names = tuple(f'flight_{number}' for number in range(flights))
    return Evaluation(plan, names, figures, Drawings.of(range(flights), 300))
