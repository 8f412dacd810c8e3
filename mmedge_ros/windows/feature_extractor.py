"""Extracts gate features from the units and tracks of the last second.

Plain loops over a handful of tracks, for every picture: arrays cost more than they save.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mmedge_ros.core.data_types import CAMERA, NS_PER_S, Detection, UnitFeatures
from mmedge_ros.geometry.box_overlap import overlap
from mmedge_ros.tracking.track import TrackerState
from mmedge_ros.windows.gate_features import GateFeatures, OpenWindow
from mmedge_ros.windows.shown_tracks import (
    Corners,
    ShownHistory,
    StateFacts,
    TrackFacts,
    state_facts,
)

# Two boxes mean the same person from here on.
_SAME = 0.5
# A detection that is this far from the threshold on the other side may be on this side next.
_BORDERLINE = 0.15
_MOST_DETECTIONS = 40
# A track that was missed lately has less.
_SETTLED_SUPPORT = 4
_SWERVE_NS = 100_000_000
_KEPT_NS = NS_PER_S
_MOST_UNITS = 200
_PICTURES = 6
# Larger numbers count as this.
_LARGEST = 5.0
# Without people as if all were well: the logarithm of a height in px is 6.
_CALM = {
    'youngest': _LARGEST,
    'smallest_height': 6.0,
    **dict.fromkeys(('lowest_score', 'mean_score', 'highest_score'), 1.0),
}
_LEVELS = {'small': 0.0, 'medium': 1.0, 'large': 2.0}


class _SeenUnit(NamedTuple):
    """What is remembered of a unit; ``strong`` is how many of its detections begin tracks."""

    modality: str
    stamp_ns: int
    available_ns: int
    embedding: NDArray[np.float32]
    strong: int
    returns: int


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
        self._units: deque[_SeenUnit] = deque(maxlen=_MOST_UNITS)
        self._history = ShownHistory()
        self._picture = dict.fromkeys(('unexplained', 'missing', 'worst_fit', 'borderline'), 0.0)
        self._fits: deque[float] = deque(maxlen=_PICTURES)
        self._size = (0, 0)
        self._read = TrackerState(), state_facts(TrackerState())

    def add(self, unit: UnitFeatures, state: TrackerState) -> None:
        """Remember a unit that was taken in, and the tracks after it."""
        facts = self._facts(state)
        strong = sum(detection.score >= self._high for detection in unit.detections)
        times = unit.modality, unit.stamp_ns, unit.available_ns
        self._units.append(_SeenUnit(*times, unit.embedding, strong, len(unit.returns)))
        oldest_ns = unit.available_ns - self._window_ns - _KEPT_NS
        while self._units[0].available_ns <= oldest_ns:
            self._units.popleft()
        if unit.modality == CAMERA:
            self._size = unit.image_size
            self._picture = self._compared(unit.detections[:_MOST_DETECTIONS], facts)
            self._fits.append(self._picture['worst_fit'])
            self._history.learn(facts)
        self._history.add(facts)

    def features(self, window: OpenWindow, state: TrackerState) -> GateFeatures:
        """Return the features of an open window."""
        facts = self._facts(state)
        begin_ns = window.end_ns - self._window_ns
        inside = [u for u in reversed(self._units) if begin_ns < u.available_ns <= window.end_ns]
        slow = [unit for unit in inside if unit.modality == window.slow]
        fast = [unit for unit in inside if unit.modality != window.slow]
        # There are two modalities.
        pictures, scans = (slow, fast) if window.slow == CAMERA else (fast, slow)
        lead = max((window.end_ns - window.now_ns) / NS_PER_S, 0.0)
        rate = window.expected * NS_PER_S / self._window_ns
        usual_hindsight, usual_error = self._history.usual(window.end_ns - facts.stamp_ns)
        values = {
            'lead': lead,
            'slow_age': _age(slow, window.now_ns),
            'fast_age': _age(fast, window.now_ns),
            'slow_fraction': min(window.sensed / max(window.expected, 1), 1.0),
            'fast_fraction': _fraction(fast, self._window_ns),
            'left_out': lead * rate,
            'slow_rate': rate,
            'slow_level': _LEVELS.get(window.level, 1.0),
            'slow_is_camera': float(window.slow == CAMERA),
            'people': float(len(facts.people)),
            'unsettled': float(len(facts.with_box) - len(facts.people)),
            'unseen': float(facts.unseen),
            'emerging': float(facts.emerging),
            'hindsight': self._history.hindsight(facts, round(lead * NS_PER_S)),
            'lasting_fit': sum(self._fits) / len(self._fits) if self._fits else 0.0,
            'usual_hindsight': usual_hindsight,
            'usual_error': usual_error,
            'flicker': _flicker(pictures),
            'changes': self._history.changes(facts.stamp_ns),
            **self._picture,
            **_embedded(slow, fast),
            **_returned(scans, slow),
        }
        if facts.people:
            values |= _shown(facts.people, window.now_ns)
            values |= self._outlook(facts, window.end_ns)
        return GateFeatures(**{**_NOTHING, **_CALM, **values})

    def _facts(self, state: TrackerState) -> StateFacts:
        """Read a state once: windows are asked for after each unit, with the state it left."""
        if state is not self._read[0]:
            self._read = state, state_facts(state)
        return self._read[1]

    def _outlook(self, facts: StateFacts, end_ns: int) -> dict[str, float]:
        """Predict the boxes to the window's end."""
        ahead = max((end_ns - facts.stamp_ns) / NS_PER_S, 0.0)
        before = self._history.people_at(facts.stamp_ns - _SWERVE_NS)
        drifts, motions, swerves, growths = [], [], [], []
        for person in facts.people:
            box, moving = person.track.box, person.moving
            assert box is not None  # those without are left out
            width, height = 2.0 * moving.half_width, 2.0 * moving.half_height
            value, cross, rate = box.centre
            drift = max(value + ahead * (2.0 * cross + ahead * rate), 0.0)
            drifts.append(math.sqrt(drift) * height / width)
            motions.append(math.hypot(moving.right, moving.down) * ahead / width)
            old = before.get(person.track.id)
            if old is not None:
                turned = math.hypot(moving.right - old.right, moving.down - old.down)
                swerves.append(turned * ahead / width)
            _, _, widening, growing = box.rates.tolist()
            growths.append(math.hypot(widening / width, growing / height) * ahead)
        boxes = [person.moving.corners_after(ahead) for person in facts.people]
        crossings = (overlap(one, other) for one, other in combinations(boxes, 2))
        return {
            'worst_drift': _at_most(max(drifts)),
            'sum_drift': _at_most(sum(drifts)),
            'worst_motion': _at_most(max(motions)),
            'worst_swerve': _at_most(max(swerves, default=0.0)),
            'worst_growth': _at_most(max(growths)),
            'at_border': _at_border(boxes, self._size),
            'crossing': max(crossings, default=0.0),
        }

    def _compared(self, detections: Sequence[Detection], facts: StateFacts) -> dict[str, float]:
        """Compare a picture with the tracks it has just updated."""
        fits = [
            [overlap(tuple(map(float, d.box)), track.corners) for track in facts.with_box]
            for d in detections
        ]
        best = [max(row, default=0.0) for row in fits]
        strong = [fit for fit, d in zip(best, detections, strict=True) if d.score >= self._high]
        met = [max(column) for column in zip(*fits, strict=True)] or [0.0] * len(facts.with_box)
        return {
            'unexplained': float(sum(fit < _SAME for fit in strong)),
            'missing': float(
                sum(
                    fit < _SAME and track.is_shown
                    for fit, track in zip(met, facts.with_box, strict=True)
                )
            ),
            'worst_fit': max([1.0 - fit for fit in strong if fit >= _SAME], default=0.0),
            'borderline': float(sum(abs(d.score - self._high) < _BORDERLINE for d in detections)),
        }


_NOTHING = dict.fromkeys(GateFeatures._fields, 0.0)


def _shown(people: Sequence[TrackFacts], now_ns: int) -> dict[str, float]:
    """Describe the shown tracks."""
    tracks = [person.track for person in people]
    scores = [track.score for track in tracks]
    seen = [track.updated_ns.get(CAMERA, track.born_ns) for track in tracks]
    # The places of x and y in the covariance (6, 6), read as one row.
    variances = [t.covariance.item(place) for t in tracks for place in (0, 7)]
    return {
        'doubted': float(sum(track.support < _SETTLED_SUPPORT for track in tracks)),
        'youngest': _at_most((now_ns - max(track.born_ns for track in tracks)) / NS_PER_S),
        'lowest_score': min(scores),
        'mean_score': sum(scores) / len(scores),
        'highest_score': max(scores),
        'smallest_height': math.log(2.0 * min(person.moving.half_height for person in people)),
        'position_deviation': _at_most(math.sqrt(max(0.0, *variances))),
        'camera_unseen': _at_most(max((now_ns - min(seen)) / NS_PER_S, 0.0)),
    }


def _at_most(value: float) -> float:
    """Return a number, or the largest there is."""
    return min(value, _LARGEST)


def _at_border(boxes: Sequence[Corners], size: tuple[int, int]) -> float:
    """Return how many touch the border of the picture, of size 0 before the first."""
    width, height = size
    out = sum(x0 < 0.0 or y0 < 0.0 or x1 > width or y1 > height for x0, y0, x1, y1 in boxes)
    return float(out) if width else 0.0


def _age(units: Sequence[_SeenUnit], now_ns: int) -> float:
    """Return how old the newest is, s."""
    newest_ns = max((unit.stamp_ns for unit in units), default=now_ns - round(_LARGEST * NS_PER_S))
    return _at_most(max((now_ns - newest_ns) / NS_PER_S, 0.0))


def _fraction(units: Sequence[_SeenUnit], window_ns: int) -> float:
    """Return the share of a window's units that arrived, by their own distance."""
    if len(units) < 2:
        return float(len(units))
    stamps = [u.stamp_ns for u in units]
    span = max(stamps) - min(stamps)
    return min((len(units) * span / (len(units) - 1)) / window_ns, 1.0)


def _flicker(pictures: Sequence[_SeenUnit]) -> float:
    """Return by how much the number of detections varied lately (standard deviation)."""
    counts = [picture.strong for picture in pictures[:_PICTURES]]
    if len(set(counts)) < 2:
        return 0.0
    mean = sum(counts) / len(counts)
    return math.sqrt(sum((c - mean) ** 2 for c in counts) / len(counts))


def _embedded(slow: Sequence[_SeenUnit], fast: Sequence[_SeenUnit]) -> dict[str, float]:
    """Compare embeddings of the modalities, and each with that of the window's begin."""
    if not slow or not fast or not slow[0].embedding.size or not fast[0].embedding.size:
        return {}
    return {
        'has_embeddings': 1.0,
        'consistency': cosine(slow[0].embedding, fast[0].embedding),
        'slow_change': 1.0 - cosine(slow[-1].embedding, slow[0].embedding),
        'fast_change': 1.0 - cosine(fast[-1].embedding, fast[0].embedding),
    }


def cosine(one: NDArray[np.float32], other: NDArray[np.float32]) -> float:
    """Return the cosine of two vectors; 0 where they have none."""
    if one.shape != other.shape or not one.size:
        return 0.0
    norm = math.sqrt(float(one.dot(one)) * float(other.dot(other)))
    value = float(one.dot(other)) / norm if norm > 0.0 else 0.0
    return value if math.isfinite(value) else 0.0


def _returned(scans: Sequence[_SeenUnit], slow: Sequence[_SeenUnit]) -> dict[str, float]:
    """Return the logarithm of the number of returns, and its change since the slow units."""
    if not scans:
        return {}
    now = math.log1p(scans[0].returns)
    since_ns = slow[0].stamp_ns if slow else 0
    then = next((s for s in scans if s.stamp_ns <= since_ns), scans[0])
    return {'returns': now, 'returns_change': now - math.log1p(then.returns)}
