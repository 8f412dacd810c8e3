"""Queries: words, examples, and filters that views must pass before any is rated.

A small deterministic parser reads the words. It knows labels, colours of parts, motion, light,
phases of flight and three relations; it names the words that it does not know.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any, NamedTuple

import numpy as np

from mmedge_ros.memory.moment import FlightPhase, Light, Motion, Spot, Vectors

COLOURS = ('black', 'grey', 'white', 'red', 'brown', 'yellow', 'green', 'blue')
# Parts with a colour; '' is the whole object. The others are there or not.
PARTS = ('top', 'bottom', 'cap', 'paint', '')
YES, NO = 'yes', 'no'
LONGEST_QUERY = 500


class RelationKind(Enum):
    """How one object stands to another."""

    NEAR = 'near'
    LEFT_OF = 'left of'
    RIGHT_OF = 'right of'


class Attribute(NamedTuple):
    """What an object looks like: ``part`` of `PARTS` in a colour, or `YES` or `NO` of a thing."""

    part: str
    value: str


@dataclass(frozen=True)
class Phrase:
    """One object in words. ``words`` are all that say something, in order, for a text encoder."""

    labels: tuple[str, ...] = ()
    attributes: tuple[Attribute, ...] = ()
    motions: tuple[Motion, ...] = ()
    words: tuple[str, ...] = ()


class Relation(NamedTuple):
    """The subject stands so to another object."""

    kind: RelationKind
    other: Phrase


@dataclass(frozen=True)
class ParsedQuery:
    """What was understood of a text.

    ``unknown`` are the words outside the vocabulary; a text encoder may know them all the same.
    ``taken_as`` says which words were taken for which others, as ``('van', 'car')``.
    """

    text: str = ''
    subject: Phrase = Phrase()
    relations: tuple[Relation, ...] = ()
    lights: tuple[Light, ...] = ()
    phases: tuple[FlightPhase, ...] = ()
    unknown: tuple[str, ...] = ()
    taken_as: tuple[tuple[str, str], ...] = ()

    @property
    def is_understood(self) -> bool:
        """Whether any word says something."""
        subject = self.subject
        said = (subject.labels, subject.attributes, subject.motions)
        return any((*said, self.relations, self.lights, self.phases))

    def left_to_text(self) -> ParsedQuery:
        """Return the query for a text encoder: no word that it is given is unknown."""
        phrases = (self.subject, *(relation.other for relation in self.relations))
        given = {word for phrase in phrases for word in phrase.words}
        return replace(self, unknown=tuple(word for word in self.unknown if word not in given))

    def of(self, phrase: Phrase) -> ParsedQuery:
        """Return the query for another object alone, as a scorer takes it."""
        return ParsedQuery(' '.join(phrase.words), phrase)


@dataclass(frozen=True)
class Filters:
    """What views must be; all of it holds at once, and what is empty is not asked for.

    ``between_ns``: first and last instant; ``offsets_ns``: the same as counted from the begin of
    each recording. ``centre`` and ``radius`` (m) are meant over ground. What is not known of a
    view passes no filter.
    """

    between_ns: tuple[int, int] | None = None
    offsets_ns: tuple[int, int] | None = None
    centre: Spot | None = None
    radius: float = 0.0
    labels: tuple[str, ...] = ()
    lights: tuple[Light, ...] = ()
    phases: tuple[FlightPhase, ...] = ()
    motions: tuple[Motion, ...] = ()


def _no_examples() -> Vectors:
    return np.zeros((0, 0), np.float32)


@dataclass(frozen=True, eq=False)
class MemoryQuery:
    """A whole query: words, vectors (E, D) of one object as examples, filters."""

    parsed: ParsedQuery = ParsedQuery()
    examples: Vectors = field(default_factory=_no_examples)
    filters: Filters = Filters()

    @property
    def all_filters(self) -> Filters:
        """The filters, and what the words ask for beside them."""
        given, parsed = self.filters, self.parsed
        return replace(
            given,
            labels=given.labels or parsed.subject.labels,
            lights=given.lights or parsed.lights,
            phases=given.phases or parsed.phases,
            motions=(*given.motions, *parsed.subject.motions),
        )


def _each(word: str, names: str) -> dict[str, str]:
    return dict.fromkeys(names.split(), word)


# Words for labels that simulator and usual detectors have. A stored label always counts as itself.
_LABELS = {
    **_each(
        'person', 'person people man men woman women pedestrian someone somebody anyone human'
    ),
    **_each('person', 'guy fellow bloke lady ladies gentleman gentlemen folk individual'),
    **_each('person', 'child children kid boy girl toddler youngster'),
    **_each('car', 'car van vehicle truck lorry pickup jeep automobile suv taxi'),
    **_each('cyclist', 'cyclist biker rider'),
    **_each('dog', 'dog animal pet puppy'),
}
_CHILDREN = {'child', 'children', 'kid', 'boy', 'girl', 'toddler', 'youngster'}
_ANYBODY = {
    *('people', 'pedestrian', 'someone', 'somebody', 'anyone', 'human', 'folk', 'individual'),
}
_COLOURS = {
    **{colour: colour for colour in COLOURS},
    **_each('grey', 'gray silver'),
    **_each('red', 'pink crimson scarlet'),
    **_each('yellow', 'orange golden'),
    **_each('brown', 'beige tan'),
    **_each('blue', 'violet purple navy turquoise'),
    'dark': 'black',
}
_PARTS = {
    **_each('top', 'top shirt t-shirt tshirt jacket coat jumper sweater hoodie pullover vest'),
    **_each('top', 'tee blouse sweatshirt anorak parka raincoat'),
    **_each('bottom', 'bottom trousers pants jeans skirt shorts leggings'),
    **_each('cap', 'cap hat beanie'),
    **_each('paint', 'paint'),
    **_each('backpack', 'backpack rucksack knapsack'),
}
# These are there or not; they have no colour of their own.
_THINGS = {'backpack', 'cap'}
_MOTIONS = {
    **dict.fromkeys(('still', 'standing', 'parked', 'waiting', 'stationary'), Motion.STILL),
    **dict.fromkeys(('walking', 'strolling', 'walks'), Motion.WALKING),
    **dict.fromkeys(('running', 'jogging', 'runs'), Motion.RUNNING),
    **dict.fromkeys(('moving', 'driving', 'riding'), Motion.MOVING),
    **dict.fromkeys(('approaching',), Motion.APPROACHING),
    **dict.fromkeys(('leaving', 'departing'), Motion.LEAVING),
}
_LIGHTS = {
    **dict.fromkeys(('night', 'nighttime'), Light.NIGHT),
    **dict.fromkeys(('dusk', 'dawn', 'evening', 'twilight'), Light.DUSK),
    **dict.fromkeys(('day', 'daytime', 'daylight'), Light.DAY),
}
_PHASES = {
    'hovering': FlightPhase.HOVERING,
    **dict.fromkeys(('travelling', 'cruising'), FlightPhase.TRAVELLING),
    **dict.fromkeys(('climbing', 'ascending', 'takeoff', 'take-off'), FlightPhase.CLIMBING),
    **dict.fromkeys(('descending', 'landing'), FlightPhase.DESCENDING),
}
_RELATIONS = {
    **dict.fromkeys(('near', 'beside', 'by', 'alongside', 'around'), RelationKind.NEAR),
    'left-of': RelationKind.LEFT_OF,
    'right-of': RelationKind.RIGHT_OF,
}
# Several words that mean one.
_JOINED = (
    (r'(?:to |on |at )?(?:the )?left (?:hand )?(?:side )?of', 'left-of'),
    (r'(?:to |on |at )?(?:the )?right (?:hand )?(?:side )?of', 'right-of'),
    (r'next to|close to|together with', 'near'),
    (r'in the dark', 'night'),
    (
        r'(?:coming|going|walking|running) (?:closer|nearer|towards (?:us|the drone))',
        'approaching',
    ),
    (r'(?:going|walking|running) away', 'leaving'),
    (r't shirt', 't-shirt'),
    (r'in front of', 'in-front-of'),
)
# They ask for a place that we do not judge; what follows is another object all the same.
_OTHER_RELATIONS = {
    *('behind', 'under', 'above', 'inside', 'between', 'in-front-of', 'opposite', 'over'),
}
_NEGATIONS = {'without', 'no', 'not'}
_SHADES = {'light', 'bright', 'pale', 'dark', 'deep'}
_SILENT = _each(
    '',
    'a an the in on at of and or who that which to is are was were be been has have having had '
    'wearing wears wore dressed carrying carries holding with his her their its there any some '
    'one all every where when did do does we you i see saw seen show me find us it this while '
    'during colour coloured color colored clothes clothing side from for please',
)


def vocabulary() -> dict[str, Any]:
    """Return the words that `read_query` knows as plain data, for a page that reads questions.

    Motions, lights and phases are the numbers of their kinds.
    """
    return {
        'joined': _JOINED,
        'labels': _LABELS,
        'children': sorted(_CHILDREN),
        'anybody': sorted(_ANYBODY),
        'colours': _COLOURS,
        'parts': _PARTS,
        'with_colours': PARTS,
        'things': sorted(_THINGS),
        'motions': {word: int(motion) for word, motion in _MOTIONS.items()},
        'lights': {word: int(light) for word, light in _LIGHTS.items()},
        'phases': {word: int(phase) for word, phase in _PHASES.items()},
        'relations': {word: kind.value for word, kind in _RELATIONS.items()},
        'other_relations': sorted(_OTHER_RELATIONS),
        'negations': sorted(_NEGATIONS),
        'shades': sorted(_SHADES),
        'silent': sorted(_SILENT),
    }


def read_query(text: str, labels: Collection[str] = ()) -> ParsedQuery:
    """Read a question such as "person in a red top near a white van".

    :param labels: those that are stored
    """
    text = ' '.join(unicodedata.normalize('NFKC', text[:LONGEST_QUERY]).lower().split())
    joined = text
    for pattern, word in _JOINED:
        joined = re.sub(rf'\b(?:{pattern})\b', word, joined)
    reading = _Reading({label.lower(): label for label in labels if label})
    words = [word.strip("-'") for word in re.findall(r"[^\W_]+(?:[-'][^\W_]+)*", joined)]
    place = 0
    while place < len(words):
        place += reading.take(words, place)
    return reading.parsed(text)


@dataclass
class _Begun:
    """A phrase that is being read; words in ``colours`` wait for what they belong to."""

    relation: RelationKind | None = None
    # A relation that is not judged: the phrase is read and asks for nothing.
    is_ignored: bool = False
    labels: list[str] = field(default_factory=list)
    attributes: list[Attribute] = field(default_factory=list)
    motions: list[Motion] = field(default_factory=list)
    words: list[str] = field(default_factory=list)
    colours: list[str] = field(default_factory=list)

    def phrase(self) -> Phrase:
        self.bind('')
        attributes, motions = dict.fromkeys(self.attributes), dict.fromkeys(self.motions)
        return Phrase(tuple(self.labels), tuple(attributes), tuple(motions), tuple(self.words))

    def bind(self, part: str) -> None:
        """Give the colours that wait to a part."""
        self.attributes += [Attribute(part, _COLOURS[word]) for word in self.colours]
        self.colours = []

    def next(self) -> _Begun:
        """Begin another object beside this one; the colours that wait are of the other."""
        begun = _Begun(RelationKind.NEAR, self.is_ignored, colours=self.colours)
        begun.words += self.colours
        self.words = [word for word in self.words if word not in self.colours]
        self.colours = []
        return begun


class _Reading:
    """Takes the words of a question one after another."""

    def __init__(self, stored: Mapping[str, str]) -> None:
        self._stored = stored
        self._phrases = [_Begun()]
        self._lights: list[Light] = []
        self._phases: list[FlightPhase] = []
        self._unknown: list[str] = []
        self._taken_as: dict[str, str] = {}
        self._negation = ''

    def take(self, words: Sequence[str], place: int) -> int:
        """Take the next word, or those of one label; return how many they were."""
        word, following = words[place], words[place + 1 : place + 2]
        for count in (3, 2):
            label = self._stored.get(' '.join(words[place : place + count]))
            if label is not None and len(words) >= place + count:
                self._label(label, ' '.join(words[place : place + count]))
                return count
        if word in _NEGATIONS:
            self._negation = word
        elif word in _SHADES and any(w in _COLOURS for w in following):
            self._now.words.append(word)
        elif not self._take_object(word):
            self._take_circumstance(word)
        return 1

    def parsed(self, text: str) -> ParsedQuery:
        """Return what was read."""
        if self._negation:
            self._unknown.append(self._negation)
        first, *others = self._phrases
        asked = [other for other in others if not other.is_ignored]
        return ParsedQuery(
            text,
            first.phrase(),
            tuple(
                Relation(other.relation or RelationKind.NEAR, other.phrase())
                for other in asked
                if other.labels or other.attributes or other.colours
            ),
            tuple(dict.fromkeys(self._lights)),
            tuple(dict.fromkeys(self._phases)),
            tuple(dict.fromkeys(self._unknown)),
            tuple(self._taken_as.items()),
        )

    @property
    def _now(self) -> _Begun:
        return self._phrases[-1]

    def _take_object(self, word: str) -> bool:
        """Take a word that says what an object is or how it looks; say whether it was one."""
        singular = _singular(word)
        label = self._stored.get(word) or self._stored.get(singular) or _LABELS.get(singular)
        if label is not None:
            self._label(label, word)
        elif word in _COLOURS:
            self._colour(word)
        elif word in _PARTS or singular in _PARTS:
            self._attribute(_PARTS.get(word) or _PARTS[singular], word)
        elif word in _MOTIONS and not self._refused(word):
            self._now.motions.append(_MOTIONS[word])
            self._now.words.append(word)
        else:
            return word in _MOTIONS
        return True

    def _take_circumstance(self, word: str) -> None:
        """Take a word that is about no object, or none that we know."""
        if word in _RELATIONS:
            self._phrases.append(_Begun(_RELATIONS[word]))
        elif word in _OTHER_RELATIONS:
            self._unknown.append(word.replace('-', ' '))
            self._phrases.append(_Begun(is_ignored=True))
        elif word in _LIGHTS and not self._refused(word):
            self._lights.append(_LIGHTS[word])
        elif word in _PHASES and not self._refused(word):
            self._phases.append(_PHASES[word])
        elif not (word in _SILENT or word in _LIGHTS or word in _PHASES or self._refused(word)):
            self._unknown.append(word)
            self._now.words.append(word)

    def _label(self, label: str, word: str) -> None:
        if self._refused(word):
            return
        now = self._now
        if now.labels:
            # "person with a white dog": colours before a second label are of the second.
            now = now.next()
            self._phrases.append(now)
        now.labels.append(label)
        now.words.append(word)
        if _singular(word) != label and word != label.lower() and word not in _ANYBODY:
            self._taken_as[word] = label
        if _singular(word) in _CHILDREN:
            now.attributes.append(Attribute('child', YES))
        now.bind('')

    def _colour(self, word: str) -> None:
        if self._refused(word):
            return
        self._now.colours.append(word)
        self._now.words.append(word)
        if _COLOURS[word] != word:
            self._taken_as[word] = _COLOURS[word]

    def _attribute(self, part: str, word: str) -> None:
        now = self._now
        if part in _THINGS and not now.colours:
            value = NO if self._negation else YES
            self._negation = ''
            now.attributes.append(Attribute(part, value))
        elif self._refused(word):
            return
        else:
            if now.colours and part not in PARTS:
                # Nobody learns the colour of a backpack.
                self._unknown += now.colours
                now.attributes.append(Attribute(part, YES))
                now.colours = []
            now.bind(part)
        now.words.append(word)

    def _refused(self, word: str) -> bool:
        """Whether "not" or "without" stands before a word, which then asks for nothing."""
        if not self._negation:
            return False
        self._unknown.append(f'{self._negation} {word}')
        self._negation = ''
        return True


def _singular(word: str) -> str:
    return word[:-1] if len(word) > 3 and word.endswith('s') and word[-2] != 's' else word
