"""The tracks shown in the last second, and how well they predicted the present."""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple, TypeAlias

from mmedge_ros.core.data_types import NS_PER_S
from mmedge_ros.geometry.box_overlap import overlap
from mmedge_ros.tracking.track import TrackerState, TrackState

# Far more than are ever shown: a flood of detections may not make the gate slow.
_MOST_TRACKS = 40
_SHOWN_SUPPORT = 2
_KEPT_NS = NS_PER_S
_MOST_KEPT = 200
_LATELY_NS = 300_000_000
# How long before now an early decision would have been made, and the share of earlier pictures'
# figures that is forgotten with each picture.
_LEADS_NS = (30_000_000, 60_000_000, 100_000_000, 180_000_000)
_MIDDLES_NS = [(a + b) // 2 for a, b in pairwise(_LEADS_NS)]
_FORGOTTEN = 0.1
# Boxes that fit worse than this are not the same as a decision shows them.
_DIFFERENT = 0.3

# x0, y0, x1, y1 in px.
Corners: TypeAlias = tuple[float, float, float, float]


class MovingBox(NamedTuple):
    """Middle x, y, half of width and height (px), and the rates of the middle (px/s)."""

    x: float
    y: float
    half_width: float
    half_height: float
    right: float
    down: float

    def corners_after(self, seconds: float) -> Corners:
        """Return the corners then; like in the tracker's reports, the size stays."""
        x, y = self.x + seconds * self.right, self.y + seconds * self.down
        width, height = self.half_width, self.half_height
        return x - width, y - height, x + width, y + height


@dataclass(slots=True, eq=False)
class TrackFacts:
    """A track with a box, and where that box is."""

    track: TrackState
    is_shown: bool
    moving: MovingBox
    corners: Corners


@dataclass(slots=True, eq=False)
class StateFacts:
    """All tracks: those with a box, and how many without are confirmed and new."""

    stamp_ns: int
    with_box: Sequence[TrackFacts]
    people: Sequence[TrackFacts]
    unseen: int
    emerging: int


def state_facts(state: TrackerState) -> StateFacts:
    """Read a tracker's state, once for all that is said of it."""
    with_box = []
    unseen = emerging = 0
    for number, track in enumerate(state.tracks):
        if track.box is None:
            unseen += track.confirmed
            emerging += not track.confirmed
        elif number < _MOST_TRACKS:
            x, y, width, height = track.box.values.tolist()
            right, down, _, _ = track.box.rates.tolist()
            moving = MovingBox(x, y, max(width / 2, 0.5), max(height / 2, 0.5), right, down)
            shown = track.confirmed and track.support >= _SHOWN_SUPPORT
            with_box.append(TrackFacts(track, shown, moving, moving.corners_after(0.0)))
    people = [track for track in with_box if track.is_shown]
    return StateFacts(state.stamp_ns, with_box, people, unseen, emerging)


class _Shown(NamedTuple):
    """The boxes shown at an instant, by track; ``changed``: not the same tracks as before."""

    stamp_ns: int
    people: dict[int, MovingBox]
    changed: bool


_NOBODY = _Shown(0, {}, False)


class ShownHistory:
    """Remembers the tracks shown in the last second."""

    def __init__(self) -> None:
        self._shown: deque[_Shown] = deque(maxlen=_MOST_KEPT)
        # Running means over pictures, for each lead: the worst fit (1 - IoU), and whether it was
        # no match.
        self._fits = [0.5] * len(_LEADS_NS)
        self._errors = [0.5] * len(_LEADS_NS)

    def add(self, facts: StateFacts) -> None:
        """Remember the tracks that are shown."""
        people = {person.track.id: person.moving for person in facts.people}
        changed = bool(self._shown) and self._shown[-1].people.keys() != people.keys()
        self._shown.append(_Shown(facts.stamp_ns, people, changed))
        while facts.stamp_ns - self._shown[0].stamp_ns > _KEPT_NS:
            self._shown.popleft()

    def learn(self, facts: StateFacts) -> None:
        """Learn from a picture how well it could have been predicted."""
        for place, lead_ns in enumerate(_LEADS_NS):
            fit = self.hindsight(facts, lead_ns)
            self._fits[place] += _FORGOTTEN * (fit - self._fits[place])
            self._errors[place] += _FORGOTTEN * ((fit > _DIFFERENT) - self._errors[place])

    def usual(self, lead_ns: int) -> tuple[float, float]:
        """Return the usual worst fit, and how usual no match is, of the lead that is nearest."""
        place = bisect_left(_MIDDLES_NS, lead_ns)
        return self._fits[place], self._errors[place]

    def hindsight(self, facts: StateFacts, lead_ns: int) -> float:
        """Return the worst fit (1 - IoU) of the tracks shown now with what was expected before.

        :return: 1 if they are not the same people
        """
        then = self._at(facts.stamp_ns - lead_ns)
        if then.people.keys() != {person.track.id for person in facts.people}:
            return 1.0
        seconds = (facts.stamp_ns - then.stamp_ns) / NS_PER_S
        fits = (
            overlap(then.people[person.track.id].corners_after(seconds), person.corners)
            for person in facts.people
        )
        return 1.0 - min(fits, default=1.0)

    def people_at(self, at_ns: int) -> dict[int, MovingBox]:
        """Return the tracks shown at an instant, or the first that are known."""
        return self._at(at_ns).people

    def changes(self, state_ns: int) -> float:
        """Return how often the set of shown tracks changed lately."""
        lately = [s.changed for s in self._shown if s.stamp_ns >= state_ns - _LATELY_NS]
        # What the first of them changed was before that.
        return float(sum(lately[1:]))

    def _at(self, at_ns: int) -> _Shown:
        """Return what was shown at an instant, or is known first."""
        for shown in reversed(self._shown):
            if shown.stamp_ns <= at_ns:
                return shown
        return self._shown[0] if self._shown else _NOBODY
