"""Trackers of others on the same detections as ours: each sees boxes and scores, nothing else.

`SortTracker` is in this package. ByteTrack and norfair are optional libraries, imported here
alone, with their own defaults: ``supervision`` (MIT), of which 0.27 is the last release that has
ByteTrack as it was published, and ``norfair-enough`` (BSD-3), a fork of norfair kept for numpy 2.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from importlib import import_module
from typing import Any, Protocol

import numpy as np

from mmedge_lab.judging import EvaluationError
from mmedge_lab.judging.bench import UnmeasuredError
from mmedge_lab.rivals.trackers.sort_tracker import SortTracker, TrackedBox
from mmedge_ros.data_types import FloatArray
from mmedge_ros.report.mot_text import NO_CLASS, MotBoxes, scores

OURS = 'mmedge'
# Between two detections so far apart every rival has forgotten all it knew.
_LONGEST_GAP = 1000
# What norfair's own examples take with the IoU as distance.
_NORFAIR_DISTANCE = 0.7


class RivalTracker(Protocol):
    """Takes one picture at a time, those without detections too."""

    def update(self, boxes: FloatArray, scores: FloatArray) -> list[TrackedBox]:
        """Take the detections (N, 4), (N,) of a picture and return the tracks in it."""
        ...


class _ByteTrack:
    def __init__(self, fps: float) -> None:
        self._supervision = _library('supervision')
        if not hasattr(self._supervision, 'ByteTrack'):
            raise EvaluationError(f'this release of supervision has no ByteTrack; {_remedy()}')
        self._tracker = self._supervision.ByteTrack(frame_rate=fps)

    def update(self, boxes: FloatArray, scores: FloatArray) -> list[TrackedBox]:
        detections = self._supervision.Detections(xyxy=boxes, confidence=scores)
        tracked = self._tracker.update_with_detections(detections)
        seen = zip(tracked.tracker_id, tracked.xyxy, tracked.confidence, strict=True)
        return [TrackedBox(int(number), box, float(score)) for number, box, score in seen]


class _Norfair:
    def __init__(self) -> None:
        self._norfair = _library('norfair')
        # It warns of each predicted box that has no area.
        logging.getLogger('norfair').setLevel(logging.ERROR)
        self._tracker = self._norfair.Tracker('iou', _NORFAIR_DISTANCE)

    def update(self, boxes: FloatArray, scores: FloatArray) -> list[TrackedBox]:
        detections = [
            self._norfair.Detection(box.reshape(2, 2), scores=np.full(2, score))
            for box, score in zip(boxes, scores, strict=True)
        ]
        # It returns objects for as long as it remembers them and draws those with live points.
        return [
            TrackedBox(item.id, item.estimate.ravel(), float(item.last_detection.scores[0]))
            for item in self._tracker.update(detections)
            if item.live_points.any()
        ]


RIVALS: dict[str, Callable[[float], RivalTracker]] = {
    'SORT': lambda fps: SortTracker(),  # noqa: ARG005
    'ByteTrack': _ByteTrack,
    'norfair': lambda fps: _Norfair(),  # noqa: ARG005
}


def track_with_rival(name: str, detections: MotBoxes, fps: float) -> MotBoxes:
    """Track the boxes of detections with a rival of `RIVALS` and return a box per frame and track.

    Causal, as `track_detections` is, and with the same scores of the same file.

    :param fps: pictures per second
    :raises EvaluationError: if the rival's library is not installed
    """
    tracker = RIVALS[name](fps)
    shown, _ = scores(detections.confidences)
    rows: list[list[float]] = []
    expected: int | None = None
    for frame, place in detections.by_frame().items():
        first = frame if expected is None else max(expected, frame - _LONGEST_GAP)
        for empty in range(first, frame):
            rows += _rows(empty, tracker.update(np.zeros((0, 4)), np.zeros(0)))
        rows += _rows(frame, tracker.update(detections.boxes[place], shown[place]))
        expected = frame + 1
    return MotBoxes.from_rows(rows)


def _rows(frame: int, tracked: list[TrackedBox]) -> list[list[float]]:
    return [[frame, t.id, *t.box.tolist(), t.score, NO_CLASS] for t in tracked]


def _library(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError as err:
        raise UnmeasuredError(
            f'this rival needs the package {name}, which is not installed ({err}); {_remedy()}'
        ) from err


def _remedy() -> str:
    return 'run `./mmedge install rivals`, and the same command again'
