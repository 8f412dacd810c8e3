"""What the gate wants to know of each track, as plain numbers: read once per state."""

from __future__ import annotations

import math
from typing import NamedTuple

from mmedge_ros.data_types import CAMERA, Box
from mmedge_ros.tracking.kalman_filter import RateSpread
from mmedge_ros.tracking.track import TrackerState, TrackState

# Far more than are ever shown: a flood of detections may not make asking slow.
_MOST_TRACKS = 40
_SHOWN_SUPPORT = 2
_SETTLED_SUPPORT = 4


class MovingBox(NamedTuple):
    """Middle, size (px) and their rates (px/s) at an instant."""

    stamp_ns: int
    x: float
    y: float
    width: float
    height: float
    right: float
    down: float
    widening: float
    growing: float

    def after(self, dt: float) -> Box:
        """Return the corners some time on; like the tracker's reports, the size stays."""
        x, y = self.x + dt * self.right, self.y + dt * self.down
        return Box(
            x - self.width / 2, y - self.height / 2, x + self.width / 2, y + self.height / 2
        )


class TrackFacts(NamedTuple):
    """A track with a box. ``deviation`` of the position in m, ``drift`` of the middle."""

    id: int
    is_shown: bool
    is_doubted: bool
    score: float
    born_ns: int
    seen_ns: int
    deviation: float
    box: MovingBox
    drift: RateSpread


class StateFacts(NamedTuple):
    """All tracks: those with a box, and how many without are confirmed and new."""

    stamp_ns: int
    with_box: tuple[TrackFacts, ...]
    people: tuple[TrackFacts, ...]
    unseen: int
    emerging: int


def state_facts(state: TrackerState) -> StateFacts:
    """Read a tracker's state."""
    with_box = tuple(
        _facts(track, state.stamp_ns)
        for track in state.tracks[:_MOST_TRACKS]
        if track.box is not None
    )
    boxless = [track.confirmed for track in state.tracks if track.box is None]
    return StateFacts(
        state.stamp_ns,
        with_box,
        tuple(track for track in with_box if track.is_shown),
        sum(boxless),
        len(boxless) - sum(boxless),
    )


def _facts(track: TrackState, stamp_ns: int) -> TrackFacts:
    box = track.box
    assert box is not None  # those without are left out
    x, y, width, height = box.values.tolist()
    covariance = track.covariance
    return TrackFacts(
        track.id,
        track.confirmed and track.support >= _SHOWN_SUPPORT,
        track.support < _SETTLED_SUPPORT,
        track.score,
        track.born_ns,
        track.updated_ns.get(CAMERA, track.born_ns),
        math.sqrt(max(covariance.item(0, 0), covariance.item(1, 1), 0.0)),
        MovingBox(stamp_ns, x, y, max(width, 1.0), max(height, 1.0), *box.rates.tolist()),
        box.centre,
    )


def overlap(a: Box, b: Box) -> float:
    """Intersection over union of two boxes; for a handful of them faster than arrays."""
    width = min(a[2], b[2]) - max(a[0], b[0])
    if width <= 0.0:
        return 0.0
    height = min(a[3], b[3]) - max(a[1], b[1])
    if height <= 0.0:
        return 0.0
    shared = width * height
    union = (a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - shared
    return float(shared / union) if union > 0.0 else 0.0
