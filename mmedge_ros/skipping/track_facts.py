"""What the gate wants to know of each track, as plain numbers: read once per state.

Boxes are plain tuples of corners here: unpacking those of a named tuple takes several times as
long, and boxes are compared dozens of times for each picture.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from mmedge_ros.tracking.track import TrackerState, TrackState

# Far more than are ever shown: a flood of detections may not make asking slow.
_MOST_TRACKS = 40
_SHOWN_SUPPORT = 2

# x0, y0, x1, y1 in px.
Corners: TypeAlias = tuple[float, float, float, float]
# Middle x, y, half of width and height (px), and the rates of the middle to the right and down
# (px/s).
MovingBox: TypeAlias = tuple[float, float, float, float, float, float]


@dataclass(slots=True, eq=False)
class TrackFacts:
    """A track with a box, and where that box is; ``area`` is that of the corners (px^2).

    What only a question needs is read from the track when there is one.
    """

    track: TrackState
    id: int
    is_shown: bool
    moving: MovingBox
    corners: Corners
    area: float


@dataclass(slots=True, eq=False)
class StateFacts:
    """All tracks: those with a box, and how many without are confirmed and new."""

    stamp_ns: int
    with_box: Sequence[TrackFacts]
    people: Sequence[TrackFacts]
    unseen: int
    emerging: int


def state_facts(state: TrackerState) -> StateFacts:
    """Read a tracker's state."""
    with_box, people = [], []
    unseen = emerging = 0
    for number, track in enumerate(state.tracks):
        box = track.box
        if box is None:
            if track.confirmed:
                unseen += 1
            else:
                emerging += 1
        elif number < _MOST_TRACKS:
            x, y, width, height = box.values.tolist()
            half_width = width / 2 if width > 1.0 else 0.5
            half_height = height / 2 if height > 1.0 else 0.5
            x0, y0 = x - half_width, y - half_height
            x1, y1 = x + half_width, y + half_height
            is_shown = track.confirmed and track.support >= _SHOWN_SUPPORT
            right, down, _, _ = box.rates.tolist()
            facts = TrackFacts(
                track,
                track.id,
                is_shown,
                (x, y, half_width, half_height, right, down),
                (x0, y0, x1, y1),
                (x1 - x0) * (y1 - y0),
            )
            with_box.append(facts)
            if is_shown:
                people.append(facts)
    return StateFacts(state.stamp_ns, with_box, people, unseen, emerging)
