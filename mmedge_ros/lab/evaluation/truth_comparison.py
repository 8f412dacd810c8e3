"""Goes through a run beside the ground truth of its recording and judges it."""

from __future__ import annotations

import numpy as np

from mmedge_ros.data_types import Decision
from mmedge_ros.lab.evaluation.accuracy import Accuracy, BoxCounts
from mmedge_ros.lab.evaluation.accuracy_samples import (
    ErrorSamples,
    PersonSamples,
    error_samples,
    joined_errors,
    joined_people,
    person_samples,
    picture_size,
    stream_samples,
    windows_without_decision,
)
from mmedge_ros.lab.evaluation.mot_metrics import MotFrame
from mmedge_ros.lab.evaluation.tracking_accuracy import box_frame, position_frame, tracking_counts
from mmedge_ros.lab.evaluation.truth_alignment import Alignment
from mmedge_ros.lab.evaluation.truth_matching import (
    Match,
    counted_people,
    match_boxes,
    person_boxes,
)
from mmedge_ros.records.ground_truth import GroundTruth, TrueFrame
from mmedge_ros.records.run_record import RunRecord


def accuracy_of(record: RunRecord, truth: GroundTruth, *, at_once: bool = True) -> Accuracy | None:
    """Judge a run by the truth of its recording; None where the truth holds no scene.

    :param at_once: also ask what the results would be worth without latency, which takes as
        long as everything else
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

    def take(self, decision: Decision) -> None:
        """Compare a decision with what was true at its state time."""
        frame = self._truth.frame_at(decision.state_ns)
        if frame is None:
            self._counts += BoxCounts(windows_without_truth=1)
            return
        shown, boxes = person_boxes(decision.tracks, 0.0, self._size)
        match = match_boxes(frame, boxes)
        self._note(decision.state_ns, frame, match)
        self._boxes.append((decision.window_end_ns, box_frame(frame, shown, boxes, match)))
        aligned = self._alignment.carry(frame, decision.state_ns, decision.frame_id)
        if aligned is None:
            return
        tracks = decision.tracks
        self._positions.append((decision.window_end_ns, position_frame(frame, aligned, tracks)))
        met = np.flatnonzero(match.partners >= 0)
        places = np.flatnonzero(counted_people(frame))[met]
        self._errors.append(
            error_samples(
                decision.state_ns,
                [shown[place] for place in match.partners[met]],
                frame.select(places),
                aligned.select(places),
            )
        )

    def take_missing(self, end_ns: int) -> None:
        """Count everybody visible at a window's end as missed."""
        frame = self._truth.frame_at(end_ns)
        if frame is None:
            return
        nothing = np.zeros((0, 4))
        match = match_boxes(frame, nothing)
        self._note(end_ns, frame, match)
        self._counts += BoxCounts(windows_without_decision=1)
        self._boxes.append((end_ns, box_frame(frame, [], nothing, match)))

    def result(self, at_once: bool) -> Accuracy:
        record, truth = self._record, self._truth
        return Accuracy(
            joined_people(self._people),
            stream_samples(record, truth),
            stream_samples(record, truth, at_once=True) if at_once else joined_people([]),
            joined_errors(self._errors),
            self._counts,
            tracking_counts(_in_order(self._boxes)),
            tracking_counts(_in_order(self._positions)),
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


def _in_order(frames: list[tuple[int, MotFrame]]) -> list[MotFrame]:
    return [frame for _, frame in sorted(frames, key=lambda entry: entry[0])]
