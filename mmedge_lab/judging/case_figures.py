"""What one flight adds to the figures of a case: sums by stratum, and the errors of places.

Every share or mean of a report is a quotient of two sums over flights, which makes drawing
flights again cheap.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment

from mmedge_ros.data_types import FloatArray, Track
from mmedge_ros.records.ground_truth import GroundTruth
from mmedge_ros.records.run_record import RunRecord
from mmedge_ros.report.accuracy import SIZE_EDGES, VISIBILITY_EDGES, Accuracy, bands
from mmedge_ros.report.accuracy_samples import (
    PersonSamples,
    joined_people,
    person_samples,
)
from mmedge_ros.report.report_files import arrays_bytes, read_arrays
from mmedge_ros.report.tracking_accuracy import POSITION_GATE
from mmedge_ros.report.truth_alignment import Alignment
from mmedge_ros.report.truth_matching import Mask, counted_people

FAR = 25.0
RANGE_EDGES = (0.0, 10.0, 15.0, 20.0, FAR, math.inf)
EASY_DAYLIGHT = 'easy daylight'
ALL = 'all'
# Free, near and in daylight: nothing excuses a miss here.
_FREE = 0.9

COLUMNS = (
    *('people', 'overlap', 'found'),
    *('people_20px', 'overlap_20px', 'found_20px'),
    *('people_40px', 'overlap_40px'),
    *('streamed', 'stream_overlap', 'streamed_20px', 'stream_overlap_20px'),
    *('asked', 'placed'),
    *('boxes', 'hits'),
)
_PLACE = MappingProxyType({name: place for place, name in enumerate(COLUMNS)})

# Each figure's numerator and denominator.
QUOTIENTS: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        'mean_iou': ('overlap', 'people'),
        'mean_iou_20px': ('overlap_20px', 'people_20px'),
        'mean_iou_40px': ('overlap_40px', 'people_40px'),
        'streaming_mean_iou': ('stream_overlap', 'streamed'),
        'streaming_mean_iou_20px': ('stream_overlap_20px', 'streamed_20px'),
        'recall': ('found', 'people'),
        'recall_20px': ('found_20px', 'people_20px'),
        'precision': ('hits', 'boxes'),
        'place_recall': ('placed', 'asked'),
    }
)
# Medians of the columns of `CaseFigures.errors`.
MEDIANS: Mapping[str, int] = MappingProxyType({'range_error_m': 0, 'position_error_m': 1})


class Stratum(NamedTuple):
    """A part of the people: ``factor`` as ``light``, ``name`` as ``night``."""

    factor: str
    name: str


OVERALL = Stratum(ALL, ALL)
NIGHT = Stratum('light', 'night')
BEYOND = Stratum('range', f'{FAR:g}+')
EASY = Stratum('claims', EASY_DAYLIGHT)


@dataclass(frozen=True, eq=False)
class CaseFigures:
    """One case in one flight.

    ``sums`` maps strata to sums (K,); `value` names them. ``errors`` (S, 3) are, of people a
    box met: |estimated - true range|, horizontal position error and true range, all m.
    ``conditions`` are the flight's strata: those that hold for all of it.
    """

    sums: Mapping[Stratum, FloatArray]
    errors: FloatArray
    conditions: tuple[Stratum, ...] = ()

    def value(self, stratum: Stratum, column: str) -> float:
        """Return a sum; 0 where the flight has no person of the stratum."""
        row = self.sums.get(stratum)
        return 0.0 if row is None else float(row[_PLACE[column]])

    def errors_of(self, stratum: Stratum) -> FloatArray | None:
        """Return the errors (S', 3) of a stratum; None where they cannot be split by it."""
        if stratum == OVERALL or stratum in self.conditions:
            return self.errors
        if stratum.factor == 'range':
            low, high = _RANGES[stratum.name]
            ranges = self.errors[:, 2]
            return self.errors[(ranges >= low) & (ranges < high)]
        if stratum.factor in _CONDITIONS:
            return self.errors[:0]
        return None


_CONDITIONS = ('light', 'distance', 'surroundings')
_RANGES = {name: (low, high) for name, low, high in bands(RANGE_EDGES)}


def case_figures(record: RunRecord, truth: GroundTruth, accuracy: Accuracy) -> CaseFigures:
    """Sum up a run of a flight.

    :param accuracy: what `accuracy_of` finds in it
    """
    states, stream, counts = accuracy.states, accuracy.stream, accuracy.counts
    places = place_samples(record, truth)
    conditions = tuple(
        Stratum(factor, str(values[0]))
        for factor in _CONDITIONS
        if len(values := np.unique(getattr(states, factor))) == 1 and values[0]
    )
    sums: dict[Stratum, FloatArray] = {}
    in_stream, in_places = dict(_strata(stream)), dict(_strata(places))
    for stratum, chosen in _strata(states):
        if not chosen.any():
            continue
        row = np.zeros(len(COLUMNS))
        _add_people(row, states.select(chosen))
        if (mask := in_stream.get(stratum)) is not None:
            _add_stream(row, stream.select(mask))
        if (mask := in_places.get(stratum)) is not None:
            placed = places.met[mask]
            row[_PLACE['asked']], row[_PLACE['placed']] = len(placed), placed.sum()
        sums[stratum] = row
    # A wrong box is of no person's size or range: they are counted for flights only.
    for stratum in (OVERALL, *conditions):
        if stratum in sums:
            sums[stratum][_PLACE['boxes']] = counts.true_positives + counts.false_positives
            sums[stratum][_PLACE['hits']] = counts.true_positives
    errors = accuracy.errors
    table = np.column_stack(
        [np.abs(errors.range_errors), errors.position_errors, errors.ranges]
    ).reshape(-1, 3)
    return CaseFigures(sums, table[np.isfinite(table).all(axis=1)], conditions)


def _add_people(row: FloatArray, people: PersonSamples) -> None:
    for suffix, least in (('', 0.0), ('_20px', 20.0), ('_40px', 40.0)):
        tall = people.heights >= least
        row[_PLACE['people' + suffix]] = np.count_nonzero(tall)
        row[_PLACE['overlap' + suffix]] = people.overlaps[tall].sum()
        if 'found' + suffix in _PLACE:
            row[_PLACE['found' + suffix]] = np.count_nonzero(people.met[tall])


def _add_stream(row: FloatArray, stream: PersonSamples) -> None:
    for suffix, least in (('', 0.0), ('_20px', 20.0)):
        tall = stream.heights >= least
        row[_PLACE['streamed' + suffix]] = np.count_nonzero(tall)
        row[_PLACE['stream_overlap' + suffix]] = stream.overlaps[tall].sum()


def _strata(people: PersonSamples) -> Iterator[tuple[Stratum, Mask]]:
    """Yield every stratum and the mask of its people."""
    yield OVERALL, np.ones(len(people.ids), np.bool_)
    for factor, edges, values in (
        ('size', SIZE_EDGES, people.heights),
        ('range', RANGE_EDGES, people.ranges),
    ):
        for name, low, high in bands(edges):
            yield Stratum(factor, name), (values >= low) & (values < high)
    for name, (low, high) in VISIBILITY_EDGES.items():
        yield Stratum('occlusion', name), (people.visibility >= low) & (people.visibility < high)
    for factor in _CONDITIONS:
        values = getattr(people, factor)
        for value in np.unique(values).tolist():
            if value:
                yield Stratum(factor, value), values == value
    free = (people.visibility >= _FREE) & (people.ranges < FAR)
    yield EASY, (people.light == 'day') & free


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


def figures_bytes(figures: CaseFigures, key: str) -> bytes:
    """Return the content of a file of figures.

    :param key: of bundle, flight and case
    """
    strata = list(figures.sums)
    return arrays_bytes(
        key,
        columns=np.array(COLUMNS),
        factors=np.array([stratum.factor for stratum in strata], np.str_),
        names=np.array([stratum.name for stratum in strata], np.str_),
        sums=np.array([figures.sums[s] for s in strata]).reshape(-1, len(COLUMNS)),
        errors=figures.errors.astype(np.float32),
        conditions=np.array(figures.conditions, np.str_).reshape(-1, 2),
    )


def read_figures(content: bytes, key: str) -> CaseFigures | None:
    """Read figures back; None for a damaged file or one of something else."""
    arrays = read_arrays(content, key)
    try:
        if arrays is None or tuple(arrays['columns']) != COLUMNS:
            return None
        sums, errors = (np.asarray(arrays[name], np.float64) for name in ('sums', 'errors'))
        pairs = zip(arrays['factors'].tolist(), arrays['names'].tolist(), strict=True)
        strata, conditions = (
            [Stratum(*map(str, pair)) for pair in part]
            for part in (pairs, arrays['conditions'].tolist())
        )
    except (ValueError, KeyError, TypeError):
        return None
    if sums.shape != (len(strata), len(COLUMNS)) or errors.ndim != 2 or errors.shape[1] != 3:
        return None
    return CaseFigures(dict(zip(strata, sums, strict=True)), errors, tuple(conditions))
