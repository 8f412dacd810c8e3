"""The report of a comparison as plain values with stable keys; None where there is no figure."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from mmedge_ros.lab.comparison.estimates import (
    CPU,
    ERRORS,
    FIGURES,
    HALVES,
    MEAN_IOU,
    P50,
    P95,
    QUANTILE_RESAMPLES,
    STREAMING,
    Bootstrap,
    Drawn,
    Halves,
)
from mmedge_ros.lab.comparison.outcome import Outcome
from mmedge_ros.lab.comparison.plan import (
    BLOCKING,
    OURS,
    ComparisonCase,
    ComparisonPlan,
)
from mmedge_ros.lab.evaluation.bundle_report import plain
from mmedge_ros.lab.evaluation.case_figures import OVERALL, Stratum
from mmedge_ros.lab.evaluation.flight_bootstrap import CONFIDENCE, Estimate, flights_with
from mmedge_ros.lab.policies.policy_run import EnergyModel
from mmedge_ros.lab.policies.schedule import SAMPLE

FACTORS = ('distance', 'surroundings', 'light')
COMPARED = (
    STREAMING,
    'accuracy.streaming_mean_iou_20px',
    MEAN_IOU,
    'tracking.idf1',
    P50,
    P95,
    'late_or_dropped_share',
    CPU,
    'power_w',
)
_STRATUM_FIGURES = ('streaming_mean_iou', 'mean_iou', 'recall', 'position_error_m')
_ORDER = {
    'distance': ('near', 'middle', 'far'),
    'light': ('day', 'dusk', 'lamps', 'night', 'fog'),
}
_TIMELINE = ('latency', 'rate_camera', 'rate_radar', 'decided')


@dataclass(frozen=True, eq=False)
class Comparison:
    """What was found: of each case the outcome of every flight, in the order of ``flights``.

    ``scenarios`` is that of each flight where several seeds of each were flown; () otherwise.
    """

    plan: ComparisonPlan
    flights: tuple[str, ...]
    outcomes: Mapping[ComparisonCase, Sequence[Outcome]]
    scenarios: tuple[str, ...] = ()

    @cached_property
    def bootstrap(self) -> Bootstrap:
        """The drawings, the same for all figures."""
        return Bootstrap.within(self.scenarios or self.flights)

    @cached_property
    def halves(self) -> Halves | None:
        """Easy and hard windows; None where blocking was not run alone and unloaded."""
        case = self.plan.base(BLOCKING, SAMPLE)
        return Halves(self.outcomes[case]) if case in self.outcomes else None

    def figure(self, case: ComparisonCase, name: str) -> Drawn:
        """Find a figure of a case."""
        return self.bootstrap.figure(self.outcomes[case], name)

    def unread(self) -> dict[str, list[str]]:
        """Return, by flight, what of its recording could not be used."""
        outcomes = next(iter(self.outcomes.values()), ())
        return {
            name: list(outcome.problems)
            for name, outcome in zip(self.flights, outcomes, strict=False)
            if outcome.problems
        }

    def strata(self) -> list[Stratum]:
        """Return the conditions that flights differ in, in an order for people."""
        some = next(iter(self.outcomes.values()), ())
        found = {s for outcome in some for s in outcome.figures.sums if s.factor in FACTORS}
        return sorted(found, key=_order)


def comparison_report(comparison: Comparison) -> dict[str, Any]:
    """Return everything that was found but verdicts."""
    plan = comparison.plan
    halves = comparison.halves
    return {
        'flights': list(comparison.flights),
        'unread': comparison.unread(),
        'plan': {
            'policies': [facts._asdict() for facts in plan.policies],
            'protocols': list(plan.protocols),
            'shares': list(plan.shares),
            'limits_ms': list(plan.limits_ms),
            'headline': {
                'protocol': plan.protocol,
                'share': plan.shares[0],
                'limit_ms': plan.limits_ms[0],
            },
        },
        'bootstrap': {
            'unit': 'scenario and flight' if comparison.scenarios else 'flight',
            'units': len(set(comparison.scenarios or comparison.flights)),
            'resamples': len(comparison.bootstrap.drawings.weights),
            'resamples_of_quantiles': QUANTILE_RESAMPLES,
            'confidence': CONFIDENCE,
        },
        'energy_model': energy_words(),
        'cases': [_case(comparison, case) for case in plan.cases],
        'differences': list(_differences(comparison)),
        'halves': None
        if halves is None
        else {'rule': 'upper half by the IoU of blocking, each window alone', **halves.counts()},
        'timeline': _timeline(comparison),
    }


def energy_words() -> str:
    """Say what the energy of a policy is by."""
    model = EnergyModel()
    return (
        f'a model, not measured: {model.idle:g} W all the time and {model.busy:g} W more for each '
        'processor second of work'
    )


def case_of(report: Mapping[str, Any], case: ComparisonCase) -> dict[str, Any] | None:
    """Find a case in a report; None where it was not judged."""
    for row in report['cases']:
        if ComparisonCase(row['policy'], row['protocol'], row['share'], row['limit_ms']) == case:
            return dict(row)
    return None


def figure_of(row: Mapping[str, Any], name: str) -> dict[str, float | None]:
    """Find a figure such as ``latency_ms.p95`` in a case of a report."""
    found: Any = row['figures']
    for part in name.split('.'):
        found = found[part]
    return dict(found)


def _case(comparison: Comparison, case: ComparisonCase) -> dict[str, Any]:
    outcomes = comparison.outcomes[case]
    figures: dict[str, Any] = {}
    for name in FIGURES:
        _put(figures, name, plain(comparison.figure(case, name).estimate))
    drawings = comparison.bootstrap.drawings
    accuracies = [outcome.figures for outcome in outcomes]
    for name, median in ERRORS.items():
        _put(figures, name, plain(drawings.estimate(accuracies, OVERALL, median)))
    levels = Counter(level for outcome in outcomes for level in outcome.levels if level)
    return {
        **case._asdict(),
        'windows': round(sum(outcome.totals['windows'] for outcome in outcomes)),
        'decisions': round(sum(outcome.totals['decisions'] for outcome in outcomes)),
        'dropped': round(sum(outcome.totals['dropped'] for outcome in outcomes)),
        'figures': figures,
        'camera_levels': {
            level: round(count / levels.total(), 4) for level, count in sorted(levels.items())
        },
        'strata': _strata(comparison, case),
        'halves': _halves(comparison, outcomes),
    }


def _strata(comparison: Comparison, case: ComparisonCase) -> dict[str, Any]:
    accuracies = [outcome.figures for outcome in comparison.outcomes[case]]
    drawings = comparison.bootstrap.drawings
    found: dict[str, Any] = {}
    for stratum in comparison.strata():
        found.setdefault(stratum.factor, {})[stratum.name] = {
            'flights': flights_with(accuracies, stratum, 'people'),
            'people': round(sum(flight.value(stratum, 'people') for flight in accuracies)),
        } | {
            figure: plain(drawings.estimate(accuracies, stratum, figure))
            for figure in _STRATUM_FIGURES
        }
    return found


def _halves(comparison: Comparison, outcomes: Sequence[Outcome]) -> dict[str, Any] | None:
    halves, bootstrap = comparison.halves, comparison.bootstrap
    if halves is None:
        return None
    return {
        half: {
            'mean_iou': plain(
                halves.share(bootstrap, outcomes, half, 'overlap', 'people').estimate
            ),
            'streaming_mean_iou': plain(
                halves.share(bootstrap, outcomes, half, 'stream_overlap', 'streamed').estimate
            ),
            'latency_p95_ms': plain(
                halves.quantile(bootstrap, outcomes, half, 'latency', 0.95).estimate
            ),
        }
        for half in HALVES
    }


def _differences(comparison: Comparison) -> Iterator[dict[str, Any]]:
    """Yield ours minus every other policy, in the same flights, drawn together."""
    plan = comparison.plan
    for ours in plan.cases:
        if ours.policy != OURS:
            continue
        for facts in plan.policies:
            other = ours._replace(policy=facts.name)
            if facts.name == OURS or other not in comparison.outcomes:
                continue
            for name in COMPARED:
                estimate = comparison.figure(ours, name).minus(comparison.figure(other, name))
                yield _difference(ours, facts.name, 'all', 'all', name, estimate)
            if ours == plan.base(OURS):
                yield from _by_stratum(comparison, ours, other)


def _by_stratum(
    comparison: Comparison, ours: ComparisonCase, other: ComparisonCase
) -> Iterator[dict[str, Any]]:
    drawings, halves = comparison.bootstrap.drawings, comparison.halves
    mine, theirs = comparison.outcomes[ours], comparison.outcomes[other]
    for stratum in comparison.strata():
        estimate = drawings.difference(
            [outcome.figures for outcome in mine],
            [outcome.figures for outcome in theirs],
            stratum,
            'streaming_mean_iou',
        )
        yield _difference(ours, other.policy, *stratum, STREAMING, estimate)
    for half in HALVES if halves is not None else ():
        assert halves is not None
        found = [
            halves.share(comparison.bootstrap, o, half, 'stream_overlap', 'streamed')
            for o in (mine, theirs)
        ]
        yield _difference(ours, other.policy, 'half', half, STREAMING, found[0].minus(found[1]))


def _difference(
    ours: ComparisonCase, against: str, factor: str, stratum: str, figure: str, estimate: Estimate
) -> dict[str, Any]:
    return {
        'against': against,
        'protocol': ours.protocol,
        'share': ours.share,
        'limit_ms': ours.limit_ms,
        'factor': factor,
        'stratum': stratum,
        'figure': figure,
        **plain(estimate),
        'excludes_zero': estimate.excludes_zero,
    }


def _timeline(comparison: Comparison) -> dict[str, Any] | None:
    """Return one flight, window by window: the one in which the streaming IoU varies most."""
    plan = comparison.plan
    first = next((p.name for p in plan.policies if p.name == OURS), plan.policies[0].name)
    case = plan.base(first)
    spreads = [float(np.nanstd(_quality(o))) for o in comparison.outcomes[case] if len(o.rows)]
    if not spreads or not np.isfinite(spreads).any():
        return None
    number = int(np.nanargmax(spreads))
    rows = {}
    for facts in plan.policies:
        outcome = comparison.outcomes[plan.base(facts.name)][number]
        ends = outcome.column('end')
        rows[facts.name] = {
            'window_end_s': [round(float(end - ends[0]), 3) for end in ends],
            'streaming_mean_iou': _rounded(_quality(outcome).tolist()),
            **{name: _rounded(outcome.column(name).tolist()) for name in _TIMELINE},
            'camera_level': list(outcome.levels),
        }
    return {'flight': comparison.flights[number], 'policies': rows}


def _quality(outcome: Outcome) -> Any:
    with np.errstate(invalid='ignore', divide='ignore'):
        streamed = outcome.column('streamed')
        return np.where(streamed > 0.0, outcome.column('stream_overlap') / streamed, np.nan)


def _rounded(values: Sequence[float]) -> list[float | None]:
    return [round(value, 5) if math.isfinite(value) else None for value in values]


def _put(figures: dict[str, Any], name: str, value: Any) -> None:
    *folders, last = name.split('.')
    for folder in folders:
        figures = figures.setdefault(folder, {})
    figures[last] = value


def _order(stratum: Stratum) -> tuple[int, int, str]:
    names = _ORDER.get(stratum.factor, ())
    place = names.index(stratum.name) if stratum.name in names else len(names)
    return FACTORS.index(stratum.factor), place, stratum.name
