"""The outcome of one policy in one flight: sums, a row for each window, and its file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from mmedge_lab.judging import EvaluationError
from mmedge_lab.judging.case_figures import (
    COLUMNS,
    OVERALL,
    CaseFigures,
    case_figures,
    figures_bytes,
    read_figures,
)
from mmedge_lab.policies.policy_run import DECISIONS, PolicyRun
from mmedge_lab.policies.schedule import Encoding, PlannedDecision, Schedule
from mmedge_ros.data_types import CAMERA, NS_PER_S, RADAR, Decision, FloatArray
from mmedge_ros.records.ground_truth import GroundTruth
from mmedge_ros.records.run_record import RunRecord
from mmedge_ros.report.accuracy import Accuracy, BoxCounts, accuracy_of
from mmedge_ros.report.accuracy_samples import (
    PersonSamples,
    joined_people,
    person_samples,
    picture_size,
    windows_without_decision,
)
from mmedge_ros.report.report_files import arrays_bytes, read_arrays
from mmedge_ros.report.truth_matching import best_overlaps, counted_people, person_boxes

MODALITIES = (CAMERA, RADAR)
PARTS = (*MODALITIES, DECISIONS)
# Of the windows of a flight; NaN where a window has no such thing.
ROW = (
    *('end', 'decided', 'latency', 'last_encode', 'floor'),
    *('people', 'overlap', 'streamed', 'stream_overlap'),
    *(f'{name}_{modality}' for name in ('age', 'waited', 'rate') for modality in MODALITIES),
)
TOTALS = (
    *COLUMNS,
    *('seconds', 'windows', 'decisions', 'dropped', 'misses', 'rested', 'imputed'),
    *('true_boxes', 'result_boxes', 'matches', 'idtp', 'id_switches'),
    *('nees', 'nees_samples'),
    *('duration', 'cpu_s', 'energy_j', *(f'energy_j_{part}' for part in PARTS)),
    *(f'{name}_{m}' for name in ('calls', 'units', 'busy_s') for m in MODALITIES),
)


@dataclass(frozen=True, eq=False)
class Outcome:
    """One policy in one flight.

    ``totals`` has a number for each of `TOTALS`, which add up over flights. ``rows`` (W, K) has
    a row for each window end, decided or dropped, with the columns `ROW`: ``end`` in the
    recording's own time and durations, all s: ``last_encode`` that of the unit that was waited for
    last, ``floor`` how long after the end that unit would have been ready had it been encoded and
    sent the moment it was there, as fast as it was. ``levels`` (W) are the camera's. ``problems``
    say what of the recording could not be used.
    """

    figures: CaseFigures
    totals: Mapping[str, float]
    rows: FloatArray
    levels: tuple[str, ...]
    problems: tuple[str, ...] = ()

    def column(self, name: str) -> FloatArray:
        """Return a column (W,) of the windows."""
        return np.asarray(self.rows[:, _ROW[name]])


_ROW = MappingProxyType({name: place for place, name in enumerate(ROW)})


def outcome_of(run: PolicyRun, truth: GroundTruth, limit: float) -> Outcome:
    """Judge what a policy did in a flight.

    Dropped windows count: everyone visible at their end is missed.

    :param limit: latency limit, s
    :raises EvaluationError: if the truth holds no scene, or the policy broke a promise
    """
    schedule, record = run.schedule, run.record
    if run.violations:
        raise EvaluationError(
            f'{record.bag}: {schedule.policy} in the {schedule.protocol} protocol broke its '
            f'promise, so that no figure of it means anything: {run.violations[0]}'
        )
    accuracy = accuracy_of(record, truth, at_once=False)
    if accuracy is None:
        raise EvaluationError(
            f'{record.bag}: ground truth is needed to judge a policy, and this recording has '
            'none; use flights made by `mmedge simulate`'
        )
    accuracy = _with_dropped(accuracy, schedule, record, truth)
    figures = case_figures(record, truth, accuracy)
    rows, levels = _rows(schedule, record, truth, accuracy.stream)
    return Outcome(figures, _totals(run, accuracy, figures, limit), rows, levels)


def _with_dropped(
    accuracy: Accuracy, schedule: Schedule, record: RunRecord, truth: GroundTruth
) -> Accuracy:
    """Add those missed in windows dropped before the first or after the last decision."""
    within = set(windows_without_decision(record, truth))
    parts = []
    for end_ns in sorted(set(schedule.dropped) - within):
        frame = truth.frame_at(end_ns)
        if frame is not None:
            people = frame.select(counted_people(frame))
            nothing = np.zeros(len(people.ids))
            parts.append(person_samples(end_ns, people, nothing, nothing > 0.0))
    missed = joined_people(parts)
    return replace(
        accuracy,
        states=joined_people([accuracy.states, missed]),
        counts=accuracy.counts
        + BoxCounts(
            windows=len(parts), windows_without_decision=len(parts), people=len(missed.ids)
        ),
    )


def _totals(
    run: PolicyRun, accuracy: Accuracy, figures: CaseFigures, limit: float
) -> dict[str, float]:
    schedule = run.schedule
    windows = len(schedule.decisions) + len(schedule.dropped)
    encoded = [(e.modality, e.sequence) for e in schedule.encodings]
    tracking = accuracy.tracking
    nees = accuracy.independent_errors.nees
    nees = nees[np.isfinite(nees)]
    totals: dict[str, float] = {name: figures.value(OVERALL, name) for name in COLUMNS}
    totals |= {
        'seconds': windows * run.record.stride,
        'windows': windows,
        'decisions': len(schedule.decisions),
        'dropped': len(schedule.dropped),
        'misses': sum(decision.latency > limit for decision in schedule.decisions),
        'rested': sum(bool(decision.skipped) for decision in schedule.decisions),
        'imputed': sum(bool(decision.imputed) for decision in schedule.decisions),
        'true_boxes': tracking.true_boxes,
        'result_boxes': tracking.result_boxes,
        'matches': tracking.matches,
        'idtp': tracking.idtp,
        'id_switches': tracking.id_switches or 0,
        'nees': nees.sum(),
        'nees_samples': len(nees),
        'duration': run.record.duration,
        'cpu_s': run.cpu_seconds,
        'energy_j': run.energy_joules,
        **{f'energy_j_{part}': run.part_joules.get(part, 0.0) for part in PARTS},
    }
    for modality in MODALITIES:
        totals[f'calls_{modality}'] = sum(m == modality for m, _ in encoded)
        totals[f'units_{modality}'] = sum(m == modality for m, _ in set(encoded))
        totals[f'busy_s_{modality}'] = run.encoder_seconds.get(modality, 0.0)
    return {name: float(totals[name]) for name in TOTALS}


def _rows(
    schedule: Schedule, record: RunRecord, truth: GroundTruth, stream: PersonSamples
) -> tuple[FloatArray, tuple[str, ...]]:
    planned = {decision.window_end_ns: decision for decision in schedule.decisions}
    made = {decision.window_end_ns: decision for decision in record.decisions}
    ends = np.array(sorted({*planned, *schedule.dropped}), np.int64)
    rows = np.full((len(ends), len(ROW)), np.nan)
    if not len(ends):
        return rows, ()
    rows[:, _ROW['end']] = ends / NS_PER_S
    rows[:, _ROW['decided']] = [end in planned for end in ends.tolist()]
    lasts = _last_encodings(schedule)
    available = {(unit.modality, unit.sequence): unit.available_ns for unit in record.features}
    size = picture_size(record)
    for row, end_ns in zip(rows, ends.tolist(), strict=True):
        people, overlap = _quality(made.get(end_ns), end_ns, truth, size)
        row[_ROW['people']], row[_ROW['overlap']] = people, overlap
        if end_ns in planned:
            _describe(row, planned[end_ns], made.get(end_ns))
            last = lasts.get(end_ns)
            if last is not None:
                row[_ROW['last_encode']] = (last.end_ns - last.begin_ns) / NS_PER_S
                row[_ROW['floor']] = _floor(planned[end_ns], last, available)
    _add_stream(rows, ends, stream, round(record.stride * NS_PER_S))
    levels = tuple(
        planned[end].configuration.of(CAMERA).level if end in planned else ''
        for end in ends.tolist()
    )
    return rows, levels


def _describe(row: FloatArray, planned: PlannedDecision, made: Decision | None) -> None:
    row[_ROW['latency']] = planned.latency
    for modality in MODALITIES:
        row[_ROW[f'waited_{modality}']] = planned.waited.get(modality, np.nan)
        row[_ROW[f'rate_{modality}']] = planned.configuration.of(modality).rate
        if made is not None:
            row[_ROW[f'age_{modality}']] = made.ages.get(modality, np.nan)


def _floor(
    decision: PlannedDecision, last: Encoding, available: Mapping[tuple[str, int], int]
) -> float:
    """Return how long after its end a window had to wait for its last unit at least, s.

    It waited so long, less the time for which the unit lay there before it was encoded.
    """
    waited = decision.waited.get(last.modality, 0.0)
    idle = (last.begin_ns - available.get(last.unit, last.begin_ns)) / NS_PER_S
    return max(waited - idle, 0.0)


def _last_encodings(schedule: Schedule) -> dict[int, Encoding]:
    """Return, by window end, the encoding that a decision waited for last."""
    shared: dict[tuple[str | int, ...], Encoding] = {}
    own: dict[tuple[str | int, ...], Encoding] = {}
    for encoding in schedule.encodings:
        place = (encoding.modality, encoding.sequence, encoding.level)
        if encoding.window_end_ns is None:
            shared[place] = encoding
        else:
            own[(*place, encoding.window_end_ns)] = encoding
    lasts = {}
    for decision in schedule.decisions:
        end_ns = decision.window_end_ns
        runs = [own.get((*use, end_ns)) or shared.get(tuple(use)) for use in decision.uses]
        known = [run for run in runs if run is not None]
        if known:
            lasts[end_ns] = max(known, key=lambda run: run.end_ns)
    return lasts


def _quality(
    decision: Decision | None, end_ns: int, truth: GroundTruth, size: tuple[int, int]
) -> tuple[int, float]:
    """Return how many people are visible at a window's end, and the sum of their IoUs then."""
    frame = truth.frame_at(end_ns)
    if frame is None:
        return 0, 0.0
    people = frame.boxes[counted_people(frame)]
    if decision is None or not len(people):
        return len(people), 0.0
    elapsed = (end_ns - decision.state_ns) / NS_PER_S
    boxes = person_boxes(decision.tracks, elapsed, size)[1]
    return len(people), float(best_overlaps(people, boxes).sum())


def _add_stream(
    rows: FloatArray, ends: NDArray[np.int64], stream: PersonSamples, stride_ns: int
) -> None:
    """Add to each window the samples of streaming accuracy in the stride before its end."""
    for name in ('streamed', 'stream_overlap'):
        rows[:, _ROW[name]] = 0.0
    places = np.searchsorted(ends, stream.stamps_ns)
    inside = places < len(ends)
    inside[inside] &= stream.stamps_ns[inside] > ends[places[inside]] - stride_ns
    np.add.at(rows[:, _ROW['streamed']], places[inside], 1.0)
    np.add.at(rows[:, _ROW['stream_overlap']], places[inside], stream.overlaps[inside])


def outcome_bytes(outcome: Outcome, key: str) -> bytes:
    """Return the file of an outcome, with a digest; ``key`` says what it is the outcome of."""
    return arrays_bytes(
        key,
        columns=np.array(ROW),
        totals_of=np.array(TOTALS),
        totals=np.array([outcome.totals[name] for name in TOTALS]),
        rows=outcome.rows,
        levels=np.array(outcome.levels, np.str_),
        problems=np.array(outcome.problems, np.str_),
        figures=np.frombuffer(figures_bytes(outcome.figures, key), np.uint8),
    )


def read_outcome(content: bytes, key: str) -> Outcome | None:
    """Read an outcome back; None for a damaged file or one of something else."""
    arrays = read_arrays(content, key)
    try:
        if arrays is None or (*arrays['columns'], *arrays['totals_of']) != (*ROW, *TOTALS):
            return None
        totals = np.asarray(arrays['totals'], np.float64).tolist()
        rows = np.asarray(arrays['rows'], np.float64)
        levels, problems = (
            tuple(str(text) for text in arrays[name].tolist()) for name in ('levels', 'problems')
        )
        figures = read_figures(arrays['figures'].tobytes(), key)
    except (ValueError, KeyError, TypeError):
        return None
    if figures is None or rows.shape != (len(levels), len(ROW)) or len(totals) != len(TOTALS):
        return None
    return Outcome(figures, dict(zip(TOTALS, totals, strict=True)), rows, levels, problems)
