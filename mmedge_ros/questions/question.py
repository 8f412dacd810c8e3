"""A question as it was understood."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from mmedge_ros.memory.moment import Motion
from mmedge_ros.memory.query import Phrase
from mmedge_ros.questions.place_words import Anchor, PlaceLimit
from mmedge_ros.questions.time_words import Span


class Kind(Enum):
    """The kinds of questions, those of NuScenes-QA."""

    COUNT = 'count'
    EXISTENCE = 'existence'
    OBJECT = 'object'
    STATUS = 'status'
    COMPARISON = 'comparison'


class Asked(Enum):
    """What a question asks about its objects."""

    COUNT = 'count'
    EXISTS = 'exists'
    # Of objects: all of them, or the one that is most or least so.
    LIST = 'list'
    EXTREME = 'extreme'
    LABEL = 'label'
    # Of one track.
    HEADING = 'heading'
    SPEED = 'speed'
    PLACE = 'place'
    DISTANCE = 'distance'
    MOTION = 'motion'
    DURATION = 'duration'
    FIRST_SEEN = 'first seen'
    LAST_SEEN = 'last seen'
    # Of two.
    PAIR = 'pair'
    COUNTS = 'counts'


class Measure(Enum):
    """What tracks are compared by."""

    DISTANCE = 'distance'
    SPEED = 'speed'
    FIRST_SEEN = 'first seen'


class Sense(Enum):
    """How a question compares a first number with a second one."""

    MORE = 'more'
    FEWER = 'fewer'
    AT_LEAST = 'at least'
    AT_MOST = 'at most'
    EQUAL = 'as many'


@dataclass(frozen=True)
class Question:
    """What was understood.

    ``phrases`` are the objects that are meant, any of them; none where all are. ``versus`` asks
    for what they are compared with, or ``number`` is it. ``tracks`` are those named, in the order
    they were; ``called`` holds pairs of a track and what it was called. ``places`` hold at once.
    ``measure`` is taken from ``anchor``; ``is_largest`` asks for the larger one. ``is_yes_or_no``
    asks whether the first of two is it. ``is_past`` means the whole span, else its end, or the
    newest that is known where no span was named. ``is_closest`` means the shortest distance in it.
    ``taken_as`` are words that were taken for others.
    """

    kind: Kind
    asked: Asked
    text: str = ''
    phrases: tuple[Phrase, ...] = ()
    versus: Question | None = None
    number: int | None = None
    sense: Sense = Sense.MORE
    tracks: tuple[int, ...] = ()
    called: tuple[tuple[int, str], ...] = ()
    span: Span = field(default_factory=Span)
    places: tuple[PlaceLimit, ...] = ()
    motions: tuple[Motion, ...] = ()
    measure: Measure = Measure.DISTANCE
    anchor: Anchor = field(default_factory=Anchor)
    is_largest: bool = False
    is_yes_or_no: bool = False
    is_past: bool = False
    is_closest: bool = False
    taken_as: tuple[tuple[str, str], ...] = ()
