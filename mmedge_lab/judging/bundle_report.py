"""The report of an evaluation: every figure with its interval, as values for JSON."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mmedge_lab.judging.bundle_cases import (
    CAMERA_ONLY,
    DECISION_FUSION,
    FUSION,
    RADAR_ONLY,
    Case,
    CasePlan,
    Strategy,
)
from mmedge_lab.judging.case_figures import (
    BEYOND,
    EASY,
    FAR,
    MEDIANS,
    NIGHT,
    OVERALL,
    QUOTIENTS,
    RANGE_EDGES,
    CaseFigures,
    Stratum,
)
from mmedge_lab.judging.flight_bootstrap import CONFIDENCE, Drawings, Estimate, flights_with
from mmedge_ros.report.accuracy import SIZE_EDGES, VISIBILITY_EDGES, bands

FACTORS = ('size', 'range', 'occlusion', 'light', 'distance', 'surroundings', 'claims')
FIGURES = (*QUOTIENTS, *MEDIANS)
_WORDS = {
    'mean_iou': 'mean IoU',
    'mean_iou_20px': 'mean IoU, 20 px up',
    'mean_iou_40px': 'mean IoU, 40 px up',
    'streaming_mean_iou': 'streaming mean IoU',
    'streaming_mean_iou_20px': 'streaming mean IoU, 20 px up',
    'recall': 'recall',
    'recall_20px': 'recall, 20 px up',
    'precision': 'precision',
    'place_recall': 'placed within 2 m',
    'range_error_m': 'range error, m',
    'position_error_m': 'position error, m',
}
COMPARED = ('mean_iou', 'mean_iou_20px', 'streaming_mean_iou', 'place_recall')
# What a figure over configurations is about.
GRID_FIGURES = ('mean_iou', 'mean_iou_20px', 'streaming_mean_iou', 'place_recall', 'precision')
TARGETS = (('mean_iou_20px', 0.60), ('mean_iou_40px', 0.70))
_LIGHTS = ('day', 'dusk', 'lamps', 'night', 'fog')
_DISTANCES = ('near', 'middle', 'far')
_AXES = ('camera_rate', 'camera_level', 'radar_rate', 'radar_level')
_DIGITS = 5


@dataclass(frozen=True, eq=False)
class Evaluation:
    """What was judged: of each case the figures of every flight, in the order of ``flights``."""

    plan: CasePlan
    flights: tuple[str, ...]
    figures: Mapping[Case, Sequence[CaseFigures]]
    drawings: Drawings

    @property
    def full(self) -> Sequence[CaseFigures]:
        """The bundle's own strategy at the fullest configuration."""
        return self.figures[self.plan.full]

    def of(self, strategy: Strategy) -> Sequence[CaseFigures]:
        """A strategy at the fullest configuration."""
        return self.figures[self.plan.of(strategy)]

    def strata(self) -> list[Stratum]:
        """Return the strata that hold people, factor by factor, in their natural order."""
        strata = {stratum for flight in self.full for stratum in flight.sums}
        return sorted(strata - {OVERALL}, key=_order)


def evaluation_report(evaluation: Evaluation) -> dict[str, Any]:
    """Return all figures as plain values; None where there is no figure."""
    plan = evaluation.plan
    return {
        'full_configuration': _configuration(plan.full),
        'flights': list(evaluation.flights),
        'bootstrap': {
            'unit': 'seed',
            'seeds': evaluation.drawings.count(np.ones(len(evaluation.flights), np.bool_)),
            'resamples': len(evaluation.drawings.weights),
            'confidence': CONFIDENCE,
        },
        'targets': [_target(evaluation, figure, least) for figure, least in TARGETS],
        'claims': [*_claims(evaluation)],
        'strategies': {s.name: _strategy(evaluation, s) for s in plan.strategies},
        'differences': [
            _difference(evaluation, other, stratum, figure)
            for other in plan.strategies
            if other != FUSION
            for stratum in (OVERALL, *evaluation.strata())
            for figure in COMPARED
        ],
        'configurations': [
            _configuration(case)
            | {
                figure: plain(evaluation.drawings.estimate(flights, OVERALL, figure))
                for figure in GRID_FIGURES
            }
            for case, flights in _grid(evaluation)
        ],
        'axes': _axes(evaluation),
        'monotony': {
            figure: monotony(evaluation, figure) for figure in ('mean_iou', 'streaming_mean_iou')
        }
        if len(plan.grid) > 1
        else None,
    }


def monotony(evaluation: Evaluation, figure: str) -> dict[str, Any]:
    """Count the steps up one axis, all else equal, at which the figure falls by more than noise.

    By chance alone it would at one in forty of steps that change nothing.
    """
    falls: list[dict[str, Any]] = []
    rises = steps = 0
    for axis, case, above in _steps(evaluation.plan):
        change = evaluation.drawings.difference(
            evaluation.figures[above], evaluation.figures[case], OVERALL, figure
        )
        steps += 1
        rises += change.low > 0.0
        if change.high < 0.0:
            falls.append(
                {
                    'axis': axis,
                    'from': _configuration(case),
                    'to': _configuration(above),
                    'change': plain(change),
                }
            )
    expected = steps * (1.0 - CONFIDENCE) / 2.0
    falls.sort(key=lambda fall: fall['change']['value'])
    return {
        'steps': steps,
        'rises': rises,
        'within_noise': steps - rises - len(falls),
        'falls': falls,
        'falls_by_chance': _round(expected),
        'monotone_within_noise': len(falls) <= expected,
    }


def figure_words(figure: str) -> str:
    """Write the name of a figure for people."""
    return _WORDS.get(figure, figure)


def plain(estimate: Estimate) -> dict[str, float | None]:
    """Return an estimate as values for JSON."""
    return {name: _round(value) for name, value in estimate._asdict().items()}


def _order(stratum: Stratum) -> tuple[int, int, str]:
    sequences: dict[str, Sequence[str]] = {
        'size': [name for name, *_ in bands(SIZE_EDGES)],
        'range': [name for name, *_ in bands(RANGE_EDGES)],
        'occlusion': list(VISIBILITY_EDGES),
        'light': _LIGHTS,
        'distance': _DISTANCES,
    }
    names = sequences.get(stratum.factor, ())
    place = list(names).index(stratum.name) if stratum.name in names else len(names)
    factor = FACTORS.index(stratum.factor) if stratum.factor in FACTORS else len(FACTORS)
    return factor, place, stratum.name


def _strategy(evaluation: Evaluation, strategy: Strategy) -> dict[str, Any]:
    flights = evaluation.of(strategy)
    strata: dict[str, dict[str, Any]] = {}
    for stratum in evaluation.strata():
        strata.setdefault(stratum.factor, {})[stratum.name] = _row(evaluation, flights, stratum)
    return {
        'words': strategy.words,
        'overall': _row(evaluation, flights, OVERALL),
        'strata': strata,
    }


def _row(
    evaluation: Evaluation, flights: Sequence[CaseFigures], stratum: Stratum
) -> dict[str, Any]:
    return {
        'flights': flights_with(flights, stratum, 'people'),
        'people': round(sum(flight.value(stratum, 'people') for flight in flights)),
    } | {
        figure: plain(evaluation.drawings.estimate(flights, stratum, figure)) for figure in FIGURES
    }


def _difference(
    evaluation: Evaluation, other: Strategy, stratum: Stratum, figure: str
) -> dict[str, Any]:
    ours, theirs = evaluation.full, evaluation.of(other)
    estimate = evaluation.drawings.difference(ours, theirs, stratum, figure)
    return {
        'against': other.name,
        'factor': stratum.factor,
        'stratum': stratum.name,
        'figure': figure,
        'flights': flights_with(ours, stratum, QUOTIENTS[figure][1]),
        **plain(estimate),
        'excludes_zero': estimate.excludes_zero,
    }


def _target(evaluation: Evaluation, figure: str, least: float) -> dict[str, Any]:
    estimate = evaluation.drawings.estimate(evaluation.full, OVERALL, figure)
    return {
        'figure': figure,
        'least': least,
        **plain(estimate),
        'reached': None if math.isnan(estimate.value) else estimate.value >= least,
    }


def _claims(evaluation: Evaluation) -> Iterator[dict[str, Any]]:
    """Yield the claims about fusion, and whether the intervals support them."""
    for other in (CAMERA_ONLY, DECISION_FUSION):
        if other not in evaluation.plan.strategies:
            continue
        for stratum, where in ((NIGHT, 'at night'), (BEYOND, f'beyond {FAR:g} m')):
            yield _claim(evaluation, other, stratum, f'better than {other.short} {where}')
        yield _claim(
            evaluation, other, EASY, f'not worse than {other.short} in easy daylight', False
        )
    places = [OVERALL, *(s for s in evaluation.strata() if s.factor in ('light', 'range'))]
    for stratum in places:
        where = 'overall' if stratum == OVERALL else f'{stratum.factor} {stratum.name}'
        unit = ' m' if stratum.factor == 'range' else ''
        words = f'better than {RADAR_ONLY.short}, {where}{unit}'
        yield _claim(evaluation, RADAR_ONLY, stratum, words)


def _claim(
    evaluation: Evaluation, other: Strategy, stratum: Stratum, words: str, better: bool = True
) -> dict[str, Any]:
    compared = {}
    for figure in ('mean_iou', 'place_recall'):
        estimate = evaluation.drawings.difference(
            evaluation.full, evaluation.of(other), stratum, figure
        )
        holds: bool | None = None
        if math.isfinite(estimate.low):
            holds = estimate.low > 0.0 if better else estimate.high >= 0.0
        compared[figure] = plain(estimate) | {'holds': holds}
    return {
        'claim': words,
        'against': other.name,
        'factor': stratum.factor,
        'stratum': stratum.name,
        'flights': flights_with(evaluation.full, stratum, 'people'),
        **compared,
    }


def _configuration(case: Case) -> dict[str, Any]:
    return {axis: getattr(case, axis) for axis in _AXES}


def _grid(evaluation: Evaluation) -> list[tuple[Case, Sequence[CaseFigures]]]:
    return [(case, evaluation.figures[case]) for case in sorted_grid(evaluation.plan)]


def sorted_grid(plan: CasePlan) -> list[Case]:
    """Return the configurations judged: by camera level and rate, then radar level and rate."""
    camera, radar = (list(plan.levels[m]) for m in ('camera', 'radar'))
    return sorted(
        plan.grid,
        key=lambda case: (
            camera.index(case.camera_level),
            case.camera_rate,
            radar.index(case.radar_level),
            case.radar_rate,
        ),
    )


def _axis_values(plan: CasePlan, axis: str) -> list[Any]:
    if axis == 'camera_level':
        return list(plan.levels['camera'])
    if axis == 'radar_level':
        return list(plan.levels['radar'])
    return sorted({getattr(case, axis) for case in plan.grid})


def _steps(plan: CasePlan) -> Iterator[tuple[str, Case, Case]]:
    """Yield every pair of configurations that are one step of one axis apart."""
    judged = set(plan.grid)
    for axis in _AXES:
        values = _axis_values(plan, axis)
        for case in sorted_grid(plan):
            place = values.index(getattr(case, axis))
            if place + 1 < len(values):
                above = case._replace(**{axis: values[place + 1]})
                if above in judged:
                    yield axis, case, above


def _axes(evaluation: Evaluation) -> dict[str, list[dict[str, Any]]]:
    """Average a figure over all configurations that share a rate or a level."""
    means: dict[str, list[dict[str, Any]]] = {}
    for axis in _AXES:
        for value in _axis_values(evaluation.plan, axis):
            chosen = [c for c in evaluation.plan.grid if getattr(c, axis) == value]
            pooled = [flight for case in chosen for flight in evaluation.figures[case]]
            drawings = evaluation.drawings.repeated(len(chosen))
            means.setdefault(axis, []).append(
                {'value': value}
                | {
                    figure: plain(drawings.estimate(pooled, OVERALL, figure))
                    for figure in ('mean_iou', 'streaming_mean_iou')
                }
            )
    return means


def _round(value: float) -> float | None:
    return round(value, _DIGITS) + 0.0 if math.isfinite(value) else None
