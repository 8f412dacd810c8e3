"""Trackers of others on the same detections as ours: each sees boxes and scores, nothing else.

They are those of the optional package ``trackers`` (Apache-2.0), imported here alone, with its own
defaults.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

from mmedge_lab.judging.bench import UnmeasuredError
from mmedge_lab.judging.mot_text import NO_CLASS, MotBoxes, scores
from mmedge_ros.core.data_types import FloatArray

OURS = 'mmedge'
# Classes of the package by what they are called in tables.
RIVALS = {'SORT': 'SORTTracker', 'ByteTrack': 'ByteTrackTracker', 'OC-SORT': 'OCSORTTracker'}
# Between two detections so far apart every rival has forgotten all it knew.
_LONGEST_GAP = 1000


class TrackedBox(NamedTuple):
    """A box (4,) x0, y0, x1, y1 in px under an id, with the score of its detection."""

    id: int
    box: FloatArray
    score: float


class RivalTracker:
    """Takes one picture at a time, those without detections too.

    :param name: one of `RIVALS`
    :param fps: pictures per second
    :raises UnmeasuredError: if the package is not installed
    """

    def __init__(self, name: str, fps: float) -> None:
        self._detections = _library('supervision').Detections
        self._tracker = getattr(_library('trackers'), RIVALS[name])(frame_rate=fps)

    def update(self, boxes: FloatArray, scores: FloatArray) -> list[TrackedBox]:
        """Take the detections (N, 4), (N,) of a picture and return the tracks in it."""
        given = self._detections(
            xyxy=boxes, confidence=scores, class_id=np.zeros(len(boxes), np.int64)
        )
        tracked = self._tracker.update(given)
        seen = zip(tracked.tracker_id, tracked.xyxy, tracked.confidence, strict=True)
        # A track that is not confirmed yet has the id -1.
        return [TrackedBox(int(n), box, float(score)) for n, box, score in seen if n >= 0]


def track_with_rival(name: str, detections: MotBoxes, fps: float) -> MotBoxes:
    """Track the boxes of detections with a rival of `RIVALS` and return a box per frame and track.

    Causal, as `track_detections` is, and with the same scores of the same file.

    :param fps: pictures per second
    :raises UnmeasuredError: if the package is not installed
    """
    tracker = RivalTracker(name, fps)
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


def _rows(frame: int, tracked: list[TrackedBox]) -> Iterator[list[float]]:
    return ([frame, t.id, *t.box.tolist(), t.score, NO_CLASS] for t in tracked)


def _library(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError as err:
        raise UnmeasuredError(
            f'this rival needs the package {name}, which is not installed ({err}); run '
            '`./mmedge install rivals`, and the same command again'
        ) from err
