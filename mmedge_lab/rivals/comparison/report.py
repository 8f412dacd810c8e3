"""The report of a comparison as plain values with stable keys; None where there is no figure."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from mmedge_lab.judging.bundle_report import plain
from mmedge_lab.judging.case_figures import OVERALL, CaseFigures, Stratum
from mmedge_lab.judging.flight_bootstrap import CONFIDENCE, Estimate, flights_with
from mmedge_lab.policies.schedule import SAMPLE
from mmedge_lab.rivals.comparison.estimates import (
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
from mmedge_lab.rivals.comparison.outcome import Outcome
from mmedge_lab.rivals.comparison.plan import (
    BLOCKING,
    OURS,
    ComparisonCase,
    ComparisonPlan,
)
from mmedge_ros.report.energy import EnergyModel

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
    """The outcome of each case in every flight, in the order of ``flights``.

    ``seeds`` are those that flights were simulated from; () where each has its own.
    """

    plan: ComparisonPlan
    flights: tuple[str, ...]
    outcomes: Mapping[ComparisonCase, Sequence[Outcome]]
    seeds: tuple[str, ...] = ()

    @cached_property
    def bootstrap(self) -> Bootstrap:
        """The drawings, the same for all figures."""
        return Bootstrap.of(self.seeds or self.flights)

    @cached_property
    def halves(self) -> Halves | None:
        """Easy and hard windows; None where blocking was not run alone and unloaded."""
        case = self.plan.base(BLOCKING, SAMPLE)
        return Halves(self.outcomes[case]) if case in self.outcomes else None

    def figure(self, case: ComparisonCase, name: str) -> Drawn:
        """Return a figure of a case."""
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
        """Return the conditions that flights differ in, ordered for reading."""
        some = next(iter(self.outcomes.values()), ())
        strata = {s for outcome in some for s in outcome.figures.sums if s.factor in FACTORS}
        return sorted(strata, key=_order)


def comparison_report(comparison: Comparison) -> dict[str, Any]:
    """Return the whole report but verdicts."""
    plan, halves = comparison.plan, comparison.halves
    rule = {'rule': 'upper half by the IoU of blocking, each window alone'}
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
            'unit': 'seed',
            'seeds': len(set(comparison.seeds or comparison.flights)),
            'resamples': len(comparison.bootstrap.drawings.weights),
            'resamples_of_quantiles': QUANTILE_RESAMPLES,
            'confidence': CONFIDENCE,
        },
        'energy_model': EnergyModel().words,
        'cases': [_case(comparison, case) for case in plan.cases],
        'differences': list(_differences(comparison)),
        'halves': None if halves is None else rule | halves.counts(),
        'timeline': _timeline(comparison),
    }


def named_case(row: Mapping[str, Any]) -> ComparisonCase:
    """Return the case of a row of a report."""
    return ComparisonCase(row['policy'], row['protocol'], row['share'], row['limit_ms'])


def case_of(report: Mapping[str, Any], case: ComparisonCase) -> dict[str, Any] | None:
    """Return the row of a case in a report; None where it was not judged."""
    return next((dict(row) for row in report['cases'] if named_case(row) == case), None)


def figure_of(row: Mapping[str, Any], name: str) -> dict[str, float | None]:
    """Return a figure such as ``latency_ms.p95`` of a case of a report."""
    figure: Any = row['figures']
    for part in name.split('.'):
        figure = figure[part]
    return dict(figure)


def _case(comparison: Comparison, case: ComparisonCase) -> dict[str, Any]:
    outcomes = comparison.outcomes[case]
    accuracies = [outcome.figures for outcome in outcomes]
    drawings = comparison.bootstrap.drawings
    estimates = {name: comparison.figure(case, name).estimate for name in FIGURES}
    for name, median in ERRORS.items():
        estimates[name] = drawings.estimate(accuracies, OVERALL, median)
    figures: dict[str, Any] = {}
    for name, estimate in estimates.items():
        *folders, last = name.split('.')
        place = figures
        for folder in folders:
            place = place.setdefault(folder, {})
        place[last] = plain(estimate)
    levels = Counter(level for outcome in outcomes for level in outcome.levels if level)
    return {
        **case._asdict(),
        **{name: _total(outcomes, name) for name in ('windows', 'decisions', 'dropped')},
        'figures': figures,
        'camera_levels': {
            level: round(count / levels.total(), 4) for level, count in sorted(levels.items())
        },
        'strata': _strata(comparison, accuracies),
        'halves': _halves(comparison, outcomes),
    }


def _total(outcomes: Sequence[Outcome], name: str) -> int:
    return round(sum(outcome.totals[name] for outcome in outcomes))


def _strata(comparison: Comparison, accuracies: Sequence[CaseFigures]) -> dict[str, Any]:
    drawings = comparison.bootstrap.drawings
    strata: dict[str, Any] = {}
    for stratum in comparison.strata():
        strata.setdefault(stratum.factor, {})[stratum.name] = {
            'flights': flights_with(accuracies, stratum, 'people'),
            'people': round(sum(flight.value(stratum, 'people') for flight in accuracies)),
        } | {
            figure: plain(drawings.estimate(accuracies, stratum, figure))
            for figure in _STRATUM_FIGURES
        }
    return strata


def _halves(comparison: Comparison, outcomes: Sequence[Outcome]) -> dict[str, Any] | None:
    halves, draw = comparison.halves, comparison.bootstrap
    if halves is None:
        return None
    figures = {}
    for half in HALVES:
        iou = halves.share(draw, outcomes, half, 'overlap', 'people')
        streaming = halves.share(draw, outcomes, half, 'stream_overlap', 'streamed')
        p95 = halves.quantile(draw, outcomes, half, 'latency', 0.95)
        figures[half] = {
            'mean_iou': plain(iou.estimate),
            'streaming_mean_iou': plain(streaming.estimate),
            'latency_p95_ms': plain(p95.estimate),
        }
    return figures


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
                yield _difference(ours, facts.name, Stratum('all', 'all'), name, estimate)
            if ours == plan.base(OURS):
                yield from _by_stratum(comparison, ours, other)


def _by_stratum(
    comparison: Comparison, ours: ComparisonCase, other: ComparisonCase
) -> Iterator[dict[str, Any]]:
    draw, halves = comparison.bootstrap, comparison.halves
    pair = (comparison.outcomes[ours], comparison.outcomes[other])
    mine, theirs = ([outcome.figures for outcome in outcomes] for outcomes in pair)
    for stratum in comparison.strata():
        estimate = draw.drawings.difference(mine, theirs, stratum, 'streaming_mean_iou')
        yield _difference(ours, other.policy, stratum, STREAMING, estimate)
    if halves is not None:
        for half in HALVES:
            own, rival = (
                halves.share(draw, outcomes, half, 'stream_overlap', 'streamed')
                for outcomes in pair
            )
            stratum = Stratum('half', half)
            yield _difference(ours, other.policy, stratum, STREAMING, own.minus(rival))


def _difference(
    ours: ComparisonCase, against: str, stratum: Stratum, figure: str, estimate: Estimate
) -> dict[str, Any]:
    return {
        'against': against,
        'protocol': ours.protocol,
        'share': ours.share,
        'limit_ms': ours.limit_ms,
        'factor': stratum.factor,
        'stratum': stratum.name,
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


def _order(stratum: Stratum) -> tuple[int, int, str]:
    names = _ORDER.get(stratum.factor, ())
    place = names.index(stratum.name) if stratum.name in names else len(names)
    return FACTORS.index(stratum.factor), place, stratum.name
