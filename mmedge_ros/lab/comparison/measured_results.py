"""What other commands measure and a comparison cannot: what trainings and calibrations gave.

Each is a record of the few figures a verdict needs, taken from the report.json of its command.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any, NamedTuple

from mmedge_ros.lab.comparison.plain_fields import Fields
from mmedge_ros.lab.evaluation.flight_bootstrap import Estimate

GATE, ABLATIONS, PREDICTOR = 'gate', 'ablations', 'predictor'
_FULL, _LEAST = 'full', 'least'


@dataclass(frozen=True)
class GateResult:
    """A gate in closed loop, on flights that did not certify it if ``unseen_flights`` > 0.

    ``early`` decisions, the share of them that differs (``disagreement``) and of encodes that is
    ``saved``, and what streaming mean IoU changes by, are those of ``threshold``: the certified
    one or, where there is none, 0.5. ``careful_*`` are those of the most careful threshold,
    ``split_*`` those of halves of the flights at thresholds that the other halves certified.
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
    """The full network and, as estimates, by how much it is better than without parts of it.

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
    table. Predictor less table are ``squared`` (those errors), ``within`` (the same without the
    mean of each window, on which no choice depends) and ``regret`` (by how much choices miss the
    best); ``same_*`` are less the table of the windows that the predictor learnt from.
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
    """How results of a kind are told from others, and read."""

    record: type[GateResult] | type[AblationResult] | type[PredictorResult]
    marks: frozenset[str]
    read: Callable[[Fields], Result]


def read_gate(report: Fields) -> GateResult:
    """Read the report of a gate, see `gate_report.gate_report`.

    :raises EvaluationError: for a figure that is missing
    """
    sets = {
        str(name): PurePath(str(path)).name for name, path in report.part('sets').values.items()
    }
    rule, careful = report.first('rules'), report.first('thresholds')
    alpha = report.number('alpha')
    splits = next(
        (row for row in report.rows('splits') if abs(row.number('alpha') - alpha) < 1e-9), None
    )
    bundle = report.part('bundle').text('name')
    words = ' '.join(f'--{name} {folder}' for name, folder in sets.items())
    streaming = rule.part('streaming_difference')
    return GateResult(
        bundle,
        f'mmedge train gate {bundle} {words} --out BUNDLE',
        alpha,
        report.flag('certified'),
        report.number('calibration_flights'),
        report.number('judged_flights') if 'test' in sets else 0.0,
        rule.number('threshold'),
        rule.number('early'),
        _estimate(rule, 'disagreement'),
        _estimate(rule, 'saved'),
        report.number('ceiling'),
        Estimate(*(streaming.number(name) for name in ('value', 'low', 'high'))),
        careful.number('threshold'),
        careful.number('early'),
        careful.number('disagreement'),
        math.nan if splits is None else splits.number('splits'),
        math.nan if splits is None else splits.number('disagreement'),
    )


def read_ablations(report: Fields) -> AblationResult:
    """Read the report of ablations, see `training.ablation_table.tabulate`.

    :raises EvaluationError: for a figure that is missing
    """
    configurations = report.part('configurations')
    full, least = configurations.part(_FULL), configurations.part(_LEAST)
    seeds = report.count('seeds')

    def gained(entry: Fields, variant: str, figure: str = 'worth') -> Estimate:
        found = entry.part('variants').part(variant).part(figure).numbers('less_full', 3)
        return Estimate(*(0.0 - found[place] for place in (0, 2, 1)))

    return AblationResult(
        f'mmedge train ablations FEATURES --out OUT --seeds {seeds}',
        seeds,
        report.count('flights'),
        report.part('plan').count('learned_from'),
        full.part('variants').part('full').part('worth').number('mean'),
        full.part('newest_picture').number('worth'),
        gained(full, 'last_unit'),
        gained(least, 'last_unit'),
        gained(full, 'no_shift'),
        gained(full, 'no_differences'),
        gained(full, 'whole_window'),
        gained(least, 'whole_window'),
        *(
            gained(full, 'last_unit', figure)
            for figure in ('mean_iou', 'recall', 'precision', 'range_error')
        ),
    )


def _estimate(row: Fields, name: str) -> Estimate:
    return Estimate(row.number(name), *row.numbers(f'{name}_interval', 2))


def read_predictor(report: Fields) -> PredictorResult:
    """Read the report of an accuracy predictor, or what of it is in a bundle's manifest.

    :raises EvaluationError: for a figure that is missing
    """
    unseen, against = report.part('test'), report.part('against')
    ours, same = (against.part(f'table_of_the_{name}') for name in ('bundle', 'same_windows'))
    squared = ours.part('squared')
    learnt_from = report.part('calibration').text('set')
    return PredictorResult(
        f'mmedge train predictor BUNDLE --calibration {learnt_from} --test {unseen.text("set")} '
        '--out BUNDLE',
        report.text('used') == PREDICTOR,
        unseen.number('flights'),
        unseen.number('windows'),
        squared.number('predictor'),
        squared.number('table'),
        *(ours.part(name).estimate('difference') for name in ('squared', 'within', 'regret')),
        *(same.part(name).estimate('difference') for name in ('squared', 'regret')),
    )


KINDS: Mapping[str, ResultKind] = {
    GATE: ResultKind(
        GateResult, frozenset({'certificates', 'rules', 'judged_flights'}), read_gate
    ),
    ABLATIONS: ResultKind(
        AblationResult, frozenset({'configurations', 'seeds', 'training_seconds'}), read_ablations
    ),
    PREDICTOR: ResultKind(
        PredictorResult, frozenset({'against', 'used', 'calibration'}), read_predictor
    ),
}


def kind_of(report: Mapping[str, Any]) -> str | None:
    """Tell by its keys what a report is about; None for anything else."""
    return next((name for name, kind in KINDS.items() if kind.marks <= set(report)), None)
