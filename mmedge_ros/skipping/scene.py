"""What is remembered of the last moments to ask the gate: cheap, and of one window's units only.

Everything here is small loops over a handful of tracks: numpy would cost more than it saves.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mmedge_ros.data_types import CAMERA, NS_PER_S, RADAR, Detection, UnitFeatures
from mmedge_ros.skipping.question import Question
from mmedge_ros.skipping.track_facts import (
    MovingBox,
    StateFacts,
    TrackFacts,
    overlap,
    state_facts,
)
from mmedge_ros.tracking.track import TrackerState

# Two boxes mean the same person from here on.
_SAME = 0.5
# A detection that is this far from the threshold on the other side may be on this side next.
_BORDERLINE = 0.15
_MOST_DETECTIONS = 40
_LATELY_NS = 300_000_000
_SWERVE_NS = 100_000_000
_KEPT_NS = NS_PER_S
_MOST_UNITS = 200
_PICTURES = 6
# How long before it is asked in hindsight what would have been decided, and how much of what was
# known of that is forgotten with each picture.
_LEADS_NS = (30_000_000, 60_000_000, 100_000_000, 180_000_000)
_FORGOTTEN = 0.1
# Boxes that fit worse than this are not the same (`agreement.EQUAL_IOU`).
_DIFFERENT = 0.3
# Numbers beyond this say no more than this.
_LARGEST = 5.0
# Logarithm of a height in px that stands for no box at all.
_TALL = 6.0
_LEVELS = {'small': 0.0, 'medium': 1.0, 'large': 2.0}


class Asking(NamedTuple):
    """The window that is asked about, and what of its slow modality arrived."""

    end_ns: int
    now_ns: int
    slow: str
    sensed: int
    expected: int
    level: str = ''


class _Seen(NamedTuple):
    """What is remembered of a unit."""

    modality: str
    stamp_ns: int
    available_ns: int
    embedding: NDArray[np.float32]
    strong: int
    returns: int


class _Picture(NamedTuple):
    """A picture against the tracks."""

    unexplained: float = 0.0
    missing: float = 0.0
    worst_fit: float = 0.0
    borderline: float = 0.0


class _Outlook(NamedTuple):
    """What becomes of the boxes until the window's end."""

    smallest_height: float = _TALL
    worst_drift: float = 0.0
    sum_drift: float = 0.0
    worst_motion: float = 0.0
    worst_swerve: float = 0.0
    worst_growth: float = 0.0
    position_deviation: float = 0.0
    camera_unseen: float = 0.0
    at_border: float = 0.0
    crossing: float = 0.0


class _Shown(NamedTuple):
    """Who was shown at an instant, and where; ``changed``: not the same people as before."""

    stamp_ns: int
    boxes: dict[int, MovingBox]
    changed: bool


class _Usual(NamedTuple):
    """Running means over pictures: the worst fit (1 - IoU), and whether it was no match."""

    fit: float = 0.5
    error: float = 0.5


class Scene:
    """Remembers units and tracks of the last second.

    :param high_score: detections from here on begin tracks
    :param window: length of a window, s
    """

    def __init__(self, high_score: float = 0.4, window: float = 0.5) -> None:
        self._high = high_score
        self._window_ns = round(window * NS_PER_S)
        self.reset()

    def reset(self) -> None:
        """Forget everything."""
        self._units: deque[_Seen] = deque(maxlen=_MOST_UNITS)
        self._shown: deque[_Shown] = deque(maxlen=_MOST_UNITS)
        self._picture = _Picture()
        self._fits: deque[float] = deque(maxlen=_PICTURES)
        self._usual = [_Usual()] * len(_LEADS_NS)
        self._size = (0, 0)
        self._known: tuple[TrackerState, StateFacts] | None = None

    def add(self, unit: UnitFeatures, state: TrackerState) -> None:
        """Remember a unit that was taken in, and the tracks after it."""
        facts = self._facts(state)
        self._units.append(
            _Seen(
                unit.modality,
                unit.stamp_ns,
                unit.available_ns,
                unit.embedding,
                sum(detection.score >= self._high for detection in unit.detections),
                len(unit.returns),
            )
        )
        while self._units[0].available_ns <= unit.available_ns - self._window_ns - _KEPT_NS:
            self._units.popleft()
        if unit.modality == CAMERA:
            self._size = unit.image_size
            self._picture = self._compared(unit.detections[:_MOST_DETECTIONS], facts)
            self._fits.append(self._picture.worst_fit)
            self._look_back(facts)
        boxes = {t.id: t.box for t in facts.people}
        changed = bool(self._shown) and self._shown[-1].boxes.keys() != boxes.keys()
        self._shown.append(_Shown(facts.stamp_ns, boxes, changed))
        while self._shown[-1].stamp_ns - self._shown[0].stamp_ns > _KEPT_NS:
            self._shown.popleft()

    def question(self, asking: Asking, state: TrackerState) -> Question:
        """Put into numbers what is known of a window now."""
        facts = self._facts(state)
        people = facts.people
        begin_ns = asking.end_ns - self._window_ns
        units = [u for u in self._units if begin_ns < u.available_ns <= asking.end_ns]
        slow = [u for u in units if u.modality == asking.slow]
        fast = [u for u in units if u.modality != asking.slow]
        lead = max(asking.end_ns - asking.now_ns, 0) / NS_PER_S
        rate = asking.expected * NS_PER_S / self._window_ns
        scores = [track.score for track in people] or [1.0]
        ages = [_LARGEST, *((asking.now_ns - t.born_ns) / NS_PER_S for t in people)]
        return Question(
            lead,
            _age(slow, asking.now_ns),
            _age(fast, asking.now_ns),
            min(asking.sensed / max(asking.expected, 1), 1.0),
            _fast_fraction(fast, self._window_ns),
            lead * rate,
            rate,
            _LEVELS.get(asking.level, 1.0),
            float(asking.slow == CAMERA),
            float(len(people)),
            float(len(facts.with_box) - len(people)),
            float(sum(track.is_doubted for track in people)),
            float(facts.unseen),
            float(facts.emerging),
            min(ages),
            min(scores),
            sum(scores) / len(scores),
            max(scores),
            *self._outlook(people, facts.stamp_ns, asking),
            *self._picture,
            self._hindsight(facts, round(lead * NS_PER_S)),
            sum(self._fits) / len(self._fits) if self._fits else 0.0,
            *self._usual[_nearest(asking.end_ns - facts.stamp_ns)],
            _deviation([u.strong for u in units if u.modality == CAMERA][-_PICTURES:]),
            self._changes(facts.stamp_ns),
            *_embeddings(slow, fast),
            *_returns(units, slow),
        )

    def _facts(self, state: TrackerState) -> StateFacts:
        if self._known is None or self._known[0] is not state:
            self._known = (state, state_facts(state))
        return self._known[1]

    def _outlook(self, people: Sequence[TrackFacts], state_ns: int, asking: Asking) -> _Outlook:
        """Predict the boxes to the window's end."""
        if not people:
            return _Outlook()
        ahead = max(asking.end_ns - state_ns, 0) / NS_PER_S
        before = self._shown_at(state_ns - _SWERVE_NS)
        drifts, motions, swerves, growths = [], [], [], []
        boxes = []
        for track in people:
            box = track.box
            spread = track.drift
            drift = spread.value + ahead * (2.0 * spread.cross + ahead * spread.rate)
            drifts.append(math.sqrt(max(drift, 0.0)) * box.height / box.width)
            motions.append(math.hypot(box.right, box.down) * ahead / box.width)
            old = before.get(track.id)
            if old is not None:
                swerve = math.hypot(box.right - old.right, box.down - old.down)
                swerves.append(swerve * ahead / box.width)
            growth = math.hypot(box.widening / box.width, box.growing / box.height)
            growths.append(growth * ahead)
            boxes.append(box.after(ahead))
        width, height = self._size
        border = sum(
            b.x0 < 0.0 or b.y0 < 0.0 or b.x1 > width or b.y1 > height for b in boxes if width
        )
        crossing = [overlap(a, b) for place, a in enumerate(boxes) for b in boxes[place + 1 :]]
        unseen_ns = asking.now_ns - min(track.seen_ns for track in people)
        return _Outlook(
            math.log(min(track.box.height for track in people)),
            min(max(drifts), _LARGEST),
            min(sum(drifts), _LARGEST),
            min(max(motions), _LARGEST),
            min(max(swerves, default=0.0), _LARGEST),
            min(max(growths), _LARGEST),
            min(max(track.deviation for track in people), _LARGEST),
            min(max(unseen_ns, 0) / NS_PER_S, _LARGEST),
            float(border),
            max(crossing, default=0.0),
        )

    def _compared(self, detections: Sequence[Detection], facts: StateFacts) -> _Picture:
        """Compare a picture with the tracks it has just updated."""
        tracked = [track.box.after(0.0) for track in facts.with_box]
        best = [0.0] * len(tracked)
        unexplained, borderline, worst = 0, 0, 0.0
        for detection in detections:
            borderline += abs(detection.score - self._high) < _BORDERLINE
            fit = 0.0
            for place, box in enumerate(tracked):
                shared = overlap(detection.box, box)
                fit = max(fit, shared)
                best[place] = max(best[place], shared)
            if detection.score >= self._high:
                unexplained += fit < _SAME
                worst = max(worst, 1.0 - fit if fit >= _SAME else 0.0)
        missing = sum(
            track.is_shown and fit < _SAME for track, fit in zip(facts.with_box, best, strict=True)
        )
        return _Picture(float(unexplained), float(missing), worst, float(borderline))

    def _look_back(self, facts: StateFacts) -> None:
        """Learn from a picture how well it could have been foretold."""
        for place, lead_ns in enumerate(_LEADS_NS):
            fit = self._hindsight(facts, lead_ns)
            old = self._usual[place]
            self._usual[place] = _Usual(
                old.fit + _FORGOTTEN * (fit - old.fit),
                old.error + _FORGOTTEN * ((fit > _DIFFERENT) - old.error),
            )

    def _hindsight(self, facts: StateFacts, lead_ns: int) -> float:
        """How wrong a decision would have been that was made so long ago for now."""
        then = self._shown_at(facts.stamp_ns - lead_ns)
        if len(then) != len(facts.people):
            return 1.0
        worst = 0.0
        for track in facts.people:
            old = then.get(track.id)
            if old is None:
                return 1.0
            dt = (facts.stamp_ns - old.stamp_ns) / NS_PER_S
            worst = max(worst, 1.0 - overlap(old.after(dt), track.box.after(0.0)))
        return worst

    def _shown_at(self, at_ns: int) -> dict[int, MovingBox]:
        """Return who was shown at an instant, or what is known first."""
        for shown in reversed(self._shown):
            if shown.stamp_ns <= at_ns:
                return shown.boxes
        return self._shown[0].boxes if self._shown else {}

    def _changes(self, state_ns: int) -> float:
        """How often the set of shown tracks changed lately."""
        recent = [s.changed for s in self._shown if state_ns - s.stamp_ns <= _LATELY_NS]
        # What the first of them changed was before that.
        return float(sum(recent[1:]))


def _nearest(lead_ns: int) -> int:
    """Return the place of the lead that is nearest."""
    return min(range(len(_LEADS_NS)), key=lambda place: abs(_LEADS_NS[place] - lead_ns))


def _age(units: Sequence[_Seen], now_ns: int) -> float:
    if not units:
        return _LARGEST
    return min(max(now_ns - max(u.stamp_ns for u in units), 0) / NS_PER_S, _LARGEST)


def _fast_fraction(units: Sequence[_Seen], window_ns: int) -> float:
    """Share of the fast units that arrived, by their own distance."""
    if len(units) < 2:
        return float(len(units))
    span = max(u.stamp_ns for u in units) - min(u.stamp_ns for u in units)
    return min((len(units) * span / (len(units) - 1)) / window_ns, 1.0)


def _deviation(counts: list[int]) -> float:
    if len(counts) < 2:
        return 0.0
    mean = sum(counts) / len(counts)
    return math.sqrt(sum((c - mean) ** 2 for c in counts) / len(counts))


def _cosine(one: NDArray[np.float32], other: NDArray[np.float32]) -> float:
    if one.shape != other.shape or not one.size:
        return 0.0
    norm = math.sqrt(float(one @ one) * float(other @ other))
    value = float(one @ other) / norm if norm > 0.0 else 0.0
    return value if math.isfinite(value) else 0.0


def _embeddings(slow: list[_Seen], fast: list[_Seen]) -> tuple[float, float, float, float]:
    """Presence, consistency, and how far each modality moved since the window's begin."""
    if not slow or not fast or not slow[-1].embedding.size or not fast[-1].embedding.size:
        return 0.0, 0.0, 0.0, 0.0
    slow_change, fast_change = (
        1.0 - _cosine(part[0].embedding, part[-1].embedding) for part in (slow, fast)
    )
    return 1.0, _cosine(slow[-1].embedding, fast[-1].embedding), slow_change, fast_change


def _returns(units: list[_Seen], slow: list[_Seen]) -> tuple[float, float]:
    scans = [u for u in units if u.modality == RADAR]
    if not scans:
        return 0.0, 0.0
    now = math.log1p(scans[-1].returns)
    since_ns = slow[-1].stamp_ns if slow else 0
    then = next((s for s in reversed(scans) if s.stamp_ns <= since_ns), scans[-1])
    return now, now - math.log1p(then.returns)
