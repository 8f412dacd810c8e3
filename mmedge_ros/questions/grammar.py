"""Reads a question in plain English into what is asked, or says what was not understood.

No language model: sentence patterns for the five kinds of question, and the vocabulary of the
flight memory for labels, looks and motion. A word that is not known refuses the question, for it
could change what is meant.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection
from dataclasses import dataclass, field, replace
from enum import Enum

from mmedge_ros.flight_memory.moment import Motion
from mmedge_ros.flight_memory.query import (
    LONGEST_QUERY,
    Phrase,
    read_query,
)
from mmedge_ros.flight_memory.relations import NEAR
from mmedge_ros.questions import QuestionError
from mmedge_ros.questions.place_words import (
    ANCHOR,
    TRACK,
    Anchor,
    PlaceLimit,
    read_anchor,
    read_places,
    track_of,
)
from mmedge_ros.questions.time_words import NUMBER, Span, number_of, read_span


class Kind(Enum):
    """The kinds of questions, those of NuScenes-QA."""

    COUNT = 'count'
    EXISTENCE = 'existence'
    OBJECT = 'object'
    STATUS = 'status'
    COMPARISON = 'comparison'


class Asked(Enum):
    """What is wanted of what is meant."""

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
    FIRST_SEEN = 'first seen'
    LAST_SEEN = 'last seen'
    # Of two.
    PAIR = 'pair'
    COUNTS = 'counts'


class Measure(Enum):
    """What tracks are compared by."""

    DISTANCE = 'distance'
    SPEED = 'speed'


class Sense(Enum):
    """How a first number stands to a second one, as it is asked."""

    MORE = 'more'
    FEWER = 'fewer'
    AT_LEAST = 'at least'
    AT_MOST = 'at most'
    EQUAL = 'as many'


@dataclass(frozen=True)
class Question:
    """What was understood.

    ``phrases`` are the objects that are meant, any of them; none where all are. ``than`` are those
    they are compared with, or ``number`` is. ``tracks`` are those named, in the order they were;
    ``called`` holds pairs of a track and what it was called. ``places`` hold at once. ``measure``
    is taken from ``anchor``; ``is_largest`` asks for the larger one. ``is_yes_or_no`` asks whether
    the first of two is it. ``is_past`` means the whole span, not its end. ``is_closest`` means the
    shortest distance in it. ``taken_as`` are words that were taken for others.
    """

    kind: Kind
    asked: Asked
    text: str = ''
    phrases: tuple[Phrase, ...] = ()
    than: tuple[Phrase, ...] = ()
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


_EXAMPLES = (
    '"how many people within 20 m in the last minute?", "what is near track 7?" or "is track 3 '
    'faster than track 5?"'
)
_COMPARATIVES = {
    'faster': (Measure.SPEED, True),
    'quicker': (Measure.SPEED, True),
    'slower': (Measure.SPEED, False),
    **dict.fromkeys(('farther', 'further'), (Measure.DISTANCE, True)),
    **dict.fromkeys(('closer', 'nearer'), (Measure.DISTANCE, False)),
}
_SUPERLATIVES = {
    'fastest': (Measure.SPEED, True),
    'quickest': (Measure.SPEED, True),
    'slowest': (Measure.SPEED, False),
    **dict.fromkeys(('farthest', 'furthest'), (Measure.DISTANCE, True)),
    **dict.fromkeys(('closest', 'nearest'), (Measure.DISTANCE, False)),
}
_BE, _WAS = r'(?:is|are|was|were)', r'(?:was|were|did|came|got|went|had|has been|have been)'
_GO = r'(?:going|moving|heading|headed|walking|running|driving|travelling|riding)'
_MOVE = r'(?:go|move|head|walk|run|drive|travel|ride)'
_CAME = r'(?:come|came|comes|get|got|gets|be|been|go|goes|went|move|moves|moved|getting|coming)'
_COMPARED = rf'(?P<than>{"|".join((*_COMPARATIVES, *_SUPERLATIVES))})'
_SUPERLATIVE = rf'(?P<most>{"|".join(_SUPERLATIVES)})'
_MEASURED = rf'(?: (?:away )?(?:to|from) (?P<anchor>{ANCHOR}))?'
_SUBJECT = rf'(?P<subject>{TRACK}|(?:the|that|this) [a-z][\w -]*?)'
_DID = r'(?P<verb>is|are|was|were|did|does|do|has|had)'

_PAIRS = (
    rf'{_DID} (?P<a>{TRACK}) (?:(?:{_CAME}|{_GO}|{_MOVE}) )?(?:any )?{_COMPARED}{_MEASURED} than '
    rf'(?P<b>{TRACK})(?: (?:is|was|did))?{_MEASURED.replace("anchor", "other_anchor")}',
    rf'(?:who|what|which)(?: one| track| of them)? (?P<verb>\w+)(?: {_GO})?(?: the)? {_COMPARED}'
    rf'{_MEASURED},? ?(?:of )?(?P<c>{TRACK}) or (?P<d>{TRACK})',
    rf'which(?: one)? of (?P<c>{TRACK}) (?:and|or) (?P<d>{TRACK}) (?P<verb>\w+)(?: {_GO})?'
    rf'(?: the)? {_COMPARED}{_MEASURED}',
)
_STATUS = (
    (
        Asked.HEADING,
        rf'(?:in )?(?:which|what) (?:way|direction) {_DID} {_SUBJECT} (?:{_GO}|{_MOVE})(?: in)?',
    ),
    (Asked.HEADING, rf'where {_DID} {_SUBJECT} (?:{_GO}|{_MOVE})(?: to)?'),
    (
        Asked.HEADING,
        rf'what (?P<verb>is|was) the (?:heading|direction|course)(?: of travel)? of {_SUBJECT}',
    ),
    (
        Asked.SPEED,
        rf'(?:how (?:fast|quick|quickly)|at what speed) {_DID} {_SUBJECT}(?: (?:{_GO}|{_MOVE}))?',
    ),
    (Asked.SPEED, rf'what (?P<verb>is|was) the (?:speed|velocity) of {_SUBJECT}'),
    (
        Asked.DISTANCE,
        rf'how (?P<near>far|close|near)(?: away)? {_DID} {_SUBJECT}(?: {_CAME})?(?: away)?'
        rf'(?: (?:to|from) (?P<anchor>{ANCHOR}))?',
    ),
    (
        Asked.DISTANCE,
        rf'how far (?:apart )?{_DID} (?P<subject>{TRACK}) and (?P<anchor>{TRACK})(?: apart)?',
    ),
    (
        Asked.DISTANCE,
        rf'what (?P<verb>is|was) the distance (?:between|from|of|to) {_SUBJECT}'
        rf'(?: (?:and|to|from) (?P<anchor>{ANCHOR}))?',
    ),
    (Asked.PLACE, rf'where {_DID} {_SUBJECT}'),
    (Asked.PLACE, rf'what (?P<verb>is|was) the (?:position|place|location) of {_SUBJECT}'),
    (
        Asked.FIRST_SEEN,
        rf'when {_DID} (?P<subject>{TRACK}) (?:first (?:seen|visible|tracked|detected)|'
        r'(?:first )?appear)',
    ),
    (
        Asked.LAST_SEEN,
        rf'when {_DID} (?P<subject>{TRACK}) last (?:seen|visible|tracked|detected)',
    ),
    (
        Asked.MOTION,
        rf'{_DID} (?P<subject>{TRACK}) (?P<motion>[a-z][a-z ]*)',
    ),
)
_LABEL = rf'(?:what|who)(?: kind of object| kind of thing)? (?P<verb>is|was) (?P<subject>{TRACK})'
_SEES = r'(?:(?:do|did|can|could|have|had) (?:you|we|the drone|it) )?'
_MORE_THAN = (
    rf'(?:{_BE}(?: there)?|{_SEES}(?:see|seen|find)|there (?:is|are|was|were)) '
    r'(?:any )?(?P<sense>more|fewer|less|as many) (?P<what>.+?) (?:than|as) (?P<than>.+)'
)
_NUMBERED = (
    rf'(?:{_BE} there|{_SEES}(?:see|seen|find)|there (?:is|are|was|were)) '
    rf'(?P<sense>more than|fewer than|less than|at least|at most|exactly) (?P<number>{NUMBER}) '
    r'(?P<what>.+)'
)
_SENSES = {
    **dict.fromkeys(('more', 'more than'), Sense.MORE),
    **dict.fromkeys(('fewer', 'less', 'fewer than', 'less than'), Sense.FEWER),
    **dict.fromkeys(('as many', 'exactly'), Sense.EQUAL),
    'at least': Sense.AT_LEAST,
    'at most': Sense.AT_MOST,
}
_EXTREMES = (
    rf'(?:who|what|which|where)(?: (?P<what>[a-z][a-z ]*?))? (?P<verb>is|are|was|were|came|comes|'
    rf'got|gets|moved|moves|went|goes|ran|drove|walked|stayed|passed)(?: {_GO})?(?: the)? '
    rf'{_SUPERLATIVE}(?: (?P<which>[a-z][a-z ]*?))??{_MEASURED}',
)
_COUNTING = (
    r'how many(?: different| distinct)? (?P<what>.+)',
    r'count (?:all )?(?P<what>.+)',
    r'(?:what (?:is|was) |give me |tell me )?the (?:total )?(?:number|count) of (?P<what>.+)',
)
_LISTING = (
    r'(?P<what>who|what|whom)(?: else)?(?: (?P<rest>.+))?',
    r'(?:which|what)(?: kinds? of)? (?P<rest>.+)',
    r'(?:list|show|name)(?: me)?(?: all)? (?P<rest>.+)',
)
_EXISTING = (
    rf'{_DID}(?: there)?(?: ever)? (?P<what>.+)',
    r'(?:can|could|have|do) (?P<what>.+)',
)

_POLITE = (
    r'^(?:please )?(?:(?:can|could|would) you )?(?:please )?(?:tell me|say|show me)(?:,? please)? '
    r'(?=how|what|which|who|where|when|whether)'
)
_TWO_TRACKS = r'\btracks #?(\d{1,9}) (and|or) #?(\d{1,9})\b(?! ?(?:m|s|met\w+|sec\w*)\b)'
# All that is there: no label is asked for.
_ANYTHING = r'\b(?:anything|something|objects?|things?|tracks?|everything)\b'
_SAME_WORDS = (
    (r'\b(?:anybody|everybody|everyone|who)\b', 'anyone'),
    (r'\bwalked\b', 'walking'),
    (r'\b(?:ran)\b', 'running'),
    (r'\bmoved\b', 'moving'),
    (r'\bstood(?: still)?\b|\b(?:standing|sitting) still\b|\bnot moving\b', 'standing'),
    (r'\bapproach(?:ed|ing)?(?: (?:us|the drone))?\b', 'approaching'),
    (r'\b(?:moving|going|walking|running) away(?: from (?:us|the drone))?\b', 'leaving'),
    (r'\bstill (?=moving|walking|running|approaching|leaving|driving|standing)', ''),
)
_SEEN_WORDS = (
    r'\b(?:can|could|be|visible|detected|tracked|found|observed|in view|in sight|spotted|present|'
    r'camera|appear|appeared|distinct|ever|also|please|different|each other|'
    r'at all|at|located|been|anywhere|look|find)\b'
)
# Words that the flight memory passes over, and that change what a question means.
_CHANGING = {
    *('all', 'every', 'each', 'while', 'during', 'for', 'when', 'where', 'or', 'from', 'only'),
    *('one', 'his', 'her', 'their', 'its', 'which', 'him', 'them', 'he', 'she', 'they'),
}
# What stands beside an object; places are read before.
_BESIDE = {'near', 'beside', 'by', 'alongside', 'around', 'next', 'close', 'left', 'right'}
_COMING = rf'\b{_CAME}\b'


def read_question(text: str, labels: Collection[str] = ()) -> Question:
    """Read a question.

    :param labels: those that tracks of the flight have
    :raises QuestionError: if it is too long, or not understood as a whole
    """
    if len(text) > LONGEST_QUERY:
        raise QuestionError(f'a question has at most {LONGEST_QUERY} characters')
    words = ' '.join(unicodedata.normalize('NFKC', text[:LONGEST_QUERY]).lower().split())
    if len(words) > LONGEST_QUERY:
        raise QuestionError(f'a question has at most {LONGEST_QUERY} characters')
    words = re.sub(r"\b(who|what|where)['’]s\b", r'\1 is', words)
    words = re.sub(r"n['’]t\b", ' not', words)
    words = re.sub(_POLITE, '', words)
    words = re.sub(r'[?!;"“”]|[.:](?!\d)|,(?! ?-?\d)', ' ', words)
    words = re.sub(r' around *$', '', words)
    words = re.sub(_TWO_TRACKS, r'track \1 \2 track \3', words)
    words = re.sub(r'\bstill (?:there|here|around|visible|in view|in sight)\b', 'now', words)
    words = ' '.join(words.split())
    if not words:
        raise QuestionError(f'nothing is asked; ask such as {_EXAMPLES}')
    return _Reader(words, labels).question(text.strip())


class _Reader:
    """Reads one question."""

    def __init__(self, words: str, labels: Collection[str]) -> None:
        self._labels = tuple(labels)
        self._called: list[tuple[int, str]] = []
        self._taken_as: dict[str, str] = {}
        words = self._numbered(words)
        self._span, words = read_span(words)
        self._words = words.strip(' ,').replace(' ,', ',')

    def question(self, text: str) -> Question:
        """Return what was understood.

        :raises QuestionError: if it was not understood
        """
        found = self._pair() or self._status() or self._with_places()
        return replace(
            found,
            text=text,
            span=self._span,
            called=tuple(self._called),
            taken_as=tuple(self._taken_as.items()),
        )

    def _numbered(self, words: str) -> str:
        """Make "person 7" a track that was called a person."""

        def renamed(found: re.Match[str]) -> str:
            parsed = read_query(found.group('label'), self._labels)
            if parsed.unknown or len(parsed.subject.labels) != 1 or parsed.subject.attributes:
                return found.group()
            self._called.append((int(found.group('number')), parsed.subject.labels[0]))
            return f'track {found.group("number")}'

        pattern = (
            r'\b(?:the )?(?P<label>[a-z]+) #?(?P<number>\d{1,9})\b(?![.:,]\d)'
            r'(?! ?(?:m|met\w+|s|sec\w*|min\w*)\b)'
        )
        return re.sub(pattern, renamed, words)

    def _pair(self) -> Question | None:
        for pattern in _PAIRS:
            found = re.fullmatch(pattern, self._words)
            if found is None:
                continue
            groups = found.groupdict()
            measure, is_largest = (_COMPARATIVES | _SUPERLATIVES)[groups['than']]
            first, second = (
                track_of(groups.get(one) or groups.get(other) or '')
                for one, other in (('a', 'c'), ('b', 'd'))
            )
            if first == second:
                raise QuestionError(f'track {first} is compared with itself; name two tracks')
            anchor = groups.get('anchor') or groups.get('other_anchor')
            return Question(
                Kind.COMPARISON,
                Asked.PAIR,
                tracks=(first, second),
                measure=measure,
                anchor=read_anchor(anchor) if anchor else Anchor(),
                is_largest=is_largest,
                is_yes_or_no=groups.get('a') is not None,
                is_past=self._is_past(groups['verb']),
                is_closest=_comes(self._words),
            )
        return None

    def _status(self) -> Question | None:
        if found := re.fullmatch(_LABEL, self._words):
            number = track_of(found.group('subject'))
            return Question(Kind.OBJECT, Asked.LABEL, tracks=(number,))
        for asked, pattern in _STATUS:
            found = re.fullmatch(pattern, self._words)
            if found is None:
                continue
            groups = found.groupdict()
            motions: tuple[Motion, ...] = ()
            if asked is Asked.MOTION:
                phrase = self._phrase(groups['motion'], may_be_empty=True)
                if phrase is None or phrase != Phrase(motions=phrase.motions, words=phrase.words):
                    continue
                motions = phrase.motions
                if not motions:
                    continue
            subject, anchor = groups['subject'], groups.get('anchor')
            is_track = re.fullmatch(TRACK, subject) is not None
            return Question(
                Kind.STATUS,
                asked,
                phrases=() if is_track else self._phrases(subject),
                tracks=(track_of(subject),) if is_track else (),
                motions=motions,
                anchor=read_anchor(anchor) if anchor else Anchor(),
                is_past=self._is_past(groups['verb']),
                is_closest=_comes(self._words),
            )
        return None

    def _with_places(self) -> Question:
        if found := re.fullmatch(_EXTREMES[0], self._words):
            return self._extreme(found)
        places, words, of_what = read_places(self._words)
        if of_what:
            # A verb would be of the sentence, not of what stands there.
            if re.search(rf'\b(?:{_BE}|did|does)\b', of_what):
                raise QuestionError(f'"{of_what}" is not understood; name it at the end')
            (phrase,) = self._phrases(of_what)[:1]
            places = tuple(
                replace(place, anchor=Anchor(phrase=phrase))
                if place.anchor.phrase is not None
                else place
                for place in places
            )
        for read in (
            self._counts,
            self._counted,
            self._listed,
            self._track_is_there,
            self._exists,
        ):
            question = read(words)
            if question is not None:
                return replace(question, places=(*question.places, *places))
        raise QuestionError(f'"{words}" is not understood as a question; ask such as {_EXAMPLES}')

    def _extreme(self, found: re.Match[str]) -> Question:
        groups = found.groupdict()
        measure, is_largest = _SUPERLATIVES[groups['most']]
        what = ' '.join(filter(None, (groups['what'], groups['which'])))
        what = re.sub(r'\bones?\b', '', what).strip()
        asks_who = self._words.startswith('who')
        anchor = groups.get('anchor')
        return Question(
            Kind.OBJECT,
            Asked.EXTREME,
            phrases=self._phrases(what or ('anyone' if asks_who else 'anything')),
            measure=measure,
            anchor=read_anchor(anchor) if anchor else Anchor(),
            is_largest=is_largest,
            is_past=self._is_past(groups['verb']),
            is_closest=_comes(self._words) or groups['verb'] in ('was', 'were'),
        )

    def _counts(self, words: str) -> Question | None:
        if found := re.fullmatch(_NUMBERED, words):
            number = number_of(found.group('number'))
            if number != int(number):
                raise QuestionError(f'{number:g} objects are not counted; name a whole number')
            return self._comparing(found, number=int(number))
        if found := re.fullmatch(_MORE_THAN, words):
            return replace(self._comparing(found), than=self._phrases(found.group('than')))
        return None

    def _comparing(self, found: re.Match[str], number: int | None = None) -> Question:
        return Question(
            Kind.COMPARISON,
            Asked.COUNTS,
            phrases=self._phrases(found.group('what')),
            number=number,
            sense=_SENSES[found.group('sense')],
            is_yes_or_no=True,
            is_past=True,
        )

    def _counted(self, words: str) -> Question | None:
        for pattern in _COUNTING:
            if found := re.fullmatch(pattern, words):
                phrases = self._phrases(found.group('what'))
                return Question(Kind.COUNT, Asked.COUNT, phrases=phrases, is_past=True)
        return None

    def _listed(self, words: str) -> Question | None:
        for pattern in _LISTING:
            found = re.fullmatch(pattern, words)
            if found is None:
                continue
            groups = found.groupdict()
            what = 'anyone' if groups.get('what') in ('who', 'whom') else 'anything'
            text = f'{what} {groups["rest"] or ""}' if groups.get('what') else groups['rest']
            return Question(Kind.OBJECT, Asked.LIST, phrases=self._phrases(text), is_past=True)
        return None

    def _track_is_there(self, words: str) -> Question | None:
        found = re.fullmatch(rf'{_DID} (?P<subject>{TRACK})(?P<rest>(?: [a-z ]+)?)', words)
        if found is None:
            return None
        rest = re.sub(rf'{_COMING}|{_SEEN_WORDS}|\b(?:still )?(?:there|seen)\b', '', found['rest'])
        phrase = self._phrase(rest, may_be_empty=True)
        if phrase is None or phrase.labels or phrase.attributes:
            raise QuestionError(f'"{found["rest"].strip()}" is not understood of a track')
        return Question(
            Kind.EXISTENCE,
            Asked.EXISTS,
            phrases=(phrase,),
            tracks=(track_of(found['subject']),),
            is_yes_or_no=True,
            is_past=True,
        )

    def _exists(self, words: str) -> Question | None:
        for pattern in _EXISTING:
            if found := re.fullmatch(pattern, words):
                phrases = self._phrases(found.group('what'))
                return Question(
                    Kind.EXISTENCE,
                    Asked.EXISTS,
                    phrases=phrases,
                    is_yes_or_no=True,
                    is_past=True,
                )
        return None

    def _phrases(self, text: str) -> tuple[Phrase, ...]:
        """Read objects, "people and cars" as any of both.

        :raises QuestionError: if words are left over, or nothing is named
        """
        parts = [part for part in re.split(r'\band\b|\bor\b|,', text) if part.strip()]
        if len(parts) > 1:
            each = [read_query(part, self._labels).subject.labels for part in parts]
            if not all(each):
                # "a red and white shirt" is one object, "people and runners" is none we know.
                if any(each[1:]):
                    raise QuestionError(f'"{text}" is not understood; ask for one after the other')
                parts = [' '.join(parts)]
        phrases = [self._phrase(part) for part in parts]
        return tuple(phrase for phrase in phrases if phrase is not None)

    def _phrase(self, text: str, *, may_be_empty: bool = False) -> Phrase | None:
        words = f' {text} '
        for pattern, same in _SAME_WORDS:
            words = re.sub(pattern, same, words)
        is_anything = re.search(_ANYTHING, words) is not None
        words = re.sub(rf'{_ANYTHING}|{_SEEN_WORDS}|{_COMING}', ' ', words)
        parsed = read_query(words, self._labels)
        said = words.replace("'", ' ').split()
        # Labels beside each other, or a side of another object.
        if parsed.relations or not _BESIDE.isdisjoint(said):
            raise QuestionError(
                f'"{text.strip()}" is not understood; what stands beside an object is asked for '
                f'with "near a car", which is {NEAR:g} m, or "within 10 m of a car", at the end'
            )
        unknown = [*parsed.unknown, *(word for word in said if word in _CHANGING)]
        if unknown:
            raise QuestionError(
                f'not understood: {", ".join(dict.fromkeys(unknown))}; leave it out, or ask such '
                f'as {_EXAMPLES}'
            )
        if parsed.lights or parsed.phases:
            raise QuestionError(
                'light and what the drone was doing are not judged here; mmedge memory search '
                'knows them'
            )
        self._taken_as.update(parsed.taken_as)
        phrase = parsed.subject
        is_empty = phrase == Phrase(words=phrase.words)
        if is_empty and not is_anything and not may_be_empty:
            raise QuestionError(f'"{text.strip()}" names no object; ask such as {_EXAMPLES}')
        return phrase

    def _is_past(self, verb: str) -> bool:
        return re.fullmatch(_WAS, verb) is not None or not self._span.is_whole


def _comes(words: str) -> bool:
    """Whether it is asked how close something came, not how far away it was."""
    return re.search(r'\b(?:come|came|get|got)\b', words) is not None
