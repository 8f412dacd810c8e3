"""How good the decision of a window is, as one number: labels for gating and selection."""

from __future__ import annotations

import numpy as np

from mmedge_ros.data_types import NS_PER_S, Decision, FloatArray
from mmedge_ros.lab.evaluation.truth_matching import match_boxes, person_boxes
from mmedge_ros.records.ground_truth import GroundTruth


def window_quality(
    decision: Decision, truth: GroundTruth, size: tuple[int, int] = (0, 0)
) -> float:
    """Return the quality of a decision at its window's end, 0..1; NaN where nobody knows.

    It is the sum of the overlaps (IoU) of the people who are visible, divided by their number
    and that of the wrong boxes; 1 where there is nobody and nothing is claimed.

    :param size: width and height of the picture, to which boxes are cut
    """
    end_ns = decision.window_end_ns
    frame = truth.frame_at(end_ns)
    if frame is None:
        return float('nan')
    elapsed = (end_ns - decision.state_ns) / NS_PER_S
    match = match_boxes(frame, person_boxes(decision.tracks, elapsed, size)[1])
    asked = len(match.overlaps) + match.false
    return float(match.overlaps.sum()) / asked if asked else 1.0


def smoothed(values: FloatArray, reach: int = 2) -> FloatArray:
    """Return means (N, ...) over a row and so many before and after it; NaN are left out.

    One window alone says little of a level: who is just found or lost decides.
    """
    found = np.full(values.shape, np.nan)
    for place in range(len(values)):
        near = values[max(place - reach, 0) : place + reach + 1]
        known = np.isfinite(near)
        total = np.where(known, near, 0.0).sum(axis=0)
        count = known.sum(axis=0)
        found[place] = np.where(count > 0, total / np.maximum(count, 1), np.nan)
    return found
