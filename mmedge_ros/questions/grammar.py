"""Reads a question in plain English, or names the words that it does not understand.

No language model: sentence patterns for the five kinds of question, and the vocabulary of the
flight memory for labels, looks and motion. A word that is not known refuses the question, for it
could change what is meant.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection
from dataclasses import replace

from mmedge_ros.memory.moment import Motion
from mmedge_ros.memory.query import LONGEST_QUERY, NO, YES, Attribute, Phrase, read_query
from mmedge_ros.memory.relations import NEAR
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
from mmedge_ros.questions.plain_form import plain_form
from mmedge_ros.questions.question import Asked, Kind, Measure, Question, Sense
from mmedge_ros.questions.sentences import (
    BE,
    CAME,
    COMPARATIVES,
    COMPARE,
    COUNTING,
    EXAMPLES,
    EXISTING,
    EXTREMES,
    LABEL,
    LISTING,
    MORE_THAN,
    NUMBERED,
    PAIRS,
    SENSES,
    STATUS,
    SUPERLATIVES,
    WAS,
)
from mmedge_ros.questions.time_words import number_of, read_span

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
    (r'\b(?:adult|grown-?up)(s?)\b', r'individual\1 '),
)
_ADULTS = r'\b(?:adult|grown-?up)s?\b'
_SEEN_WORDS = (
    r'\b(?:can|could|be|visible|detected|tracked|found|observed|in view|in sight|spotted|present|'
    r'camera|appear(?:ed|s|ing)?|noticed|distinct|ever|also|please|different|unique|'
    r'at all|at|located|been|anywhere|look|find|actually|really|got)\b'
)
# Words that the flight memory passes over, and that change what a question means.
_CHANGING = {
    *('all', 'every', 'each', 'while', 'during', 'for', 'when', 'where', 'or', 'from', 'only'),
    *('one', 'his', 'her', 'their', 'its', 'which', 'him', 'them', 'he', 'she', 'they', 'it'),
}
# What stands beside an object; places are read before.
_BESIDE = {'near', 'beside', 'by', 'alongside', 'around', 'next', 'close', 'left', 'right'}
_COMING = rf'\b{CAME}\b'
# Of a sentence without a time, these verbs ask for what is so now.
_PAST = r'\b(?:was|were|did|had|been|came|got|went|ran|seen|appeared|stood|walked|moved|drove)\b'
_PRESENT = r'\b(?:is|are|do|does|can|comes|moves|goes)\b'
_EVER = re.compile(r'\b(?:ever|any|some)\b')


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
    words = re.sub(_TWO_TRACKS, r'track \1 \2 track \3', plain_form(words))
    words = re.sub(r'\bstill (?:there|here|around|visible|in view|in sight|seen)\b', 'now', words)
    words = ' '.join(words.split())
    if not words:
        raise QuestionError(f'nothing is asked; ask such as {EXAMPLES}')
    question = _two_counts(words, labels) or _Reader(words, labels).question()
    return replace(question, text=text.strip())


def _two_counts(words: str, labels: Collection[str]) -> Question | None:
    """Read a comparison of two counts; what only one side says of time and place is of both."""
    found = None if re.search(rf'\b{NUMBERED}', words) else re.fullmatch(MORE_THAN, words)
    is_of_more = found is not None
    found = found or re.fullmatch(COMPARE, words)
    if found is None:
        return None
    groups = found.groupdict()
    ours = _Reader(f'{groups["before"]} {groups["what"]}', labels).counted()
    theirs = _Reader(groups['other'], labels).counted(beside=ours)
    spans = [side.span if side.span.said else None for side in (ours, theirs)]
    ours = replace(ours, span=spans[0] or theirs.span, places=ours.places or theirs.places)
    theirs = replace(theirs, span=spans[1] or ours.span, places=theirs.places or ours.places)
    if _meant(ours) == _meant(theirs):
        raise QuestionError('both sides of the comparison are the same; name what differs')
    is_yes_or_no = is_of_more and not groups['joint'].startswith('or')
    return replace(
        ours,
        kind=Kind.COMPARISON,
        asked=Asked.COUNTS,
        versus=theirs,
        sense=SENSES[groups['sense']] if is_of_more else Sense.MORE,
        is_yes_or_no=is_yes_or_no,
        is_past=not _is_present(words),
    )


def _meant(side: Question) -> Question:
    """Return one side of a comparison without its words."""
    phrases = tuple(replace(phrase, words=()) for phrase in side.phrases)
    return replace(side, phrases=phrases, span=replace(side.span, said=''), taken_as=())


def _is_present(words: str) -> bool:
    """Whether the question is about the present, not the past."""
    return re.search(_PRESENT, words) is not None and re.search(_PAST, words) is None


class _Reader:
    """Reads one question."""

    def __init__(self, words: str, labels: Collection[str]) -> None:
        self._labels = tuple(labels)
        self._called: list[tuple[int, str]] = []
        self._taken_as: dict[str, str] = {}
        words = self._numbered(words)
        self._span, words = read_span(words)
        self._words = words.strip(' ,').replace(' ,', ',')

    def question(self) -> Question:
        """Return what was understood.

        :raises QuestionError: if it was not understood
        """
        found = self._pair() or self._status() or self._with_places()
        return self._completed(found)

    def counted(self, beside: Question | None = None) -> Question:
        """Return one side of a comparison of counts, as a count.

        :param beside: the other side; labels that are not said again are its own
        :raises QuestionError: if it was not understood
        """
        places, words = self._placed()
        words = re.sub(r'^(?:there )?(?:were|was|are|is)\b|\b(?:ones|those|them)\b', ' ', words)
        phrases = self._phrases(words) if beside is None else self._contrasted(words, beside)
        return self._completed(
            Question(Kind.COUNT, Asked.COUNT, phrases=phrases, places=places, is_past=True)
        )

    def _completed(self, found: Question) -> Question:
        return replace(
            found,
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
            r'\b(?:the )?(?P<label>[a-z]+) (?:number |no |id )?#?(?P<number>\d{1,9})\b(?![.:,]\d)'
            r'(?! ?(?:m|met\w+|s|sec\w*|min\w*)\b)'
        )
        return re.sub(pattern, renamed, words)

    def _pair(self) -> Question | None:
        for number, pattern in enumerate(PAIRS):
            found = re.fullmatch(pattern, self._words)
            if found is None:
                continue
            groups = found.groupdict()
            measure, is_largest = (COMPARATIVES | SUPERLATIVES)[groups['than']]
            noun = groups.get('noun') or 'one'
            return replace(
                self._two(*(re.sub(r'\bone\b', noun, groups[side]) for side in 'ab')),
                measure=measure,
                anchor=self._anchor(groups.get('anchor') or groups.get('other_anchor')),
                is_largest=is_largest,
                is_yes_or_no=number == 0,
                is_past=self._is_past(groups['verb']) or measure is Measure.FIRST_SEEN,
                is_closest=_comes(self._words),
            )
        return None

    def _two(self, a: str, b: str) -> Question:
        """Read what is compared: two tracks by number, or two objects in words."""
        by_number = [re.fullmatch(TRACK, text) is not None for text in (a, b)]
        if all(by_number):
            first, second = track_of(a), track_of(b)
            if first == second:
                raise QuestionError(f'track {first} is compared with itself; name two tracks')
            return Question(Kind.COMPARISON, Asked.PAIR, tracks=(first, second))
        if any(by_number):
            raise QuestionError(f'"{a}" and "{b}" are not compared; name two tracks by number')
        ours = Question(Kind.COMPARISON, Asked.PAIR, phrases=self._phrases(a))
        other = re.sub(r'\bone\b', '', b)
        phrases = self._phrases(b) if other == b else self._contrasted(other, ours)
        if phrases == ours.phrases:
            raise QuestionError(f'"{a}" is compared with itself; name two objects')
        return replace(ours, versus=Question(Kind.OBJECT, Asked.LIST, phrases=phrases))

    def _anchor(self, text: str | None) -> Anchor:
        """Read what distances are measured from; nothing means the drone."""
        if not text:
            return Anchor()
        if re.fullmatch(ANCHOR, text):
            return read_anchor(text)
        return Anchor(phrase=self._phrases(text)[0])

    def _status(self) -> Question | None:
        if found := re.fullmatch(LABEL, self._words):
            number = track_of(found.group('subject'))
            return Question(Kind.OBJECT, Asked.LABEL, tracks=(number,))
        for asked, pattern in STATUS:
            found = re.fullmatch(pattern, self._words)
            if found is None:
                continue
            groups = found.groupdict()
            subject = groups['subject']
            is_track = re.fullmatch(TRACK, subject) is not None
            motions = self._motions(groups.get('motion') or '')
            if asked in (Asked.MOTION, Asked.DURATION) and groups.get('motion'):
                # Whether something happened at all is asked of what exists.
                is_one = is_track or ' or ' in groups['motion'] or asked is Asked.DURATION
                if not motions or not is_one or _EVER.search(self._span.said):
                    continue
            return Question(
                Kind.STATUS,
                asked,
                phrases=() if is_track else self._phrases(subject),
                tracks=(track_of(subject),) if is_track else (),
                motions=motions,
                anchor=self._anchor(groups.get('anchor') or groups.get('before')),
                is_largest=groups.get('top') is not None,
                is_past=self._is_past(groups['verb']) or asked is Asked.DURATION,
                is_closest=_comes(self._words) or groups.get('least') is not None,
            )
        return None

    def _motions(self, text: str) -> tuple[Motion, ...]:
        """Read nothing but motions; of "walking or standing" the first is asked for."""
        read = []
        for part in re.split(r'\bor\b', text):
            phrase = self._phrase(re.sub(r'\bjust\b|\bthere\b', '', part), may_be_empty=True)
            if phrase is None or phrase != Phrase(motions=phrase.motions, words=phrase.words):
                return ()
            read.append(phrase.motions)
        # "Not walking" does not say running, but not standing says moving.
        is_one = len(read) == 1 or sum(Motion.STILL in motions for motions in read) == 1
        return read[0] if all(read) and is_one else ()

    def _with_places(self) -> Question:
        if found := re.fullmatch(EXTREMES, self._words):
            return self._extreme(found)
        places, words = self._placed()
        for read in (
            self._numbers,
            self._counted,
            self._listed,
            self._track_is_there,
            self._exists,
        ):
            question = read(words)
            if question is not None:
                return replace(question, places=(*question.places, *places))
        raise QuestionError(f'"{words}" is not understood as a question; ask such as {EXAMPLES}')

    def _placed(self) -> tuple[tuple[PlaceLimit, ...], str]:
        """Take the places out of the words; return both."""
        places, words, of_what = read_places(self._words)
        if of_what:
            # A verb would be of the sentence, not of what stands there.
            if re.search(rf'\b(?:{BE}|did|does)\b', of_what):
                raise QuestionError(f'"{of_what}" is not understood; name it at the end')
            phrase, *others = self._phrases(of_what)
            if others:
                raise QuestionError(f'"{of_what}" are several objects; measure from one of them')
            places = tuple(
                replace(place, anchor=Anchor(phrase=phrase))
                if place.anchor.phrase is not None
                else place
                for place in places
            )
        return places, words

    def _extreme(self, found: re.Match[str]) -> Question:
        groups = found.groupdict()
        measure, is_largest = SUPERLATIVES[groups['most']]
        what = ' '.join(filter(None, (groups['what'], groups['which'])))
        what = re.sub(r'\bones?\b', '', what).strip()
        asks_who = self._words.startswith('who')
        return Question(
            Kind.OBJECT,
            Asked.EXTREME,
            phrases=self._phrases(what or ('anyone' if asks_who else 'anything')),
            measure=measure,
            anchor=self._anchor(groups.get('anchor')),
            is_largest=is_largest,
            is_past=self._is_past(groups['verb']) or measure is Measure.FIRST_SEEN,
            is_closest=_comes(self._words) or groups['verb'] in ('was', 'were'),
        )

    def _numbers(self, words: str) -> Question | None:
        found = re.fullmatch(NUMBERED, words)
        if found is None:
            return None
        number = number_of(found.group('number'))
        if number != int(number):
            raise QuestionError(f'{number:g} objects are not counted; name a whole number')
        return Question(
            Kind.COMPARISON,
            Asked.COUNTS,
            phrases=self._phrases(found.group('what')),
            number=int(number),
            sense=SENSES[found.group('sense')],
            is_yes_or_no=True,
            is_past=self._is_of_past,
        )

    def _counted(self, words: str) -> Question | None:
        for pattern in COUNTING:
            if found := re.fullmatch(pattern, words):
                phrases = self._phrases(found.group('what'))
                # "What is the number of" says nothing of when.
                is_past = self._is_of_past or bool(found.groupdict().get('number'))
                return Question(Kind.COUNT, Asked.COUNT, phrases=phrases, is_past=is_past)
        return None

    def _listed(self, words: str) -> Question | None:
        for pattern in LISTING:
            found = re.fullmatch(pattern, words)
            if found is None:
                continue
            groups = found.groupdict()
            what = 'anyone' if groups.get('what') in ('who', 'whom') else 'anything'
            text = f'{what} {groups["rest"] or ""}' if groups.get('what') else groups['rest']
            return Question(
                Kind.OBJECT,
                Asked.LIST,
                phrases=self._phrases(text),
                is_past=self._is_of_past,
            )
        return None

    def _track_is_there(self, words: str) -> Question | None:
        found = re.fullmatch(
            rf'(?P<verb>is|are|was|were|did|does|do|has|had) (?P<subject>{TRACK})'
            r'(?P<rest>(?: [a-z-]+)*)',
            words,
        )
        if found is None:
            return None
        said = found['rest'].strip()
        rest = re.sub(rf'{_COMING}|{_SEEN_WORDS}|\b(?:still )?(?:there|seen)\b', '', said)
        phrase = self._phrase(rest, may_be_empty=True)
        # "Has track 3 a dog" does not ask whether it is one.
        is_named = re.match(r'an? ', said) is not None and found['verb'] in ('is', 'was')
        if phrase is None or (phrase.labels and not is_named):
            raise QuestionError(f'"{said}" is not understood of a track')
        return Question(
            Kind.EXISTENCE,
            Asked.EXISTS,
            phrases=(phrase,),
            tracks=(track_of(found['subject']),),
            is_yes_or_no=True,
            is_past=self._is_of_past or bool(phrase.labels or phrase.attributes),
        )

    def _exists(self, words: str) -> Question | None:
        for pattern in EXISTING:
            if found := re.fullmatch(pattern, words):
                phrases = self._phrases(found.group('what'))
                return Question(
                    Kind.EXISTENCE,
                    Asked.EXISTS,
                    phrases=phrases,
                    is_yes_or_no=True,
                    is_past=self._is_of_past,
                )
        return None

    def _contrasted(self, text: str, beside: Question) -> tuple[Phrase, ...]:
        """Read objects of which only the difference to others is said.

        :raises QuestionError: if it is not clear what differs
        """
        if not text.strip():
            return beside.phrases
        if re.fullmatch(r' *(?:the ones )?without(?: one| any| it)? *', text):
            return tuple(_without_things(phrase) for phrase in beside.phrases)
        said = self._phrase(text, may_be_empty=True) or Phrase()
        if said.labels:
            return self._phrases(text)
        if said == Phrase(words=said.words):
            return beside.phrases
        differing = []
        for phrase in beside.phrases:
            for ours, theirs in (
                (phrase.attributes, said.attributes),
                (phrase.motions, said.motions),
            ):
                if theirs and not ours:
                    raise QuestionError(
                        f'"{text.strip()}" is not understood; name the objects on both sides'
                    )
            differing.append(
                Phrase(
                    phrase.labels,
                    said.attributes or phrase.attributes,
                    said.motions or phrase.motions,
                    (*phrase.labels, *said.words),
                )
            )
        return tuple(differing)

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
                f'as {EXAMPLES}'
            )
        if parsed.lights or parsed.phases:
            raise QuestionError(
                'light and what the drone was doing are not judged here; mmedge memory search '
                'knows them'
            )
        self._taken_as.update(parsed.taken_as)
        phrase = parsed.subject
        if re.search(_ADULTS, text):
            phrase = replace(phrase, attributes=(*phrase.attributes, Attribute('child', NO)))
        if len({Motion.STILL, Motion.WALKING, Motion.RUNNING} & set(phrase.motions)) > 1 or (
            Motion.STILL in phrase.motions and len(phrase.motions) > 1
        ):
            raise QuestionError(f'"{text.strip()}" names two motions; ask for one after the other')
        is_empty = phrase == Phrase(words=phrase.words)
        if is_empty and not is_anything and not may_be_empty:
            raise QuestionError(f'"{text.strip()}" names no object; ask such as {EXAMPLES}')
        return phrase

    def _is_past(self, verb: str) -> bool:
        return re.fullmatch(WAS, verb) is not None or bool(self._span.said)

    @property
    def _is_of_past(self) -> bool:
        return bool(self._span.said) or not _is_present(self._words)


def _without_things(phrase: Phrase) -> Phrase:
    """Return the phrase of objects that lack the one thing this phrase asks for."""
    things = [one for one in phrase.attributes if one.value == YES and one.part != 'child']
    if len(things) != 1:
        raise QuestionError('"without" is not understood here; name what the others are without')
    attributes = tuple(
        Attribute(one.part, NO) if one in things else one for one in phrase.attributes
    )
    words = (*phrase.labels, 'without', things[0].part)
    return replace(phrase, attributes=attributes, words=words)


def _comes(words: str) -> bool:
    """Whether the question is how close something came, not how far away it was."""
    return re.search(r'\b(?:come|came|get|got)\b', words) is not None
