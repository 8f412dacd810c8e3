"""Outcomes made up, so that what a comparison says of them is known beforehand."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from mmedge_lab.judging.case_figures import COLUMNS, OVERALL, CaseFigures, Stratum
from mmedge_lab.rivals.comparison.outcome import ROW, TOTALS, Outcome
from mmedge_lab.rivals.comparison.plan import (
    ComparisonCase,
    ComparisonPlan,
    PolicyFacts,
    plan_comparison,
)
from mmedge_lab.rivals.comparison.report import Comparison

FACTS = tuple(
    PolicyFacts(name, name.replace('_', ' '), f'does what {name} does')
    for name in ('blocking', 'non_blocking', 'ours', 'ours_without_skipping')
)
PEOPLE = 2.0
Worth = Callable[[ComparisonCase, int], float]


def outcome(
    iou: float = 0.5,
    latencies_ms: Sequence[float] = (5.0, 5.0, 5.0, 20.0),
    ious: Sequence[float] | None = None,
    light: str = 'day',
    **totals: float,
) -> Outcome:
    """A flight with a window for each latency, NaN for a dropped one; ``ious`` by window."""
    count = len(latencies_ms)
    rows = np.zeros((count, len(ROW)))
    columns = {name: rows[:, place] for place, name in enumerate(ROW)}
    latencies = np.array(latencies_ms, float) / 1e3
    columns['end'][:] = 1_700_000_000.0 + 0.1 * np.arange(count)
    columns['decided'][:] = np.isfinite(latencies)
    columns['latency'][:] = latencies
    columns['last_encode'][:] = 0.010
    columns['floor'][:] = 0.6 * np.nan_to_num(latencies)
    columns['people'][:] = PEOPLE
    columns['overlap'][:] = PEOPLE * np.array(ious if ious is not None else [iou] * count)
    columns['streamed'][:] = 10 * PEOPLE
    columns['stream_overlap'][:] = 10 * columns['overlap']
    columns['age_camera'][:] = latencies + 0.03
    columns['age_radar'][:] = latencies + 0.04
    columns['waited_camera'][:] = latencies
    columns['rate_camera'][:], columns['rate_radar'][:] = 30.0, 20.0
    row = np.full(len(COLUMNS), 100.0)
    for place, name in enumerate(COLUMNS):
        if 'overlap' in name or name in ('found', 'found_20px', 'placed', 'hits'):
            row[place] = 100.0 * iou
    strata = dict.fromkeys((OVERALL, Stratum('light', light), Stratum('distance', 'near')), row)
    figures = CaseFigures(strata, np.full((3, 3), 0.4), (Stratum('light', light),))
    known = dict.fromkeys(TOTALS, 0.0) | dict(zip(COLUMNS, row.tolist(), strict=True))
    known |= {
        'seconds': 0.1 * count,
        'duration': 0.1 * count,
        'windows': float(count),
        'decisions': float(np.isfinite(latencies).sum()),
        'dropped': float(np.isnan(latencies).sum()),
        'misses': float((latencies > 0.05).sum()),
        'true_boxes': 100.0,
        'result_boxes': 100.0,
        'matches': 100.0 * iou,
        'idtp': 100.0 * iou,
        'nees': 390.0 + 40.0 * iou,
        'nees_samples': 100.0,
        'calls_camera': 3.0 * count,
        'units_camera': 3.0 * count,
        'calls_radar': 2.0 * count,
        'units_radar': 2.0 * count,
        'busy_s_camera': 0.05 * count,
        'cpu_s': 0.05 * count,
        'energy_j': 0.8 * count,
    }
    return Outcome(figures, known | totals, rows, ('large',) * count)


def comparison(
    worth: Worth,
    flights: int = 6,
    latency: Callable[[ComparisonCase], float] | None = None,
    plan: ComparisonPlan | None = None,
) -> Comparison:
    """A comparison in which ``worth(case, flight)`` is every accuracy, ``latency(case)`` in ms."""
    chosen = plan or plan_comparison(FACTS, '', '', '50ms,100ms', '100,50')
    late = latency or (lambda case: 150.0 if case.policy == 'blocking' else 5.0)
    return Comparison(
        chosen,
        tuple(f'flight_{number}' for number in range(flights)),
        {
            case: [
                outcome(
                    worth(case, number),
                    [late(case) + step for step in (0.0, 1.0, 2.0, 3.0)],
                    [worth(case, number) + shift for shift in (-0.2, -0.1, 0.1, 0.2)],
                    'night' if number % 2 else 'day',
                )
                for number in range(flights)
            ]
            for case in chosen.cases
        },
    )


def better_ours(case: ComparisonCase, flight: int) -> float:
    """Ours is better by a tenth in every flight; flights differ much."""
    return 0.4 + 0.03 * flight + 0.1 * case.policy.startswith('ours')
