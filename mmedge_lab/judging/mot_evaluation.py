"""How well a MOTChallenge result follows the ground truth of its sequence."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from mmedge_lab.judging.mot_text import NO_CLASS, MotBoxes
from mmedge_ros.report import ReportError
from mmedge_ros.report.mot_metrics import (
    NO_ID,
    MotFigures,
    MotFrame,
    evaluate_frames,
    matching_cost,
)
from mmedge_ros.tracking.data_association import assign, intersection_over_union

# Classes of the ground truth of 2016 and later (Milan et al., "MOT16", table 3).
_PEDESTRIAN = 1
# Person on a vehicle, static person, distractor, reflection: finding them is no mistake.
_DISTRACTORS = (2, 7, 8, 12)


def evaluate_mot(truth: MotBoxes, result: MotBoxes) -> MotFigures:
    """Compare a result with the ground truth of its sequence.

    True boxes with confidence 0 are left out. Where the ground truth names classes (MOT16
    and later) only pedestrians count, and boxes of the result on distractors are left out.

    :raises ReportError: for a ground truth without boxes or without ids
    """
    counted = truth.confidences != 0.0
    distractors = truth.select(np.isin(truth.classes, _DISTRACTORS))
    counted &= (truth.classes == NO_CLASS) | (truth.classes == _PEDESTRIAN)
    if len(distractors):
        result = _without_distractors(truth, result)
    truth = truth.select(counted)
    if not len(truth):
        raise ReportError('the ground truth holds no box that counts; is it the right file?')
    if np.any(truth.ids == NO_ID):
        raise ReportError('the ground truth has boxes without an id; is it the right file?')
    return evaluate_frames(_frames(truth, result))


def _frames(truth: MotBoxes, result: MotBoxes) -> Iterator[MotFrame]:
    true_frames, result_frames = truth.by_frame(), result.by_frame()
    nothing = slice(0, 0)
    for frame in sorted({*true_frames, *result_frames}):
        true, boxes = true_frames.get(frame, nothing), result_frames.get(frame, nothing)
        yield MotFrame(
            truth.ids[true].tolist(),
            result.ids[boxes].tolist(),
            intersection_over_union(truth.boxes[true], result.boxes[boxes]),
        )


def _without_distractors(truth: MotBoxes, result: MotBoxes) -> MotBoxes:
    """Leave out the boxes of the result whose best assignment is to a distractor."""
    keep = np.ones(len(result), np.bool_)
    true_frames = truth.by_frame()
    for frame, boxes in result.by_frame().items():
        if frame not in true_frames:
            continue
        true = true_frames[frame]
        cost = matching_cost(intersection_over_union(truth.boxes[true], result.boxes[boxes]))
        for row, column in assign(cost).pairs:
            keep[boxes.start + column] = truth.classes[true.start + row] not in _DISTRACTORS
    return result.select(keep)
