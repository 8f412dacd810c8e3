"""Extracts gate features from the units and tracks of the last second.

Small loops over a handful of tracks, for every picture: numpy and `max` cost more than they save.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from itertools import combinations
from math import hypot, inf, log, sqrt
from typing import NamedTuple

from mmedge_ros.data_types import CAMERA, NS_PER_S, Detection, UnitFeatures
from mmedge_ros.geometry.box_overlap import overlap
from mmedge_ros.skipping.gate_features import GateFeatures, OpenWindow
from mmedge_ros.skipping.recent_units import (
    RecentUnits,
    age,
    embedded,
    flicker,
    fraction,
    returned,
)
from mmedge_ros.skipping.shown_history import ShownHistory
from mmedge_ros.skipping.track_facts import Corners, StateFacts, TrackFacts, state_facts
from mmedge_ros.tracking.track import TrackerState

# Two boxes mean the same person from here on.
_SAME = 0.5
# A detection that is this far from the threshold on the other side may be on this side next.
_BORDERLINE = 0.15
_MOST_DETECTIONS = 40
# A track that was missed lately has less.
_SETTLED_SUPPORT = 4
_SWERVE_NS = 100_000_000
_PICTURES = 6
# Larger numbers count as this.
_LARGEST = 5.0
# What `_shown` and `_outlook` say without people: as if all were well. The sixth is the
# logarithm of a height in px.
_NOBODY = (0.0, _LARGEST, 1.0, 1.0, 1.0, 6.0, 0.0, 0.0)
_NOTHING = (0.0,) * 7
_LEVELS = {'small': 0.0, 'medium': 1.0, 'large': 2.0}


class _Picture(NamedTuple):
    """A picture against the tracks."""

    unexplained: float = 0.0
    missing: float = 0.0
    worst_fit: float = 0.0
    borderline: float = 0.0


class GateFeatureExtractor:
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
        self._units = RecentUnits(self._window_ns)
        self._history = ShownHistory()
        self._picture = _Picture()
        self._fits: deque[float] = deque(maxlen=_PICTURES)
        self._size = (0, 0)
        self._known: tuple[TrackerState, StateFacts] | None = None

    def add(self, unit: UnitFeatures, state: TrackerState) -> None:
        """Remember a unit that was taken in, and the tracks after it."""
        facts, high = self._facts(state), self._high
        self._units.add(unit, sum([detection.score >= high for detection in unit.detections]))
        if unit.modality == CAMERA:
            self._size = unit.image_size
            self._picture = self._compared(unit.detections[:_MOST_DETECTIONS], facts)
            self._fits.append(self._picture.worst_fit)
            self._history.learn(facts)
        self._history.add(facts)

    def features(self, window: OpenWindow, state: TrackerState) -> GateFeatures:
        """Return the features of an open window."""
        facts = self._facts(state)
        people = facts.people
        end_ns, now_ns, modality, sensed, expected, level = window
        slow, fast = self._units.received(end_ns, modality)
        # There are two modalities.
        pictures, scans = (slow, fast) if modality == CAMERA else (fast, slow)
        lead = (end_ns - now_ns) / NS_PER_S if end_ns > now_ns else 0.0
        rate = expected * NS_PER_S / self._window_ns
        arrived = sensed / expected if expected > 1 else float(sensed)
        doubted, *shown, deviation, unseen = _shown(people, now_ns) if people else _NOBODY
        *drifts, border, crossing = (
            self._outlook(people, facts.stamp_ns, end_ns) if people else _NOTHING
        )
        return GateFeatures._make(
            [
                lead,
                age(slow, now_ns),
                age(fast, now_ns),
                arrived if arrived < 1.0 else 1.0,
                fraction(fast, self._window_ns),
                lead * rate,
                rate,
                _LEVELS.get(level, 1.0),
                float(modality == CAMERA),
                float(len(people)),
                float(len(facts.with_box) - len(people)),
                doubted,
                float(facts.unseen),
                float(facts.emerging),
                *shown,
                *drifts,
                deviation,
                unseen,
                border,
                crossing,
                *self._picture,
                self._history.hindsight(facts, round(lead * NS_PER_S)),
                sum(self._fits) / len(self._fits) if self._fits else 0.0,
                *self._history.usual(end_ns - facts.stamp_ns),
                flicker(pictures),
                self._history.changes(facts.stamp_ns),
                *embedded(slow, fast),
                *returned(scans, slow),
            ]
        )

    def _facts(self, state: TrackerState) -> StateFacts:
        if self._known is None or self._known[0] is not state:
            self._known = (state, state_facts(state))
        return self._known[1]

    def _outlook(
        self, people: Sequence[TrackFacts], state_ns: int, end_ns: int
    ) -> tuple[float, ...]:
        """Predict the boxes to the window's end.

        :return: the features from ``worst_drift`` to ``worst_growth``, ``at_border`` and
            ``crossing``
        """
        ahead = (end_ns - state_ns) / NS_PER_S if end_ns > state_ns else 0.0
        before = self._history.people_at(state_ns - _SWERVE_NS)
        boxes: list[Corners] = []
        worst_drift = sum_drift = worst_motion = worst_swerve = worst_growth = 0.0
        for person in people:
            state = person.track.box
            assert state is not None  # those without are left out
            x, y, half_width, half_height, right, down = person.moving
            width, height = 2.0 * half_width, 2.0 * half_height
            value, cross, rate = state.centre
            drift = value + ahead * (2.0 * cross + ahead * rate)
            if drift > 0.0:
                drift = sqrt(drift) * height / width
                sum_drift += drift
                if drift > worst_drift:
                    worst_drift = drift
            motion = hypot(right, down) * ahead / width
            if motion > worst_motion:
                worst_motion = motion
            old = before.get(person.id)
            if old is not None:
                swerve = hypot(right - old[4], down - old[5]) * ahead / width
                if swerve > worst_swerve:
                    worst_swerve = swerve
            _, _, widening, growing = state.rates.tolist()
            growth = hypot(widening / width, growing / height) * ahead
            if growth > worst_growth:
                worst_growth = growth
            # Like in the tracker's reports, the size stays.
            x, y = x + ahead * right, y + ahead * down
            boxes.append((x - half_width, y - half_height, x + half_width, y + half_height))
        return (
            _at_most(worst_drift),
            _at_most(sum_drift),
            _at_most(worst_motion),
            _at_most(worst_swerve),
            _at_most(worst_growth),
            _at_border(boxes, self._size),
            _crossing(boxes),
        )

    def _compared(self, detections: Sequence[Detection], facts: StateFacts) -> _Picture:
        """Compare a picture with the tracks it has just updated."""
        high = self._high
        tracked = [track.corners for track in facts.with_box]
        best = [0.0] * len(tracked)
        unexplained = borderline = missing = 0
        worst = 0.0
        for detection in detections:
            score, fit = detection.score, _best_fit(detection.box, tracked, best)
            if abs(score - high) < _BORDERLINE:
                borderline += 1
            if score >= high:
                if fit < _SAME:
                    unexplained += 1
                elif 1.0 - fit > worst:
                    worst = 1.0 - fit
        for track, fit in zip(facts.with_box, best, strict=True):
            if fit < _SAME and track.is_shown:
                missing += 1
        return _Picture(float(unexplained), float(missing), worst, float(borderline))


def _best_fit(box: Sequence[float], tracked: Sequence[Corners], best: list[float]) -> float:
    """Return how well a box fits the one it fits best; ``best`` is so far that of each track."""
    # Whoever reads boxes out of an array has numbers of numpy's, which are slow.
    ax0, ay0, ax1, ay1 = map(float, box)
    fit = 0.0
    for place, (bx0, by0, bx1, by1) in enumerate(tracked):
        # Most are beside each other. The rest is `overlap` written out.
        if bx0 >= ax1 or bx1 <= ax0:
            continue
        width = (bx1 if bx1 < ax1 else ax1) - (bx0 if bx0 > ax0 else ax0)
        height = (by1 if by1 < ay1 else ay1) - (by0 if by0 > ay0 else ay0)
        if width <= 0.0 or height <= 0.0:
            continue
        shared = width * height
        shared /= (ax1 - ax0) * (ay1 - ay0) + (bx1 - bx0) * (by1 - by0) - shared
        if shared > fit:
            fit = shared
        if shared > best[place]:
            best[place] = shared
    return fit


def _shown(people: Sequence[TrackFacts], now_ns: int) -> tuple[float, ...]:
    """Describe the shown tracks.

    :return: the features ``doubted``, ``youngest`` to ``smallest_height``,
        ``position_deviation`` and ``camera_unseen``
    """
    born_ns, seen_ns, doubted = 0, now_ns, 0
    lowest = shortest = inf
    highest = total = variance = 0.0
    for person in people:
        track = person.track
        if track.support < _SETTLED_SUPPORT:
            doubted += 1
        if track.born_ns > born_ns:
            born_ns = track.born_ns
        camera_ns = track.updated_ns.get(CAMERA, track.born_ns)
        if camera_ns < seen_ns:
            seen_ns = camera_ns
        score, half_height = track.score, person.moving[3]
        total += score
        if score < lowest:
            lowest = score
        if score > highest:
            highest = score
        if half_height < shortest:
            shortest = half_height
        # The places of x and y in the covariance (6, 6), read as one row.
        forth, across = track.covariance.item(0), track.covariance.item(7)
        if forth > variance:
            variance = forth
        if across > variance:
            variance = across
    return (
        float(doubted),
        _at_most((now_ns - born_ns) / NS_PER_S),
        lowest,
        total / len(people),
        highest,
        log(2.0 * shortest),
        _at_most(sqrt(variance)),
        _at_most((now_ns - seen_ns) / NS_PER_S),
    )


def _at_most(value: float) -> float:
    """Return a number, or the largest there is."""
    return value if value < _LARGEST else _LARGEST


def _at_border(boxes: Sequence[Corners], size: tuple[int, int]) -> float:
    """Return how many touch the border of the picture, of size 0 before the first."""
    width, height = size
    count = 0
    for x0, y0, x1, y1 in boxes:
        if x0 < 0.0 or y0 < 0.0 or x1 > width or y1 > height:
            count += 1
    return float(count) if width else 0.0


def _crossing(boxes: Sequence[Corners]) -> float:
    """Return how much those two overlap that overlap most."""
    most = 0.0
    for one, other in combinations(boxes, 2):
        # Most are beside each other.
        if other[0] < one[2] and other[2] > one[0]:
            shared = overlap(one, other)
            if shared > most:
                most = shared
    return most
