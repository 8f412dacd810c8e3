"""Typed questions about simulated flights, and flights as if they were seen perfectly.

An object is in view where a picture shows at least half of it, 14 px high or more. What is right
is what is answered from perfect tracks.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from mmedge_ros.core.data_types import NS_PER_S, Decision, FloatArray
from mmedge_ros.geometry.ego_motion import EgoMotion
from mmedge_ros.memory.moment import Motion
from mmedge_ros.memory.query import Phrase
from mmedge_ros.memory.relations import NEAR
from mmedge_ros.memory.views import LEAST_HEIGHT
from mmedge_ros.questions.answering import answer
from mmedge_ros.questions.observations import (
    ObservationLog,
    Observations,
    ObservedDrone,
    ObservedTrack,
)
from mmedge_ros.questions.place_words import Anchor, PlaceLimit, Side
from mmedge_ros.questions.question import Asked, Kind, Measure, Question, Sense
from mmedge_ros.questions.selection import KnownFlight
from mmedge_ros.questions.time_words import Instant, Span
from mmedge_ros.replay.ground_truth import GroundTruth
from mmedge_ros.report.truth_matching import MINIMUM_VISIBILITY

# One of our tracks is of the object that is nearest to it, within this (m), most of the time.
_OF_OBJECT = 2.0
# A distance is right within a tenth, at least within the first (m); places (m), speeds (m/s) and
# headings (deg) are within the others.
_DISTANCE, _SHARE, _PLACE, _SPEED, _HEADING = 1.0, 0.1, 2.0, 0.5, 45.0
_FEWEST_INSTANTS = 20
_LABELS = ('person', 'person', 'car', 'cyclist')


@dataclass(frozen=True)
class TrueQuestion:
    """A typed question whose tracks are true objects, asked of a span (ns), and its answer."""

    question: Question
    right: object
    begin_ns: int
    end_ns: int

    @property
    def names_objects(self) -> bool:
        """Whether the answer is the number of an object, or several."""
        asked = self.question.asked
        is_one_of_two = asked is Asked.PAIR and not self.question.is_yes_or_no
        return asked in (Asked.EXTREME, Asked.LIST) or is_one_of_two

    def of_tracks(self, number: Callable[[int], int]) -> Question:
        """Return the question about tracks instead of objects."""

        def renumbered(anchor: Anchor) -> Anchor:
            return anchor if anchor.track is None else Anchor(number(anchor.track))

        places = tuple(
            replace(place, anchor=renumbered(place.anchor)) for place in self.question.places
        )
        tracks = tuple(map(number, self.question.tracks))
        return replace(self.question, tracks=tracks, places=places)

    def is_right(self, value: object, owners: Mapping[int, int]) -> bool:
        """Whether an answer is right.

        :param owners: the objects of tracks by their numbers
        """
        right = self.right
        if self.names_objects:
            numbers = value if isinstance(value, tuple) else (value,)
            wanted = right if isinstance(right, tuple) else (right,)
            return {owners.get(number) for number in numbers} == set(wanted)
        if isinstance(right, tuple):
            off = np.subtract(value, right) if isinstance(value, tuple) else (np.inf, 0.0)
            return bool(np.hypot(*off) <= _PLACE)
        if not isinstance(right, float) or not isinstance(value, float):
            return value == right
        off = value - right
        if self.question.asked is Asked.HEADING:
            off = (off + 180.0) % 360.0 - 180.0
        within = max(_DISTANCE, _SHARE * right)
        return abs(off) <= {Asked.HEADING: _HEADING, Asked.SPEED: _SPEED}.get(
            self.question.asked, within
        )


def true_observations(truth: GroundTruth, stamps_ns: NDArray[np.int64]) -> Observations:
    """Return what was in view at instants, as if it had been tracked without a fault.

    The camera counts as blind where the truth is not known.
    """
    stamps = np.unique(stamps_ns)
    frames = [truth.frame_at(int(stamp_ns)) for stamp_ns in stamps]
    rows: dict[int, list[tuple[int, str, FloatArray, FloatArray]]] = {}
    for stamp_ns, frame in zip(stamps, frames, strict=True):
        if frame is None:
            continue
        with np.errstate(invalid='ignore'):
            in_view = (frame.visibility >= MINIMUM_VISIBILITY) & (frame.heights >= LEAST_HEIGHT)
        for place in np.flatnonzero(in_view):
            where = frame.positions[place], frame.velocities[place]
            seen = (int(stamp_ns), str(frame.labels[place]), *where)
            rows.setdefault(int(frame.ids[place]), []).append(seen)
    tracks = []
    for number, of in rows.items():
        stamps_of, labels, positions, velocities = zip(*of, strict=True)
        exact, seen_then = np.zeros(len(of)), np.ones(len(of), bool)
        moved = np.array(stamps_of, np.int64), np.array(positions), np.array(velocities)
        tracks.append(ObservedTrack(number, labels[0], *moved, exact, seen_then))
    known = np.array([frame is not None for frame in frames])
    drone = _drone_path(truth.ego, map(int, stamps))
    return Observations(tuple(tracks), stamps, known, truth.frame_id, drone)


def _drone_path(ego: EgoMotion | None, stamps_ns: Iterable[int]) -> ObservedDrone | None:
    """Return where the drone was at instants; None where nothing is known of its way."""
    log = ObservationLog()
    for stamp_ns in sorted(set(stamps_ns)):
        log.add(
            Decision(stamp_ns, stamp_ns, '', (), {}), None if ego is None else ego.at(stamp_ns)
        )
    return log.observations().drone


def owners_of(ours: Observations, true: Observations) -> dict[int, int]:
    """Return the object that each of our tracks is of most of the time; others are left out."""
    owners = {}
    for track in ours.tracks:
        votes: dict[int, int] = {}
        for row, stamp_ns in enumerate(track.stamps_ns):
            gaps = {}
            for one in true.tracks:
                place = int(np.searchsorted(one.stamps_ns, stamp_ns))
                if place < len(one.stamps_ns) and one.stamps_ns[place] == stamp_ns:
                    gap = one.positions[place, :2] - track.positions[row, :2]
                    gaps[one.id] = float(np.hypot(*gap))
            best = min(gaps, key=lambda number: gaps[number], default=None)
            if best is not None and gaps[best] <= _OF_OBJECT:
                votes[best] = votes.get(best, 0) + 1
        if votes:
            owners[track.id] = max(votes, key=lambda number: votes[number])
    return owners


def known_when(ours: Observations, owners: Mapping[int, int]) -> dict[int, NDArray[np.int64]]:
    """Return when (ns) there was a track of ours of each object: it has a number then."""
    stamps: dict[int, list[NDArray[np.int64]]] = {}
    for track in ours.tracks:
        if track.id in owners:
            stamps.setdefault(owners[track.id], []).append(track.stamps_ns)
    return {number: np.unique(np.concatenate(of)) for number, of in stamps.items()}


def track_of(ours: Observations, owners: Mapping[int, int], asked: TrueQuestion, of: int) -> int:
    """Return the number of our track of an object, the one seen longest in the span that is asked.

    :raises ValueError: if there is none
    """

    def seen(track: ObservedTrack) -> tuple[int, int, int]:
        stamps = track.stamps_ns
        within = int(np.count_nonzero((stamps >= asked.begin_ns) & (stamps <= asked.end_ns)))
        return within, len(stamps), track.id

    return max(seen(track) for track in ours.tracks if owners.get(track.id) == of)[2]


def true_questions(
    true: Observations, known: Mapping[int, NDArray[np.int64]], name: str, each: int
) -> list[TrueQuestion]:
    """Return so many typed questions of each kind about a flight, always the same ones.

    :param known: when (ns) objects may be asked for by a number
    :param name: of the flight
    """
    if np.count_nonzero(true.camera) < _FEWEST_INSTANTS or true.drone is None:
        return []
    maker = _Maker(true, known, np.random.default_rng(zlib.crc32(name.encode())))
    flight = KnownFlight(true, is_exact=True)
    made: list[TrueQuestion] = []
    for forms in maker.forms().values():
        # Some forms need what a flight may lack, such as two objects at once.
        drawn = (forms[number % len(forms)]() for number in range(8 * each))
        asked = [one for one in drawn if one is not None][:each]
        made += [
            TrueQuestion(question, answer(question, flight).value, begin_ns, end_ns)
            for question, begin_ns, end_ns in asked
        ]
    return made


# A question, and the span (ns) that it asks of.
_Draft: TypeAlias = tuple[Question, int, int]


class _When(NamedTuple):
    """The instants (rows, the last one included) that are asked for, and how."""

    first: int
    last: int
    span: Span

    @property
    def rows(self) -> slice:
        return slice(self.first, self.last + 1)


_Form: TypeAlias = Callable[[], _Draft | None]


class _Maker:
    """Makes questions about one flight; arrays are objects by instants."""

    def __init__(
        self,
        true: Observations,
        known: Mapping[int, NDArray[np.int64]],
        random: np.random.Generator,
    ) -> None:
        self._true, self._known, self._random = true, known, random
        self._stamps = true.stamps_ns
        self._ids = np.array([track.id for track in true.tracks], np.int64)
        self._labels = np.array([track.label for track in true.tracks], np.str_)
        shape = (len(self._ids), len(self._stamps), 2)
        # Where objects were, NaN where they were not in view.
        self._places = np.full(shape, np.nan)
        for number, track in enumerate(true.tracks):
            rows = np.searchsorted(self._stamps, track.stamps_ns)
            self._places[number, rows] = track.positions[:, :2]
        drone = true.drone
        assert drone is not None
        rows = np.searchsorted(drone.stamps_ns, self._stamps).clip(0, len(drone.stamps_ns) - 1)
        self._there = np.isfinite(self._places[:, :, 0])
        gaps = self._places - drone.positions[rows, :2]
        self._away = np.hypot(gaps[:, :, 0], gaps[:, :, 1])

    def forms(self) -> dict[Kind, tuple[_Form, ...]]:
        """Return what makes questions of each kind, in turn."""
        span, at = self._span, self._instant
        count, exists, objects = Asked.COUNT, Asked.EXISTS, Asked.LIST
        return {
            Kind.COUNT: (
                lambda: self._of_objects(count, span(), _phrase(self._label())),
                lambda: self._of_objects(count, at(), _phrase(self._label())),
                lambda: self._near_drone(count, span()),
                lambda: self._of_objects(count, at(), _phrase(motion=Motion.MOVING)),
            ),
            Kind.EXISTENCE: (
                lambda: self._near_drone(exists, span()),
                lambda: self._of_objects(exists, at(), _phrase(self._label())),
                self._beside_a_car,
                self._on_a_side,
            ),
            Kind.OBJECT: (
                self._closest,
                self._near_track,
                lambda: self._of_one(Asked.LABEL),
                lambda: self._near_drone(objects, at()),
            ),
            Kind.STATUS: (
                lambda: self._of_one(Asked.MOTION),
                lambda: self._of_one(Asked.HEADING),
                lambda: self._of_one(Asked.DISTANCE),
                lambda: self._of_one(Asked.SPEED),
                lambda: self._of_one(Asked.PLACE),
            ),
            Kind.COMPARISON: (
                lambda: self._of_two(Measure.DISTANCE),
                self._came_closer,
                lambda: self._of_two(Measure.SPEED),
                self._more,
                self._at_least,
            ),
        }

    # Of objects.

    def _near_drone(self, asked: Asked, when: _When) -> _Draft:
        away = self._away[self._labels == 'person', when.rows]
        radius = self._radius(away, *((1.0, 2.0) if asked is Asked.LIST else (0.6, 1.6)))
        return self._of_objects(asked, when, _phrase(), PlaceLimit(most=radius))

    def _beside_a_car(self) -> _Draft | None:
        when = self._span()
        people, cars = (self._places[self._labels == of, when.rows] for of in ('person', 'car'))
        if not len(people) or not len(cars):
            return None
        radius = self._radius(np.linalg.norm(people[:, None] - cars[None], axis=-1))
        place = PlaceLimit(Anchor(phrase=_phrase('car')), most=radius)
        return self._of_objects(Asked.EXISTS, when, _phrase(), place)

    def _on_a_side(self) -> _Draft:
        when = self._instant()
        side = Side.LEFT if self._random.random() < 0.5 else Side.RIGHT
        return self._of_objects(Asked.EXISTS, when, _phrase(), PlaceLimit(side=side))

    def _near_track(self) -> _Draft | None:
        when = self._instant()
        if (named := self._named(when, 1)) is None:
            return None
        place = PlaceLimit(Anchor(int(self._ids[named[0]])), most=NEAR)
        return self._of_objects(Asked.LIST, when, Phrase(), place)

    def _closest(self) -> _Draft | None:
        when = self._span()
        if not self._there[self._labels == 'person', when.rows].any():
            return None
        facts: dict[str, Any] = {'phrases': (_phrase(),), 'is_closest': True}
        return self._made(Kind.OBJECT, Asked.EXTREME, when, **facts)

    def _more(self) -> _Draft:
        when = self._span()
        labels = ('person', 'car') if self._random.random() < 0.5 else ('car', 'person')
        one, other = (
            Question(Kind.COUNT, Asked.COUNT, phrases=(_phrase(of),), span=when.span, is_past=True)
            for of in labels
        )
        facts: dict[str, Any] = {'versus': other, 'is_yes_or_no': True}
        facts['phrases'] = one.phrases
        return self._made(Kind.COMPARISON, Asked.COUNTS, when, **facts)

    def _at_least(self) -> _Draft:
        when = self._instant()
        count = int((self._there & (self._labels == 'person')[:, None])[:, when.first].sum())
        number = max(1, count + int(self._random.integers(-1, 3)))
        return self._made(
            *(Kind.COMPARISON, Asked.COUNTS, when),
            phrases=(_phrase(),),
            number=number,
            sense=Sense.AT_LEAST,
            is_yes_or_no=True,
        )

    def _of_objects(
        self, asked: Asked, when: _When, phrase: Phrase, place: PlaceLimit | None = None
    ) -> _Draft:
        """Ask of the objects that fit: how many, whether there is one, or which."""
        kind = {Asked.COUNT: Kind.COUNT, Asked.EXISTS: Kind.EXISTENCE}.get(asked, Kind.OBJECT)
        places = () if place is None else (place,)
        return self._made(kind, asked, when, phrases=(phrase,), places=places)

    # Of tracks that are named.

    def _of_one(self, asked: Asked) -> _Draft | None:
        when = self._instant()
        if (named := self._named(when, 1)) is None:
            return None
        facts: dict[str, Any] = {}
        if asked is Asked.MOTION:
            is_still = self._random.random() < 0.5
            facts['motions'] = (Motion.STILL if is_still else Motion.MOVING,)
        kind = Kind.OBJECT if asked is Asked.LABEL else Kind.STATUS
        return self._made(kind, asked, when, named, **facts)

    def _of_two(self, measure: Measure) -> _Draft | None:
        when = self._instant()
        if (named := self._named(when, 2)) is None:
            return None
        is_largest = measure is Measure.SPEED
        facts = {'measure': measure, 'is_largest': is_largest, 'is_yes_or_no': True}
        return self._made(Kind.COMPARISON, Asked.PAIR, when, named, **facts)

    def _came_closer(self) -> _Draft | None:
        if (named := self._named(self._instant(), 2)) is None:
            return None
        whole = _When(0, len(self._stamps) - 1, Span())
        return self._made(Kind.COMPARISON, Asked.PAIR, whole, named, is_closest=True)

    # What questions are made of.

    def _made(
        self, kind: Kind, asked: Asked, when: _When, named: tuple[int, ...] = (), **facts: Any
    ) -> _Draft:
        tracks = tuple(int(self._ids[row]) for row in named)
        question = Question(kind, asked, tracks=tracks, span=when.span, is_past=True, **facts)
        begin_ns, end_ns = (int(self._stamps[row]) for row in (when.first, when.last))
        return question, begin_ns, end_ns

    def _label(self) -> str:
        return str(self._random.choice(_LABELS))

    def _seconds(self, stamp_ns: float) -> Instant:
        seconds = (stamp_ns - float(self._true.begin_ns)) / NS_PER_S
        return Instant(f'{seconds:.3f} s', seconds)

    def _instant(self) -> _When:
        at = int(self._random.choice(np.flatnonzero(self._true.camera)))
        instant = self._seconds(float(self._stamps[at]))
        return _When(at, at, Span(instant, instant, said=f'at {instant.said}'))

    def _span(self) -> _When:
        """Draw a span of a second or more, whose ends lie between instants."""
        known = np.flatnonzero(self._true.camera)
        begin, count = int(known[0]), int(known[-1] - known[0] + 1)
        length = int(self._random.integers(_FEWEST_INSTANTS // 2, count))
        first = begin + int(self._random.integers(count - length))
        a, b = (
            self._seconds(float(self._stamps[place] + self._stamps[place + 1]) / 2.0)
            for place in (first, first + length - 1)
        )
        return _When(first + 1, first + length - 1, Span(a, b, said=f'{a.said} to {b.said}'))

    def _radius(self, away: FloatArray, low: float = 0.6, high: float = 1.6) -> float:
        """Draw a radius such that about as often something is in it as not."""
        known = away[np.isfinite(away)]
        nearest = float(known.min()) if len(known) else 10.0
        return max(1.0, round(nearest * float(self._random.uniform(low, high)), 1))

    def _named(self, when: _When, count: int) -> tuple[int, ...] | None:
        """Draw objects that were in view, and that can be asked for by a number."""
        stamp = self._stamps[when.first]
        rows = [
            int(row)
            for row in np.flatnonzero(self._there[:, when.first])
            if stamp in self._known.get(int(self._ids[row]), ())
        ]
        if len(rows) < count:
            return None
        return tuple(int(row) for row in self._random.choice(rows, count, replace=False))


def _phrase(label: str = 'person', motion: Motion | None = None) -> Phrase:
    return Phrase((label,), motions=() if motion is None else (motion,), words=(label,))
