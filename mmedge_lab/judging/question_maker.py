"""Makes questions about simulated flights, with the exact answers that follow from the truth."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from mmedge_lab.judging.question_truth import Expected, Sort, TrueQuestion
from mmedge_ros.data_types import NS_PER_S, FloatArray
from mmedge_ros.memory.moment import STILL_BELOW
from mmedge_ros.memory.relations import NEAR
from mmedge_ros.questions.observations import DronePath, Observations
from mmedge_ros.questions.question import Kind

# A distance is right within a tenth, at least within the first (m); places (m), speeds (m/s) and
# headings (deg) are within the others.
_DISTANCE, _SHARE, _PLACE, _SPEED, _HEADING = 1.0, 0.1, 2.0, 0.5, 45.0
_FEWEST_INSTANTS = 20
_LABELS = {'person': 'people', 'car': 'cars', 'cyclist': 'cyclists', 'dog': 'dogs'}


def true_questions(
    true: Observations, known: Mapping[int, NDArray[np.int64]], name: str, each: int
) -> list[TrueQuestion]:
    """Return so many questions of each kind about a flight, always the same ones.

    :param known: when (ns) objects may be asked for by a number
    :param name: of the flight
    """
    if np.count_nonzero(true.camera) < _FEWEST_INSTANTS or true.drone is None:
        return []
    makers = _Maker(true, known, np.random.default_rng(zlib.crc32(name.encode())))
    made: list[TrueQuestion] = []
    for kind, forms in makers.forms().items():
        count = 0
        # Some forms need what a flight may lack, such as two objects at once.
        for number in range(8 * each):
            question = forms[number % len(forms)](kind)
            if question is not None and count < each:
                made.append(question)
                count += 1
    return made


_Form = Callable[[Kind], TrueQuestion | None]


class _Maker:
    """Makes questions about one flight."""

    def __init__(
        self,
        true: Observations,
        known: Mapping[int, NDArray[np.int64]],
        random: np.random.Generator,
    ) -> None:
        self._true, self._known, self._random = true, known, random
        stamps, ids = true.stamps_ns, [track.id for track in true.tracks]
        self._stamps = stamps
        self._ids = np.array(ids, np.int64)
        self._labels = np.array([track.label for track in true.tracks], np.str_)
        shape = (len(ids), len(stamps), 2)
        # Where objects were and how they moved, NaN where they were not in view.
        self._places, self._ways = np.full(shape, np.nan), np.full(shape, np.nan)
        for number, track in enumerate(true.tracks):
            rows = np.searchsorted(stamps, track.stamps_ns)
            self._places[number, rows] = track.positions[:, :2]
            self._ways[number, rows] = track.velocities[:, :2]
        assert true.drone is not None
        self._drone = _drone_at(true.drone, stamps)
        self._there = np.isfinite(self._places[:, :, 0])
        self._speeds = np.hypot(self._ways[:, :, 0], self._ways[:, :, 1])
        gaps = self._places - self._drone[None, :, :2]
        self._away = np.hypot(gaps[:, :, 0], gaps[:, :, 1])

    def forms(self) -> dict[Kind, tuple[_Form, ...]]:
        """Return what makes questions of each kind, in turn."""
        return {
            Kind.COUNT: (self._count_span, self._count_at, self._count_near, self._count_moving),
            Kind.EXISTENCE: (
                self._exists_near,
                self._exists_label,
                self._exists_beside,
                self._exists_side,
            ),
            Kind.OBJECT: (self._closest, self._near_track, self._label, self._within),
            Kind.STATUS: (self._motion, self._heading, self._distance, self._speed, self._place),
            Kind.COMPARISON: (
                self._closer_at,
                self._came_closer,
                self._faster,
                self._more,
                self._at_least,
            ),
        }

    # Counts.

    def _count_span(self, kind: Kind) -> TrueQuestion:
        label, (first, last, words) = self._label_word(), self._span()
        count = int((self._there & self._is(label))[:, first:last].any(axis=1).sum())
        text = f'how many {_LABELS[label]} were seen {words}?'
        return self._made(kind, 'span', text, Expected(Sort.SAME, count), first, last - 1)

    def _count_at(self, kind: Kind) -> TrueQuestion:
        label, (at, words) = self._label_word(), self._instant()
        count = int((self._there & self._is(label))[:, at].sum())
        text = f'how many {_LABELS[label]} were there {words}?'
        return self._made(kind, 'instant', text, Expected(Sort.SAME, count), at, at)

    def _count_near(self, kind: Kind) -> TrueQuestion:
        first, last, words = self._span()
        away = self._of(self._away, 'person')[:, first:last]
        radius = self._radius(away)
        count = int((away <= radius).any(axis=1).sum())
        text = f'how many people were within {radius:g} m of the drone {words}?'
        return self._made(kind, 'near', text, Expected(Sort.SAME, count), first, last - 1)

    def _count_moving(self, kind: Kind) -> TrueQuestion:
        at, words = self._instant()
        speeds = self._of(self._speeds, 'person')[:, at]
        count = int((speeds >= STILL_BELOW).sum())
        text = f'how many people were moving {words}?'
        return self._made(kind, 'moving', text, Expected(Sort.SAME, count), at, at)

    # Existence.

    def _exists_near(self, kind: Kind) -> TrueQuestion:
        first, last, words = self._span()
        away = self._of(self._away, 'person')[:, first:last]
        radius = self._radius(away)
        found = bool((away <= radius).any())
        text = f'was anybody within {radius:g} m of the drone {words}?'
        return self._made(kind, 'near', text, Expected(Sort.SAME, found), first, last - 1)

    def _exists_label(self, kind: Kind) -> TrueQuestion:
        label, (at, words) = self._label_word(), self._instant()
        found = bool((self._there & self._is(label))[:, at].any())
        text = f'was there a {label} {words}?'
        return self._made(kind, 'label', text, Expected(Sort.SAME, found), at, at)

    def _exists_beside(self, kind: Kind) -> TrueQuestion | None:
        first, last, words = self._span()
        people = self._places[self._labels == 'person', first:last]
        cars = self._places[self._labels == 'car', first:last]
        if not len(people) or not len(cars):
            return None
        gaps = people[:, None] - cars[None]
        apart = np.hypot(gaps[..., 0], gaps[..., 1])
        radius = self._radius(apart)
        found = bool((apart <= radius).any())
        text = f'was anybody {words} within {radius:g} m of a car?'
        return self._made(kind, 'beside', text, Expected(Sort.SAME, found), first, last - 1)

    def _exists_side(self, kind: Kind) -> TrueQuestion:
        at, words = self._instant()
        gaps = self._places[:, at] - self._drone[at, :2]
        heading = self._drone[at, 2]
        left = np.cos(heading) * gaps[:, 1] - np.sin(heading) * gaps[:, 0]
        side = 'left' if self._random.random() < 0.5 else 'right'
        on_side = (left > 0.0) if side == 'left' else (left < 0.0)
        found = bool((on_side & (self._labels == 'person')).any())
        text = f'was anybody on the {side} of the drone {words}?'
        return self._made(kind, 'side', text, Expected(Sort.SAME, found), at, at)

    # Objects.

    def _closest(self, kind: Kind) -> TrueQuestion | None:
        first, last, words = self._span()
        away = np.where(self._is('person'), self._away, np.nan)[:, first:last]
        if not np.isfinite(away).any():
            return None
        best = int(self._ids[np.argmin(np.nan_to_num(away, nan=np.inf).min(axis=1))])
        text = f'who came closest to the drone {words}?'
        return self._made(kind, 'closest', text, Expected(Sort.OBJECT, best), first, last - 1)

    def _near_track(self, kind: Kind) -> TrueQuestion | None:
        at, words = self._instant()
        chosen = self._named(at, 1)
        if chosen is None:
            return None
        gaps = self._places[:, at] - self._places[chosen[0], at]
        near = np.hypot(gaps[:, 0], gaps[:, 1]) <= NEAR
        near[chosen[0]] = False
        value = [int(n) for n in self._ids[near]]
        text = f'what was near track {{}} {words}?'
        expected = Expected(Sort.OBJECTS, value)
        return self._made(kind, 'near', text, expected, at, at, chosen)

    def _label(self, kind: Kind) -> TrueQuestion | None:
        at, _ = self._instant()
        chosen = self._named(at, 1)
        if chosen is None:
            return None
        expected = Expected(Sort.SAME, str(self._labels[chosen[0]]))
        return self._made(kind, 'label', 'what is track {}?', expected, at, at, chosen)

    def _within(self, kind: Kind) -> TrueQuestion:
        at, words = self._instant()
        away = np.where(self._is('person')[:, 0], self._away[:, at], np.nan)
        radius = self._radius(away, 1.0, 2.0)
        value = [int(n) for n in self._ids[away <= radius]]
        text = f'which people were within {radius:g} m of the drone {words}?'
        return self._made(kind, 'within', text, Expected(Sort.OBJECTS, value), at, at)

    # Of one track.

    def _motion(self, kind: Kind) -> TrueQuestion | None:
        at, words = self._instant()
        chosen = self._named(at, 1)
        if chosen is None:
            return None
        is_still = self._random.random() < 0.5
        found = bool((self._speeds[chosen[0], at] < STILL_BELOW) == is_still)
        text = f'was track {{}} {"standing" if is_still else "moving"} {words}?'
        return self._made(kind, 'motion', text, Expected(Sort.SAME, found), at, at, chosen)

    def _heading(self, kind: Kind) -> TrueQuestion | None:
        at, words = self._instant()
        chosen = self._named(at, 1)
        if chosen is None:
            return None
        x, y = self._ways[chosen[0], at]
        angle = float(np.degrees(np.arctan2(y, x)))
        value = 'still' if np.hypot(x, y) < STILL_BELOW else angle
        text = f'which way was track {{}} going {words}?'
        expected = Expected(Sort.ANGLE, value, _HEADING)
        return self._made(kind, 'heading', text, expected, at, at, chosen)

    def _distance(self, kind: Kind) -> TrueQuestion | None:
        at, words = self._instant()
        chosen = self._named(at, 1)
        if chosen is None:
            return None
        value = float(self._away[chosen[0], at])
        expected = Expected(Sort.NUMBER, value, max(_DISTANCE, _SHARE * value))
        text = f'how far was track {{}} from the drone {words}?'
        return self._made(kind, 'distance', text, expected, at, at, chosen)

    def _speed(self, kind: Kind) -> TrueQuestion | None:
        at, words = self._instant()
        chosen = self._named(at, 1)
        if chosen is None:
            return None
        expected = Expected(Sort.NUMBER, float(self._speeds[chosen[0], at]), _SPEED)
        text = f'how fast was track {{}} {words}?'
        return self._made(kind, 'speed', text, expected, at, at, chosen)

    def _place(self, kind: Kind) -> TrueQuestion | None:
        at, words = self._instant()
        chosen = self._named(at, 1)
        if chosen is None:
            return None
        expected = Expected(Sort.PLACE, self._places[chosen[0], at].tolist(), _PLACE)
        text = f'where was track {{}} {words}?'
        return self._made(kind, 'place', text, expected, at, at, chosen)

    # Comparisons.

    def _closer_at(self, kind: Kind) -> TrueQuestion | None:
        at, words = self._instant()
        pair = self._named(at, 2)
        if pair is None:
            return None
        found = bool(self._away[pair[0], at] < self._away[pair[1], at])
        text = f'was track {{}} closer to the drone than track {{}} {words}?'
        return self._made(kind, 'closer', text, Expected(Sort.SAME, found), at, at, pair)

    def _came_closer(self, kind: Kind) -> TrueQuestion | None:
        at, _ = self._instant()
        pair = self._named(at, 2)
        if pair is None:
            return None
        best = pair[int(np.argmin([np.nanmin(self._away[row]) for row in pair]))]
        expected = Expected(Sort.OBJECT, int(self._ids[best]))
        text = 'who came closer to the drone, track {} or track {}?'
        return self._made(kind, 'came closer', text, expected, 0, len(self._stamps) - 1, pair)

    def _faster(self, kind: Kind) -> TrueQuestion | None:
        at, words = self._instant()
        pair = self._named(at, 2)
        if pair is None:
            return None
        found = bool(self._speeds[pair[0], at] > self._speeds[pair[1], at])
        text = f'was track {{}} faster than track {{}} {words}?'
        return self._made(kind, 'faster', text, Expected(Sort.SAME, found), at, at, pair)

    def _more(self, kind: Kind) -> TrueQuestion:
        first, last, words = self._span()
        counts = [
            int((self._there & self._is(label))[:, first:last].any(axis=1).sum())
            for label in ('person', 'car')
        ]
        is_first = self._random.random() < 0.5
        ours, theirs = counts if is_first else counts[::-1]
        named = ('people', 'cars') if is_first else ('cars', 'people')
        text = f'were there more {named[0]} than {named[1]} {words}?'
        expected = Expected(Sort.SAME, ours > theirs)
        return self._made(kind, 'more', text, expected, first, last - 1)

    def _at_least(self, kind: Kind) -> TrueQuestion:
        at, words = self._instant()
        count = int((self._there & self._is('person'))[:, at].sum())
        number = max(1, count + int(self._random.integers(-1, 3)))
        text = f'were there at least {number} people {words}?'
        expected = Expected(Sort.SAME, count >= number)
        return self._made(kind, 'at least', text, expected, at, at)

    # What questions are made of.

    def _made(
        self,
        kind: Kind,
        form: str,
        text: str,
        expected: Expected,
        first: int,
        last: int,
        rows: Sequence[int] = (),
    ) -> TrueQuestion:
        objects = tuple(int(self._ids[row]) for row in rows)
        span = int(self._stamps[first]), int(self._stamps[last])
        return TrueQuestion(kind, form, text, expected, *span, objects)

    def _is(self, label: str) -> NDArray[np.bool_]:
        return np.asarray(self._labels == label)[:, None]

    def _of(self, values: FloatArray, label: str) -> FloatArray:
        chosen: FloatArray = values[self._labels == label]
        return chosen

    def _label_word(self) -> str:
        return str(self._random.choice(['person', 'person', 'car', 'cyclist']))

    def _since(self, stamp_ns: float) -> str:
        return f'{(stamp_ns - float(self._true.begin_ns)) / NS_PER_S:.3f}'

    def _instant(self) -> tuple[int, str]:
        at = int(self._random.choice(np.flatnonzero(self._true.camera)))
        return at, f'at {self._since(float(self._stamps[at]))} s'

    def _span(self) -> tuple[int, int, str]:
        """Draw a span of a second or more, whose ends lie between instants."""
        known = np.flatnonzero(self._true.camera)
        begin, count = int(known[0]), int(known[-1] - known[0] + 1)
        length = int(self._random.integers(_FEWEST_INSTANTS // 2, count))
        first = begin + int(self._random.integers(count - length))
        ends = (
            (float(self._stamps[place]) + float(self._stamps[place + 1])) / 2.0
            for place in (first, first + length - 1)
        )
        return first + 1, first + length, 'between {} and {} s'.format(*map(self._since, ends))

    def _radius(self, away: FloatArray, low: float = 0.6, high: float = 1.6) -> float:
        """Draw a radius such that about as often something is in it as not."""
        known = away[np.isfinite(away)]
        nearest = float(known.min()) if len(known) else 10.0
        return max(1.0, round(nearest * float(self._random.uniform(low, high)), 1))

    def _named(self, at: int, count: int) -> tuple[int, ...] | None:
        """Draw objects that were in view, and that can be asked for by a number."""
        rows = [
            int(row)
            for row in np.flatnonzero(self._there[:, at])
            if self._stamps[at] in self._known.get(int(self._ids[row]), ())
        ]
        if len(rows) < count:
            return None
        return tuple(int(row) for row in self._random.choice(rows, count, replace=False))


def _drone_at(drone: DronePath, stamps_ns: NDArray[np.int64]) -> FloatArray:
    """Return x, y (m) and heading (rad) of the drone (N, 3) at instants of its path."""
    places = np.clip(np.searchsorted(drone.stamps_ns, stamps_ns), 0, len(drone.stamps_ns) - 1)
    return np.column_stack((drone.positions[places, :2], drone.headings[places]))
