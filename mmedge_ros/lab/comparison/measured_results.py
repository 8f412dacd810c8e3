"""Results of trainings and calibrations: the few figures of each report that a verdict needs."""

from __future__ import annotations

import math
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any, NamedTuple

from mmedge_ros.lab.comparison.plain_fields import Fields
from mmedge_ros.lab.evaluation.flight_bootstrap import Estimate

GATE, ABLATIONS, PREDICTOR = 'gate', 'ablations', 'predictor'


@dataclass(frozen=True)
class GateResult:
    """A gate in closed loop, on flights that did not certify it if ``unseen_flights`` > 0.

    ``early`` decisions, the share of them that differs (``disagreement``), the share of encodes
    ``saved`` and the change of ``streaming`` mean IoU are those of ``threshold``: the certified
    one, else 0.5. ``careful_*`` are those of the most careful threshold, ``split_*`` those of
    halves of the flights at thresholds that the other halves certified.
    """

    bundle: str
    command: str
    alpha: float
    is_certified: bool
    calibration_flights: float
    unseen_flights: float
    threshold: float
    early: float
    disagreement: Estimate
    saved: Estimate
    ceiling: float
    streaming: Estimate
    careful_threshold: float
    careful_early: float
    careful_disagreement: float
    splits: float
    split_disagreement: float


@dataclass(frozen=True)
class AblationResult:
    """The full network and, as estimates, its gain over networks without parts of it.

    All by worth (see ``docs/ablations.md``) at full rates with the large networks; ``*_least``
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
    choices miss the best; ``same_*`` are less the table of the windows the predictor learnt from.
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
    same_squared: Estimate
    same_regret: Estimate


Result = GateResult | AblationResult | PredictorResult


class ResultKind(NamedTuple):
    """The record of a result, the keys that tell its report from others, and its reader.

    Readers raise EvaluationError for a figure that is missing.
    """

    record: type[GateResult] | type[AblationResult] | type[PredictorResult]
    marks: set[str]
    read: Callable[[Fields], Result]


def read_gate(report: Fields) -> GateResult:
    """Read the report of a gate, see `gate_report.gate_report`."""
    sets = {name: PurePath(str(path)).name for name, path in report.part('sets').values.items()}
    rule, careful = report.first('rules'), report.first('thresholds')
    alpha = report.number('alpha')
    split = next((r for r in report.rows('splits') if abs(r.number('alpha') - alpha) < 1e-9), None)
    bundle = report.part('bundle').text('name')
    options = {'samples': 'train'}
    words = [w for name, folder in sets.items() for w in (f'--{options.get(name, name)}', folder)]
    streaming = rule.part('streaming_difference')
    return GateResult(
        bundle,
        shlex.join(['mmedge', 'train', 'gate', bundle, *words, '--out', 'BUNDLE']),
        alpha,
        report.flag('certified'),
        calibration_flights=report.number('calibration_flights'),
        unseen_flights=report.number('judged_flights') if 'test' in sets else 0.0,
        threshold=rule.number('threshold'),
        early=rule.number('early'),
        disagreement=_with_interval(rule, 'disagreement'),
        saved=_with_interval(rule, 'saved'),
        ceiling=report.number('ceiling'),
        streaming=Estimate(*map(streaming.number, ('value', 'low', 'high'))),
        careful_threshold=careful.number('threshold'),
        careful_early=careful.number('early'),
        careful_disagreement=careful.number('disagreement'),
        splits=math.nan if split is None else split.number('splits'),
        split_disagreement=math.nan if split is None else split.number('disagreement'),
    )


def _with_interval(row: Fields, name: str) -> Estimate:
    return Estimate(row.number(name), *row.numbers(f'{name}_interval', 2))


def read_ablations(report: Fields) -> AblationResult:
    """Read the report of ablations, see `training.ablation_table.tabulate`."""
    configurations = report.part('configurations')
    full, least = configurations.part('full'), configurations.part('least')
    seeds = report.count('seeds')

    def gained(entry: Fields, variant: str, figure: str = 'worth') -> Estimate:
        less = entry.part('variants').part(variant).part(figure).numbers('less_full', 3)
        return Estimate(*(0.0 - less[place] for place in (0, 2, 1)))

    return AblationResult(
        f'mmedge train ablations FEATURES --out OUT --seeds {seeds}',
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
        f'mmedge train predictor BUNDLE --train {shlex.quote(learnt_from)} '
        f'--test {shlex.quote(unseen.text("set"))} --out BUNDLE',
        report.text('used') == PREDICTOR,
        unseen.number('flights'),
        unseen.number('windows'),
        error=squared.number('predictor'),
        table_error=squared.number('table'),
        squared=squared.estimate('difference'),
        within=ours.part('within').estimate('difference'),
        regret=ours.part('regret').estimate('difference'),
        same_squared=same.part('squared').estimate('difference'),
        same_regret=same.part('regret').estimate('difference'),
    )


KINDS: Mapping[str, ResultKind] = {
    GATE: ResultKind(GateResult, {'certificates', 'rules', 'judged_flights'}, read_gate),
    ABLATIONS: ResultKind(
        AblationResult, {'configurations', 'seeds', 'training_seconds'}, read_ablations
    ),
    PREDICTOR: ResultKind(PredictorResult, {'against', 'used', 'calibration'}, read_predictor),
}


def kind_of(report: Mapping[str, Any]) -> str | None:
    """Return the kind of a report by its keys; None for anything else."""
    return next((name for name, kind in KINDS.items() if kind.marks <= set(report)), None)
