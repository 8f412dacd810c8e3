"""SORT, the simplest tracker that a better one must beat: boxes alone, IoU and a Kalman filter.

Bewley et al., "Simple Online and Realtime Tracking", ICIP 2016. Noise is that of the paper's own
experiments; a track without a detection is kept for `MAX_AGE` pictures in place of one.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment

from mmedge_ros.data_types import FloatArray
from mmedge_ros.tracking.data_association import intersection_over_union

MAX_AGE = 30
MIN_HITS = 3
MIN_IOU = 0.3

# State: centre x, y in px, area in px^2, width / height, and the rates of the first three in one
# picture.
_STATES, _MEASURED = 7, 4
_TRANSITION = np.eye(_STATES) + np.eye(_STATES, k=_MEASURED)
_OBSERVATION = np.eye(_MEASURED, _STATES)
_PROCESS_NOISE = np.diag([1.0, 1.0, 1.0, 1.0, 0.01, 0.01, 0.0001])
_MEASUREMENT_NOISE = np.diag([1.0, 1.0, 10.0, 10.0])
# Rates are unknown at first.
_FIRST_COVARIANCE = np.diag([10.0, 10.0, 10.0, 10.0, 1e4, 1e4, 1e4])


class TrackedBox(NamedTuple):
    """A box (4,) x0, y0, x1, y1 in px under an id, with the score of its detection."""

    id: int
    box: FloatArray
    score: float


class _Track:
    """A box with constant rates; ``misses`` counts pictures since its last detection."""

    def __init__(self, number: int, box: FloatArray, score: float) -> None:
        self.id, self.score = number, score
        self.misses = self.hits = 0
        self._state = np.concatenate([_measured(box), np.zeros(_STATES - _MEASURED)])
        self._covariance = _FIRST_COVARIANCE

    def predict(self) -> None:
        if self._state[2] + self._state[6] <= 0.0:
            self._state[6] = 0.0
        self._state = _TRANSITION @ self._state
        self._covariance = _TRANSITION @ self._covariance @ _TRANSITION.T + _PROCESS_NOISE
        if self.misses:
            self.hits = 0
        self.misses += 1

    def update(self, box: FloatArray, score: float) -> None:
        innovation = _measured(box) - self._state[:_MEASURED]
        spread = self._covariance[:_MEASURED, :_MEASURED] + _MEASUREMENT_NOISE
        gain = np.linalg.solve(spread, self._covariance[:_MEASURED]).T
        self._state = self._state + gain @ innovation
        self._covariance = self._covariance - gain @ self._covariance[:_MEASURED]
        self.score, self.misses = score, 0
        self.hits += 1

    @property
    def box(self) -> FloatArray:
        """NaN where the filter has left what a box can be."""
        x, y, area, aspect = self._state[:_MEASURED].tolist()
        width = (area * aspect) ** 0.5 if area > 0.0 < aspect else np.nan
        height = area / width
        return np.array([x - width / 2, y - height / 2, x + width / 2, y + height / 2])


class SortTracker:
    """Follows boxes from picture to picture; each picture is one `update`."""

    def __init__(self) -> None:
        self._tracks: list[_Track] = []
        self._pictures = self._ids = 0

    def update(self, boxes: FloatArray, scores: FloatArray) -> list[TrackedBox]:
        """Take the detections (N, 4), (N,) of a picture and return the tracks seen in it."""
        self._pictures += 1
        for track in self._tracks:
            track.predict()
        self._tracks = [track for track in self._tracks if np.isfinite(track.box).all()]
        left = set(range(len(boxes)))
        predicted = np.array([track.box for track in self._tracks]).reshape(-1, 4)
        overlap = intersection_over_union(predicted, boxes)
        for row, column in zip(*linear_sum_assignment(overlap, maximize=True), strict=True):
            if overlap[row, column] >= MIN_IOU:
                self._tracks[row].update(boxes[column], float(scores[column]))
                left.remove(column)
        for column in sorted(left):
            self._ids += 1
            self._tracks.append(_Track(self._ids, boxes[column], float(scores[column])))
        self._tracks = [track for track in self._tracks if track.misses <= MAX_AGE]
        return [
            TrackedBox(track.id, track.box, track.score)
            for track in self._tracks
            if not track.misses and (track.hits >= MIN_HITS or self._pictures <= MIN_HITS)
        ]


def _measured(box: FloatArray) -> FloatArray:
    """Return centre x, y, area and aspect of a box; one without area is taken as a pixel's."""
    width, height = np.maximum(box[2:] - box[:2], 1.0)
    x, y = (box[:2] + box[2:]) / 2
    return np.array([x, y, width * height, width / height])
