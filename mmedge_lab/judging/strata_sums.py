"""The sums of a judged run: of all people, and of strata of people such as those at night.

Every share or mean is a quotient of two sums over flights, which makes drawing flights again
cheap.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment

from mmedge_lab.judging import accuracy_sums
from mmedge_lab.judging.bench import Figure, Sums
from mmedge_ros.core.data_types import FloatArray, Track
from mmedge_ros.core.run_record import RunRecord
from mmedge_ros.replay.ground_truth import GroundTruth
from mmedge_ros.report.accuracy import SIZE_EDGES, VISIBILITY_EDGES, Accuracy, bands
from mmedge_ros.report.accuracy_samples import (
    ErrorSamples,
    PersonSamples,
    joined_people,
    person_samples,
)
from mmedge_ros.report.truth_matching import POSITION_GATE, Alignment, Mask, counted_people

RANGE_EDGES = (0.0, 10.0, 15.0, 20.0, 25.0, math.inf)
FACTORS: Mapping[str, str] = MappingProxyType(
    {
        'size': 'height in the picture, px',
        'range': 'range, m',
        'occlusion': 'to be seen',
        'light': 'light',
        'distance': 'distance of the flight',
        'surroundings': 'surroundings',
    }
)
_CONDITIONS = ('light', 'distance', 'surroundings')
# By name, in their natural order.
_BANDS: Mapping[str, Mapping[str, tuple[float, float]]] = MappingProxyType(
    {
        'size': {name: (low, high) for name, low, high in bands(SIZE_EDGES)},
        'range': {name: (low, high) for name, low, high in bands(RANGE_EDGES)},
        'occlusion': VISIBILITY_EDGES,
    }
)
_VALUES = {'size': 'heights', 'range': 'ranges', 'occlusion': 'visibility'}
_ORDERS = {
    **{factor: tuple(names) for factor, names in _BANDS.items()},
    'light': ('day', 'dusk', 'lamps', 'night', 'fog'),
    'distance': ('near', 'middle', 'far'),
}

FIGURES: Mapping[str, Figure] = MappingProxyType(
    {
        'people': Figure('people per flight', 'people', digits=0),
        'mean_iou': accuracy_sums.FIGURES['mean_iou'],
        'mean_iou_20px': Figure('20 px up', 'overlap_20px', 'people_20px'),
        'mean_iou_40px': Figure('40 px up', 'overlap_40px', 'people_40px'),
        **{
            name: accuracy_sums.FIGURES[name]
            for name in ('streaming_mean_iou', 'recall', 'precision')
        },
        'place_recall': Figure('placed within 2 m', 'placed', 'asked'),
        'worth': accuracy_sums.PLACEMENT['worth'],
        'false_per_minute': accuracy_sums.PLACEMENT['false_per_minute'],
        'range_error': Figure('range error, m', 'range_errors', digits=2, quantile=0.5),
        'position_error': Figure('position error, m', 'position_errors', digits=2, quantile=0.5),
    }
)


_PLACED = [accuracy_sums.PLACEMENT[name] for name in ('worth', 'false_per_minute')]


class Stratum(NamedTuple):
    """A part of the people: ``factor`` as ``light``, ``name`` as ``night``."""

    factor: str
    name: str

    @property
    def order(self) -> tuple[int, int, str]:
        """By factor, and in its natural order."""
        known = _ORDERS.get(self.factor, ())
        place = known.index(self.name) if self.name in known else len(known)
        return list(FACTORS).index(self.factor), place, self.name

    def of(self, people: PersonSamples) -> PersonSamples:
        """Return those of the people who belong to it."""
        if self.factor in _CONDITIONS:
            return people.select(getattr(people, self.factor) == self.name)
        return people.select(self.within(getattr(people, _VALUES[self.factor])))

    def within(self, values: FloatArray) -> Mask:
        """Mark the values (S,) of a stratum of size, range or visibility."""
        low, high = _BANDS[self.factor][self.name]
        return np.asarray((values >= low) & (values < high))


def person_sums(record: RunRecord, truth: GroundTruth, accuracy: Accuracy) -> Sums:
    """Return what `FIGURES` are made of, of all people.

    :param accuracy: what `accuracy_of` finds in the run
    """
    people = (accuracy.states, accuracy.stream, place_samples(record, truth))
    return _of_run(record, truth) | _sums(*people) | _of_flight(accuracy)


def strata_sums(record: RunRecord, truth: GroundTruth, accuracy: Accuracy) -> Sums:
    """Return `person_sums`, and those of every stratum with people: as ``light/night/people``."""
    people = (accuracy.states, accuracy.stream, place_samples(record, truth))
    errors = accuracy.errors
    sums = _of_run(record, truth) | _sums(*people) | _of_flight(accuracy)
    conditions = {factor: np.unique(getattr(accuracy.states, factor)) for factor in _CONDITIONS}
    strata = [Stratum(factor, name) for factor, names in _BANDS.items() for name in names]
    strata += [Stratum(f, str(name)) for f, names in conditions.items() for name in names if name]
    for stratum in strata:
        own = _sums(*map(stratum.of, people))
        if not own['people']:
            continue
        if len(conditions.get(stratum.factor, ())) == 1:
            own |= _of_flight(accuracy)
        elif stratum.factor == 'range':
            own |= _errors(errors.select(stratum.within(errors.ranges)))
        sums |= {f'{stratum.factor}/{stratum.name}/{c}': value for c, value in own.items()}
    return sums


def strata_in(flights: Iterable[Sums]) -> list[Stratum]:
    """Return the strata that flights have people of, factor by factor, in their natural order."""
    known = {Stratum(*c.split('/')[:2]) for sums in flights for c in sums if c.count('/') == 2}
    return sorted(known, key=lambda stratum: stratum.order)


def sums_of_stratum(sums: Sums, stratum: Stratum) -> Sums:
    """Return the sums of a stratum by the names that those of all people have."""
    head = f'{stratum.factor}/{stratum.name}/'
    return {c.removeprefix(head): value for c, value in sums.items() if c.startswith(head)}


def _of_run(record: RunRecord, truth: GroundTruth) -> dict[str, float | list[float]]:
    sums = accuracy_sums.placement_sums(record, truth)
    return {key: sums[key] for figure in _PLACED for key in (figure.above, figure.below)}


def _sums(
    states: PersonSamples, stream: PersonSamples, places: PersonSamples
) -> dict[str, float | list[float]]:
    return {
        **accuracy_sums.stream_sums(stream),
        **accuracy_sums.state_sums(states),
        'asked': float(len(places.ids)),
        'placed': float(np.count_nonzero(places.met)),
    }


def _of_flight(accuracy: Accuracy) -> dict[str, float | list[float]]:
    """Return the sums that a wrong box is in, which is of no person's size or range."""
    return {**accuracy_sums.box_sums(accuracy), **_errors(accuracy.errors)}


def _errors(errors: ErrorSamples) -> dict[str, float | list[float]]:
    table = np.column_stack([np.abs(errors.range_errors), errors.position_errors])
    known = table[np.isfinite(table).all(axis=1)]
    return {'range_errors': known[:, 0].tolist(), 'position_errors': known[:, 1].tolist()}


def place_samples(record: RunRecord, truth: GroundTruth) -> PersonSamples:
    """Check at each state time whether a track is within 2 m of each visible person.

    Whatever sensor saw it, box or not: what the radar alone can answer as well.
    """
    alignment = Alignment(record, truth)
    parts = []
    for decision in record.decisions:
        frame = truth.frame_at(decision.state_ns)
        if frame is None:
            continue
        aligned = alignment.carry(frame, decision.state_ns, decision.frame_id)
        if aligned is None:
            continue
        counted = counted_people(frame)
        placed = _placed(aligned.positions[counted], decision.tracks)
        people = frame.select(counted)
        parts.append(person_samples(decision.state_ns, people, np.zeros(len(people.ids)), placed))
    return joined_people(parts)


def _placed(people: FloatArray, tracks: tuple[Track, ...]) -> Mask:
    """Mark people (P,) who have a track of their own within 2 m on the ground."""
    placed = np.zeros(len(people), np.bool_)
    if len(people) and tracks:
        places = np.array([track.position for track in tracks], np.float64).reshape(-1, 3)
        apart = np.linalg.norm(people[:, None, :2] - places[None, :, :2], axis=2)
        apart = np.where(np.isfinite(apart), apart, math.inf)
        near = np.clip(1.0 - apart / POSITION_GATE, 0.0, 1.0)
        rows, columns = linear_sum_assignment(near, maximize=True)
        placed[rows] = apart[rows, columns] <= POSITION_GATE
    return placed
