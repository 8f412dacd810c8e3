"""Results of trainings and calibrations: the few figures of each report that a verdict needs."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any, NamedTuple

from mmedge_lab.judging.flight_bootstrap import Estimate
from mmedge_lab.rivals.comparison.plain_fields import Fields

GATE, ABLATIONS, PREDICTOR, LATENCY = 'gate', 'ablations', 'predictor', 'latency'


@dataclass(frozen=True)
class GateResult:
    """A gate in closed loop, on flights that did not certify it if ``unseen_flights`` > 0.

    ``loss`` of streaming IoU, of people kept in view (``missed``), and the share of encodes
    ``saved`` are those of ``threshold``: the certified one, else 0.5. ``beside_*`` are the loss
    less that of another way to encode as few pictures: a lower rate of the camera, reuse, and
    more reuse on top of reuse.
    """

    bundle: str
    command: str
    delta: float
    is_certified: bool
    is_worth_it: bool
    calibration_flights: float
    unseen_flights: float
    threshold: float
    early: float
    loss: Estimate
    missed: Estimate
    saved: Estimate
    beside_rate: Estimate
    beside_reuse: Estimate
    on_reuse: Estimate


@dataclass(frozen=True)
class AblationResult:
    """The full network and, as estimates, its gain over networks without parts of it.

    All by worth (``docs/results/fusion.md``) at full rates with the large networks; ``*_least``
    at the lowest rates with the small ones. ``iou``, ``recall``, ``precision`` and
    ``range_error`` are the full network's less those of the last unit alone.
    """

    command: str
    seeds: float
    flights: float
    learned_from: float
    full: float
    newest_picture: float
    last_unit: Estimate
    last_unit_least: Estimate
    shift: Estimate
    differences: Estimate
    whole_window: Estimate
    whole_window_least: Estimate
    iou: Estimate
    recall: Estimate
    precision: Estimate
    range_error: Estimate


@dataclass(frozen=True)
class PredictorResult:
    """An accuracy predictor beside tables over configurations, on flights none of them saw.

    ``error`` and ``table_error`` are mean squared errors of the predictor and the bundle's
    table. Differences (predictor less table) are ``squared`` of those errors, ``within`` of the
    same without the mean of each window, which no choice depends on, and ``regret``, by which
    choices miss the best; ``same_regret`` is less the table of the windows it learnt from.
    """

    command: str
    is_used: bool
    flights: float
    windows: float
    error: float
    table_error: float
    squared: Estimate
    within: Estimate
    regret: Estimate
    same_regret: Estimate


@dataclass(frozen=True)
class LatencyResult:
    """Mean latencies (ms) of real graphs on one flight: ours with its quantiles, and rivals.

    ``floor`` is the mean of what our decisions had to wait for at least. ``below_*`` are shares,
    their intervals the least and most of single runs; ``cached_allows`` is what the floor allows,
    ``dropped`` the share of windows that the blocking graph dropped.
    """

    command: str
    flight: str
    p50: float
    p95: float
    mean: float
    floor: float
    blocking: float
    cached: float
    below_blocking: Estimate
    below_cached: Estimate
    cached_allows: float
    dropped: float


Result = GateResult | AblationResult | PredictorResult | LatencyResult


class ResultKind(NamedTuple):
    """The record of a result, the keys that tell its report from others, and its reader.

    Readers raise EvaluationError for a figure that is missing.
    """

    record: type[Result]
    marks: set[str]
    read: Callable[[Fields], Result]


def read_gate(report: Fields) -> GateResult:
    """Read the report of a gate, see `gate_report.gate_report`."""
    sets = {name: PurePath(str(path)).name for name, path in report.part('sets').values.items()}
    ours, against = report.part('ours'), report.part('against')
    bundle = report.part('bundle').text('name')
    options = {'samples': 'train'}
    words = [w for name, folder in sets.items() for w in (f'--{options.get(name, name)}', folder)]
    return GateResult(
        bundle,
        shlex.join(['mmedge', 'train', 'gate', bundle, *words, '--out', 'BUNDLE']),
        report.number('delta'),
        report.flag('certified'),
        report.flag('ships'),
        calibration_flights=report.number('calibration_flights'),
        unseen_flights=report.number('judged_flights') if 'test' in sets else 0.0,
        threshold=ours.number('value'),
        early=ours.number('early'),
        loss=_of(ours.part('iou_loss')),
        missed=_of(ours.part('miss_loss')),
        saved=_of(ours.part('saved')),
        beside_rate=_of(against.part('thinned')),
        beside_reuse=_of(against.part('reuse')),
        on_reuse=_of(against.part('gate on reuse')),
    )


def _of(entry: Fields) -> Estimate:
    return Estimate(*map(entry.number, Estimate._fields))


def read_ablations(report: Fields) -> AblationResult:
    """Read the report of ablations, see `training.ablation_table.tabulate`."""
    configurations = report.part('configurations')
    full, least = configurations.part('full'), configurations.part('least')
    seeds = report.count('seeds')

    def gained(entry: Fields, variant: str, figure: str = 'worth') -> Estimate:
        less = entry.part('variants').part(variant).part(figure).numbers('less_full', 3)
        return Estimate(*(0.0 - less[place] for place in (0, 2, 1)))

    return AblationResult(
        f'mmedge lab train ablations FEATURES --out OUT --seeds {seeds}',
        seeds,
        report.count('flights'),
        learned_from=report.part('plan').count('learned_from'),
        full=full.part('variants').part('full').part('worth').number('mean'),
        newest_picture=full.part('newest_picture').number('worth'),
        last_unit=gained(full, 'last_unit'),
        last_unit_least=gained(least, 'last_unit'),
        shift=gained(full, 'no_shift'),
        differences=gained(full, 'no_differences'),
        whole_window=gained(full, 'whole_window'),
        whole_window_least=gained(least, 'whole_window'),
        iou=gained(full, 'last_unit', 'mean_iou'),
        recall=gained(full, 'last_unit', 'recall'),
        precision=gained(full, 'last_unit', 'precision'),
        range_error=gained(full, 'last_unit', 'range_error'),
    )


def read_predictor(report: Fields) -> PredictorResult:
    """Read the report of an accuracy predictor, or its section in a bundle's manifest."""
    unseen, against = report.part('test'), report.part('against')
    ours, same = (against.part(f'table_of_the_{name}') for name in ('bundle', 'same_windows'))
    squared = ours.part('squared')
    learnt_from = report.part('calibration').text('set')
    return PredictorResult(
        f'mmedge lab train predictor BUNDLE --train {shlex.quote(learnt_from)} '
        f'--test {shlex.quote(unseen.text("set"))} --out BUNDLE',
        report.text('used') == PREDICTOR,
        unseen.number('flights'),
        unseen.number('windows'),
        error=squared.number('predictor'),
        table_error=squared.number('table'),
        squared=squared.estimate('difference'),
        within=ours.part('within').estimate('difference'),
        regret=ours.part('regret').estimate('difference'),
        same_regret=same.part('regret').estimate('difference'),
    )


def read_latency(report: Fields) -> LatencyResult:
    """Read the report of `mmedge lab bench latency`."""
    ours = report.part('systems').part('ours').part('latency_ms')
    rivals = {name: report.part('systems').part(name) for name in ('blocking', 'blocking_cached')}
    below = {name: report.part('below').part(name) for name in rivals}
    shares = {
        name: Estimate(*map(part.number, ('value', 'least', 'most')))
        for name, part in below.items()
    }
    means = {name: part.part('latency_ms').number('mean') for name, part in rivals.items()}
    return LatencyResult(
        report.text('command'),
        report.text('flight'),
        ours.number('p50'),
        ours.number('p95'),
        ours.number('mean'),
        floor=report.part('floor').part('latency_ms').number('mean'),
        blocking=means['blocking'],
        cached=means['blocking_cached'],
        below_blocking=shares['blocking'],
        below_cached=shares['blocking_cached'],
        cached_allows=below['blocking_cached'].number('floor_allows'),
        dropped=rivals['blocking'].number('dropped_share'),
    )


KINDS: Mapping[str, ResultKind] = {
    GATE: ResultKind(GateResult, {'certificates', 'rivals', 'judged_flights'}, read_gate),
    ABLATIONS: ResultKind(
        AblationResult, {'configurations', 'seeds', 'training_seconds'}, read_ablations
    ),
    PREDICTOR: ResultKind(PredictorResult, {'against', 'used', 'calibration'}, read_predictor),
    LATENCY: ResultKind(LatencyResult, {'systems', 'floor', 'below'}, read_latency),
}


def kind_of(report: Mapping[str, Any]) -> str | None:
    """Return the kind of a report by its keys; None for anything else."""
    return next((name for name, kind in KINDS.items() if kind.marks <= set(report)), None)
