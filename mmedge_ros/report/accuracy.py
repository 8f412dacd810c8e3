"""Accuracy of a run against the ground truth of its recording.

*Visible* people are at least 8 px tall and at least half unhidden; boxes are those of confirmed
tracks of people. Definitions: `truth_matching`, `accuracy_samples`, `mot_metrics`. Whoever is out
of view for less than `LEFT` was hidden; for longer, they left, and come back under their id.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from mmedge_ros.core.data_types import NS_PER_S, Decision, FloatArray
from mmedge_ros.core.run_record import RunRecord
from mmedge_ros.replay.ground_truth import GroundTruth, TrueFrame
from mmedge_ros.report.accuracy_samples import (
    Consistency,
    ErrorSamples,
    PersonSamples,
    consistency_of,
    error_samples,
    joined_errors,
    joined_people,
    person_samples,
    picture_size,
    stream_samples,
    thinned,
    windows_without_decision,
)
from mmedge_ros.report.mot_metrics import MotFigures, MotFrame, evaluate_frames
from mmedge_ros.report.truth_matching import (
    Alignment,
    Match,
    box_frame,
    counted_people,
    match_boxes,
    person_boxes,
    position_frame,
    tracking_report,
)

_TALL = 20.0
SIZE_EDGES = (8.0, 20.0, 40.0, 80.0, math.inf)
RANGE_EDGES = (0.0, 10.0, 20.0, 30.0, 50.0)
VISIBILITY_EDGES = {'partly': (0.5, 0.9), 'free': (0.9, math.inf)}
# Ranges that count as about 20 m.
_NEAR_20M = (16.0, 24.0)
# Errors of one track less than this apart are not independent samples of its NEES, s.
NEES_SPACING = 1.0
# Degrees of freedom of the NEES: horizontal position and velocity.
NEES_DOF = 4
LEFT = 10.0  # s
_LEFT_NS = round(LEFT * NS_PER_S)


class MetTrack(NamedTuple):
    """A person was met by the box of a track."""

    stamp_ns: int
    person: int
    track: int


def times_in_view(stamps_ns: Iterable[int]) -> list[tuple[int, int]]:
    """Return begin and end (ns) of a person's times in view, from when it was visible."""
    stamps = sorted(stamps_ns)
    gaps = [(one, next_one) for one, next_one in pairwise(stamps) if next_one - one >= _LEFT_NS]
    edges = [stamps[0], *(stamp for gap in gaps for stamp in gap), stamps[-1]]
    return list(zip(edges[::2], edges[1::2], strict=True))


def returns_report(visible: Iterable[tuple[int, int]], met: Iterable[MetTrack]) -> dict[str, Any]:
    """Count the people who appeared for the first time, and those who came back.

    ``same_id`` counts those who came back to the track that met them most often before they left.

    :param visible: instants (ns) and who is visible then
    """
    stamps: dict[int, list[int]] = {}
    for stamp_ns, person in visible:
        stamps.setdefault(person, []).append(stamp_ns)
    tracks: dict[int, list[MetTrack]] = {}
    for pair in met:
        tracks.setdefault(pair.person, []).append(pair)
    same = came_back = 0
    for person, seen in stamps.items():
        before: int | None = None
        for place, (begin_ns, end_ns) in enumerate(times_in_view(seen)):
            counts = Counter(
                pair.track
                for pair in tracks.get(person, ())
                if begin_ns <= pair.stamp_ns <= end_ns
            )
            track = min(counts, key=lambda one: (-counts[one], one), default=None)
            came_back += place > 0
            same += place > 0 and track is not None and track == before
            before = before if track is None else track
    return {'new': len(stamps), 'came_back': came_back, 'same_id': same, 'away_s': LEFT}


@dataclass(frozen=True)
class BoxCounts:
    """Counts at the state times of decisions.

    People visible at the end of ``windows_without_decision`` count as missed;
    ``windows_without_truth`` are not compared. ``people`` counts visible people per window.
    """

    windows: int = 0
    windows_without_decision: int = 0
    windows_without_truth: int = 0
    people: int = 0
    boxes: int = 0
    true_positives: int = 0
    false_positives: int = 0
    ignored: int = 0

    def __add__(self, other: BoxCounts) -> BoxCounts:
        return BoxCounts(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))


@dataclass(frozen=True, eq=False)
class Accuracy:
    """All that is measured against the ground truth of a run.

    ``states`` are the samples at state times, ``stream`` those every 10 ms, ``decided`` the same
    of decisions alone, and ``at_once`` as if every result had been published at its state time.
    ``followed`` is as ``positions``, but in windows without a decision all visible people count
    as missed. ``returns`` says who came into view and who came back.
    """

    states: PersonSamples
    stream: PersonSamples
    decided: PersonSamples
    at_once: PersonSamples
    errors: ErrorSamples
    counts: BoxCounts
    tracking: MotFigures
    positions: MotFigures
    followed: MotFigures
    returns: Mapping[str, Any]
    scenarios: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()

    def report(self) -> dict[str, Any]:
        """Return the values under ``accuracy`` of report.json; NaN without samples."""
        states, stream = self.states, self.stream
        tall = states.select(states.heights >= _TALL)
        judged = self.counts.true_positives + self.counts.false_positives
        near = (self.errors.ranges >= _NEAR_20M[0]) & (self.errors.ranges < _NEAR_20M[1])
        return {
            'scenarios': list(self.scenarios),
            'mean_iou': states.mean_iou,
            'mean_iou_20px': tall.mean_iou,
            'streaming_mean_iou': stream.mean_iou,
            'streaming_mean_iou_decisions': self.decided.mean_iou,
            'streaming_mean_iou_at_once': self.at_once.mean_iou,
            'precision': self.counts.true_positives / judged if judged else math.nan,
            'recall': states.recall,
            'range_error_m': median(np.abs(self.errors.range_errors)),
            'position_error_m': median(self.errors.position_errors),
            'position_error_at_20m': median(self.errors.position_errors[near]),
            'nees': asdict(self.consistency) | {'spacing_s': NEES_SPACING},
            'counts': asdict(self.counts)
            | {
                'people_20px': len(tall.ids),
                'streamed': len(stream.ids),
                'located': len(self.errors.stamps_ns),
                'located_at_20m': int(np.count_nonzero(near)),
            },
            'by_size': {
                name: self._stratum(states.heights, stream.heights, low, high)
                for name, low, high in bands(SIZE_EDGES)
            },
            'by_range': {
                name: self._stratum(states.ranges, stream.ranges, low, high)
                | self._errors_within(low, high)
                for name, low, high in bands(RANGE_EDGES)
            },
            'by_occlusion': {
                name: self._stratum(states.visibility, stream.visibility, low, high)
                for name, (low, high) in VISIBILITY_EDGES.items()
            },
        }

    def tracking_report(self) -> dict[str, Any]:
        """Return the values under ``tracking`` of report.json."""
        return tracking_report(self.tracking) | {
            'positions': tracking_report(self.positions),
            'returns': dict(self.returns),
        }

    @property
    def independent_errors(self) -> ErrorSamples:
        """The errors that count as independent: of each track one per second."""
        chosen = thinned(self.errors.stamps_ns.tolist(), self.errors.tracks.tolist(), NEES_SPACING)
        return self.errors.select(chosen)

    @property
    def consistency(self) -> Consistency:
        """Whether errors are as large as the tracks' covariances say."""
        return consistency_of(self.independent_errors.nees, NEES_DOF)

    def _stratum(
        self, values: FloatArray, stream: FloatArray, low: float, high: float
    ) -> dict[str, Any]:
        return _summary(
            self.states.select((values >= low) & (values < high)),
            self.stream.select((stream >= low) & (stream < high)),
        )

    def _errors_within(self, low: float, high: float) -> dict[str, Any]:
        errors = self.errors.select((self.errors.ranges >= low) & (self.errors.ranges < high))
        return {
            'located': len(errors.stamps_ns),
            'range_error_m': median(np.abs(errors.range_errors)),
            'position_error_m': median(errors.position_errors),
        }


def bands(edges: Sequence[float]) -> list[tuple[str, float, float]]:
    """Name the bands between edges: ``8-20``, the last one without an upper edge ``80+``."""
    return [
        (f'{low:g}-{high:g}' if math.isfinite(high) else f'{low:g}+', low, high)
        for low, high in pairwise(edges)
    ]


def median(values: FloatArray) -> float:
    """Median of the finite ones of values, NaN where there is none."""
    finite = values[np.isfinite(values)]
    return float(np.median(finite)) if len(finite) else math.nan


def _summary(states: PersonSamples, stream: PersonSamples) -> dict[str, Any]:
    return {
        'people': len(states.ids),
        'mean_iou': states.mean_iou,
        'streaming_mean_iou': stream.mean_iou,
        'recall': states.recall,
    }


def accuracy_of(record: RunRecord, truth: GroundTruth, *, at_once: bool = True) -> Accuracy | None:
    """Judge a run by the truth of its recording; None where the truth holds no scene.

    :param at_once: also judge the results without their latency, which doubles the time
    """
    if not truth.scenes:
        return None
    judge = _Judge(record, truth)
    for decision in record.decisions:
        judge.take(decision)
    for end_ns in windows_without_decision(record, truth):
        judge.take_missing(end_ns)
    return judge.result(at_once)


class _Judge:
    """Goes through the decisions of a run, in any order."""

    def __init__(self, record: RunRecord, truth: GroundTruth) -> None:
        self._record, self._truth = record, truth
        self._alignment = Alignment(record, truth)
        self._size = picture_size(record)
        self._counts = BoxCounts()
        self._people: list[PersonSamples] = []
        self._errors: list[ErrorSamples] = []
        self._boxes: list[tuple[int, MotFrame]] = []
        self._positions: list[tuple[int, MotFrame]] = []
        self._missed: list[tuple[int, MotFrame]] = []
        self._met: list[MetTrack] = []

    def take(self, decision: Decision) -> None:
        """Compare a decision with what was true at its state time."""
        frame = self._truth.frame_at(decision.state_ns)
        if frame is None:
            self._counts += BoxCounts(windows_without_truth=1)
            return
        shown, boxes = person_boxes(decision.tracks, 0.0, self._size)
        match = match_boxes(frame, boxes)
        self._note(decision.state_ns, frame, match)
        ids = [track.id for track in shown]
        self._boxes.append((decision.window_end_ns, box_frame(frame, ids, boxes, match)))
        met = np.flatnonzero(match.partners >= 0)
        places = np.flatnonzero(counted_people(frame))[met]
        self._met += [
            MetTrack(decision.state_ns, int(frame.ids[place]), shown[partner].id)
            for place, partner in zip(places, match.partners[met], strict=True)
        ]
        aligned = self._alignment.carry(frame, decision.state_ns, decision.frame_id)
        if aligned is None:
            return
        tracks = decision.tracks
        self._positions.append((decision.window_end_ns, position_frame(frame, aligned, tracks)))
        self._errors.append(
            error_samples(
                decision.state_ns,
                [shown[place] for place in match.partners[met]],
                aligned.select(places),
            )
        )

    def take_missing(self, end_ns: int) -> None:
        """Count all people visible at a window's end as missed."""
        frame = self._truth.frame_at(end_ns)
        if frame is None:
            return
        nothing = np.zeros((0, 4))
        match = match_boxes(frame, nothing)
        self._note(end_ns, frame, match)
        self._counts += BoxCounts(windows_without_decision=1)
        missed = (end_ns, box_frame(frame, [], nothing, match))
        self._boxes.append(missed)
        self._missed.append(missed)

    def result(self, at_once: bool) -> Accuracy:
        record, truth = self._record, self._truth
        positions = evaluate_frames(_in_order(self._positions))
        followed = positions
        if self._positions and self._missed:
            followed = evaluate_frames(_in_order([*self._positions, *self._missed]))
        stream = stream_samples(record, truth)
        return Accuracy(
            joined_people(self._people),
            stream,
            stream_samples(record, truth, updates=False) if record.updates else stream,
            stream_samples(record, truth, at_once=True) if at_once else joined_people([]),
            joined_errors(self._errors),
            self._counts,
            evaluate_frames(_in_order(self._boxes)),
            positions,
            followed,
            returns_report(_visible(truth), self._met),
            (truth.scenes[0].scenario,) if truth.scenes[0].scenario else (),
            tuple(self._alignment.problems),
        )

    def _note(self, stamp_ns: int, frame: TrueFrame, match: Match) -> None:
        people = frame.select(counted_people(frame))
        self._people.append(person_samples(stamp_ns, people, match.overlaps, match.partners >= 0))
        self._counts += BoxCounts(
            windows=1,
            people=len(people.ids),
            boxes=len(match.ignored),
            true_positives=match.hits,
            false_positives=match.false,
            ignored=int(np.count_nonzero(match.ignored)),
        )


def _visible(truth: GroundTruth) -> Iterator[tuple[int, int]]:
    """Yield who is visible when: instants (ns) of scenes, and ids of people."""
    for stamp_ns in truth.stamps_ns:
        frame = truth.frame_at(stamp_ns)
        for person in () if frame is None else frame.ids[counted_people(frame)].tolist():
            yield stamp_ns, person


def _in_order(frames: list[tuple[int, MotFrame]]) -> list[MotFrame]:
    return [frame for _, frame in sorted(frames, key=lambda entry: entry[0])]
