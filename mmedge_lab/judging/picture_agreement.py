"""How far a detector shows the same boxes in two consecutive pictures.

A box that comes and goes from picture to picture makes a track that breaks, so agreement is
measured before anything is smoothed: of the boxes of people in two consecutive pictures, the share
that is in both, that is has a partner with an IoU of at least 0.5 in the other. Boxes of uncounted
people are left out. A detector that shows less flickers less: detectors are therefore compared at
the same recall, each with the score threshold at which it detects that share of the people of at
least 20 px.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from mmedge_ros.data_types import Detection, FloatArray
from mmedge_ros.records.ground_truth import PERSON, TrueFrame
from mmedge_ros.report.truth_matching import (
    MINIMUM_IOU,
    counted_people,
    covered_boxes,
    met_pairs,
    uncounted_people,
)
from mmedge_ros.tracking.data_association import intersection_over_union

RECALL = 0.7
_TALL = 20.0


class ShownBoxes(NamedTuple):
    """What a detector makes of one picture, at every score threshold.

    ``boxes`` (M, 4) and ``scores`` (M,) of the detected people, best first. ``people`` (P,) are,
    for each true person of at least 20 px, the score from which on it is detected; 0 if never.
    """

    boxes: FloatArray
    scores: FloatArray
    people: FloatArray

    def above(self, threshold: float) -> FloatArray:
        """Return the boxes that are shown with a threshold."""
        return self.boxes[self.scores >= threshold]


class Agreement(NamedTuple):
    """``agreement`` of ``pairs`` of pictures at the ``threshold`` that gives the ``recall``.

    NaN where so many people are not detected with any threshold.
    """

    agreement: float
    recall: float
    threshold: float
    pairs: int


def shown_boxes(truth: TrueFrame, detections: Sequence[Detection]) -> ShownBoxes:
    """Return what the detections of one picture show."""
    chosen = sorted((d for d in detections if d.label == PERSON), key=lambda d: -d.score)
    boxes = np.array([d.box for d in chosen], np.float64).reshape(-1, 4)
    scores = np.array([d.score for d in chosen], np.float64)
    counted = counted_people(truth)
    overlaps = intersection_over_union(boxes, truth.boxes[counted])
    people = np.zeros(int(np.count_nonzero(counted)))
    matched = np.zeros(len(boxes), np.bool_)
    for row in range(len(boxes)):
        free = np.where(people == 0.0, overlaps[row], 0.0)
        if free.size and free.max() >= MINIMUM_IOU:
            people[int(free.argmax())] = scores[row]
            matched[row] = True
    judged = matched | ~covered_boxes(boxes, truth.boxes[uncounted_people(truth)])
    tall = truth.heights[counted] >= _TALL
    return ShownBoxes(boxes[judged], scores[judged], people[tall])


def agreement_at(
    pairs: Sequence[tuple[ShownBoxes, ShownBoxes]], recall: float = RECALL
) -> Agreement:
    """Return the agreement of pairs of consecutive pictures at a recall of all their people."""
    people = np.concatenate([np.zeros(0), *(shown.people for pair in pairs for shown in pair)])
    wanted = math.ceil(recall * len(people))
    if not 0 < wanted <= np.count_nonzero(people):
        return Agreement(math.nan, recall, math.nan, len(pairs))
    threshold = float(np.sort(people)[-wanted])
    both = either = 0
    for one, two in pairs:
        first, second = one.above(threshold), two.above(threshold)
        common = len(met_pairs(first, second)[0])
        both += common
        either += len(first) + len(second) - common
    return Agreement(both / either if either else math.nan, recall, threshold, len(pairs))
