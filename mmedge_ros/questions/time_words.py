"""Spans of time in words: "in the last minute", "between 0:10 and 0:20", "after 14:02"."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from datetime import datetime, timezone

from mmedge_ros.core.data_types import NS_PER_S
from mmedge_ros.questions import QuestionError

_TO_TWENTY = (
    'zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen '
    'fifteen sixteen seventeen eighteen nineteen twenty'
)
_NUMBERS = {
    **{word: float(number) for number, word in enumerate(_TO_TWENTY.split())},
    'thirty': 30.0,
    'forty': 40.0,
    'fifty': 50.0,
    'sixty': 60.0,
    'ninety': 90.0,
    'a': 1.0,
    'an': 1.0,
    'half a': 0.5,
    'half an': 0.5,
}
_UNITS = {'s': 1.0, 'm': 60.0, 'h': 3600.0}
NUMBER_WORDS = '|'.join(sorted(_NUMBERS, key=len, reverse=True))
NUMBER = rf'(?:\d{{1,6}}(?:\.\d{{1,3}})?|(?:{NUMBER_WORDS}))(?![\w:])'
_DIGITS = r'\d{1,6}(?:\.\d{1,3})?'
_UNIT = r'(?:seconds?|secs?|s|minutes?|mins?|hours?)\b'
_ONE = rf'(?:(?:{_DIGITS} ?-?|{NUMBER} ){_UNIT})'
_DURATION = rf'{_ONE}(?:,? (?:and )?{_ONE})?'
_FLIGHT = r'(?:flight|recording|mission|video|footage|run)\b'
_OF_DAY = r'\d{1,2}:\d{2}(?::\d{2})?(?: ?utc\b)?(?![:\d])'
_ENDS = rf'the (?:start|begin|beginning|end)(?: of (?:the|this) {_FLIGHT})?\b'
_START = r'(?:(?:the )?(?:start|take-?off|launch|beginning)\b|we (?:took off|started)\b)'
_INTO = rf'(?: (?:into (?:the|this|our) {_FLIGHT}|after {_START}))'
_AGO = rf'(?: (?:ago|before the end(?: of the {_FLIGHT})?)\b)'
_MIDDLE = (
    rf'(?:half-?way(?: (?:through|into))?(?: (?:the|this) {_FLIGHT})?|'
    rf'the (?:middle|midpoint)(?: of (?:the|this) {_FLIGHT})?)\b'
)
_SINCE = rf'(?:{_OF_DAY}{_INTO}?|{_DURATION}(?:{_INTO}|{_AGO}))'
_TIME = (
    rf'(?:{_OF_DAY}{_INTO}?|(?:second|t ?=) ?{_DIGITS}|{_DURATION}(?:{_INTO}|{_AGO}| in\b)?|'
    rf'{_ENDS}|{_MIDDLE})'
)
_IN = r'(?:(?:in|during|within|over|for|of|throughout) )?the (?:very )?'
_LAST, _FIRST = r'(?:last|past|final|previous)', r'(?:first|opening|initial)'
_LONE = r'second\b|minute\b|hour\b'
_PARTS = {'half': 0.5, 'third': 1.0 / 3.0, 'quarter': 0.25}
_PART = rf'(?:half|third|quarter)\b(?: of (?:the|this|our) {_FLIGHT})?'
_WHOLE = r'(?:whole |entire |full |complete )'
_RULES = (
    ('last', rf'{_IN}{_LAST} (?P<a>{_DURATION}|{_LONE})(?: of (?:the|this|our) {_FLIGHT})?'),
    ('last', rf'(?:(?:in|during|over|within) )?{_LAST} (?P<a>{_DIGITS} ?{_UNIT})'),
    ('first', rf'{_IN}{_FIRST} (?P<a>{_DURATION}|{_LONE})(?: of (?:the|this|our) {_FLIGHT})?'),
    ('last part', rf'{_IN}(?:{_LAST}|second) (?P<a>{_PART})(?<!second third)(?<!second quarter)'),
    ('first part', rf'{_IN}{_FIRST} (?P<a>{_PART})'),
    (
        'between',
        rf'(?:in |anywhere )?(?:between|from) (?P<a>{_TIME}|{_DIGITS}) ?(?:and|to|until|till|-) '
        rf'?(?P<b>{_TIME}|{NUMBER}(?= *$|,))',
    ),
    ('at', rf'(?P<a>{_DURATION} before the end(?: of the {_FLIGHT})?)'),
    ('before', rf'(?:before|until|till|earlier than|up to|prior to) (?P<a>{_TIME})'),
    ('after', rf'(?:after|since|later than|from|past) (?P<a>{_TIME})(?: (?:on|onwards?)\b)?'),
    ('at', rf'(?:right |exactly |just )?(?:at|in) (?:time )?(?P<a>{_MIDDLE})'),
    ('at', rf'(?:right |exactly )?at (?:time )?(?:about |around |exactly )?(?P<a>{_TIME})'),
    ('at', rf'(?P<a>{_SINCE}|half-?way (?:through|into) (?:the|this) {_FLIGHT})'),
    ('at', rf'(?P<a>{_DURATION} in)(?= *$|,)'),
    (
        'all',
        rf'(?:in|during|over|throughout|on|for|across|of) (?:the|this|our) {_WHOLE}?{_FLIGHT}|'
        rf'(?:the )?{_WHOLE}(?:time|{_FLIGHT})|all flight(?: long)?\b|'
        r'(?:ever|so far|overall|in total|in all|all in all|altogether|anytime|to date)\b|'
        r'at (?:any|some) (?:time|point|moment|stage)\b|(?:up to|until|till|by) now\b|'
        rf'(?:since|after) {_START}|from (?:the )?(?:start|beginning) to (?:the )?end\b',
    ),
    (
        'now',
        r'(?:right )?now\b|currently\b|at (?:the|this) (?:very )?moment\b|at present\b|'
        r'at the end\b',
    ),
)
# Stamps from here on are those of a clock that is set: 2001.
_CLOCK_SET_NS = 10**9 * NS_PER_S
_DAY = 86400.0
# The first and last decisions lie a little inside a recording, s.
_LATE = 0.5


@dataclass(frozen=True)
class Instant:
    """A time as it was said. ``seconds`` count from the begin of the flight, ``of_day`` in UTC.

    Both are there where "14:02" may mean either; None is what it cannot mean. ``ago`` (s) counts
    back from the end, ``share`` is that of the flight which was over.
    """

    said: str
    seconds: float | None = None
    of_day: float | None = None
    ago: float | None = None
    share: float | None = None


@dataclass(frozen=True)
class Span:
    """When; empty is the whole flight.

    ``last`` (s) counts from the end of the flight, 0 is its last instant. ``begin`` and ``end``
    are the same instant where only that is meant.
    """

    begin: Instant | None = None
    end: Instant | None = None
    last: float | None = None
    said: str = ''

    @property
    def is_whole(self) -> bool:
        return self == Span(said=self.said)

    @property
    def is_instant(self) -> bool:
        """Whether one instant is meant."""
        return self.last == 0.0 or (self.begin is not None and self.begin == self.end)

    def within(self, first_ns: int, last_ns: int) -> tuple[int, int]:
        """Return the first and last instant (ns) of this span in a flight that lasted so.

        :raises QuestionError: if it does not lie in the flight, or can be understood in two ways
        """
        if self.last is not None:
            return max(first_ns, last_ns - round(self.last * NS_PER_S)), last_ns
        begin_ns, end_ns = (
            default if instant is None else _stamp_ns(instant, first_ns, last_ns)
            for instant, default in ((self.begin, first_ns), (self.end, last_ns))
        )
        if begin_ns > end_ns:
            raise QuestionError(
                f'"{self.said}" ends before it begins; name the earlier time first'
            )
        return begin_ns, end_ns


def read_span(text: str) -> tuple[Span, str]:
    """Take the time out of a question; return it and the other words.

    :raises QuestionError: if there are several times, or one that is none
    """
    spans: list[Span] = []
    for name, pattern in _RULES:
        while found := re.search(rf'(?<![\w.])(?:{pattern})', text):
            text = f'{text[: found.start()]} {text[found.end() :]}'
            spans.append(_span(name, found))
    said = [span for span in spans if not span.is_whole]
    if len(said) > 1:
        times = '" and "'.join(span.said for span in said)
        raise QuestionError(f'two times are named, "{times}"; ask for one after the other')
    return (said or spans or [Span()])[0], ' '.join(text.split())


def number_of(text: str) -> float:
    """Return the number that `NUMBER` has found."""
    return _NUMBERS[text] if text in _NUMBERS else float(text)


def _span(name: str, found: re.Match[str]) -> Span:
    said, groups = found.group().strip(), found.groupdict()
    a, b = groups.get('a') or '', groups.get('b') or ''
    if name == 'all':
        return Span(said=said)
    if name == 'now':
        return Span(last=0.0, said=said)
    if name == 'last':
        return Span(last=_duration(a), said=said)
    if name == 'first':
        return Span(end=Instant(a, _duration(a)), said=said)
    if name.endswith('part'):
        share = _PARTS[a.split()[0]]
        if name == 'first part':
            return Span(end=Instant(a, share=share), said=said)
        return Span(Instant(a, share=1.0 - share), said=said)
    first = _instant(a, _unit_of(b)) if name == 'between' else _instant(a)
    if name == 'between':
        return Span(first, _instant(b, _unit_of(a)), said=said)
    if name == 'at' and a.startswith('the end'):
        return Span(last=0.0, said=said)
    return Span(
        first if name in ('after', 'at') else None,
        first if name in ('before', 'at') else None,
        said=said,
    )


def _unit_of(text: str) -> str:
    """Return the unit of the last number, for one that has none: "between 3 and 5 seconds"."""
    found = re.search(_UNIT, text)
    return found.group() if found else ''


def _instant(text: str, unit: str = '') -> Instant:
    if re.fullmatch(_MIDDLE, text):
        return Instant(text, share=0.5)
    if ago := re.fullmatch(rf'({_DURATION}){_AGO}', text):
        return Instant(text, ago=_duration(ago.group(1)))
    if ':' in text:
        clock = re.sub(rf'{_INTO}| ?utc', '', text)
        parts = [int(part) for part in clock.split(':')]
        if any(part >= 60 for part in parts[1:]):
            raise QuestionError(f'"{text}" is no time; say m:ss of the flight, or h:mm of the day')
        of_day = 3600.0 * parts[0] + 60.0 * parts[1] + (parts[2] if len(parts) > 2 else 0.0)
        can_be_flight = len(parts) == 2 and 'utc' not in text
        can_be_of_day = parts[0] < 24 and not re.search(_INTO, text)
        return Instant(
            text,
            60.0 * parts[0] + parts[1] if can_be_flight else None,
            of_day if can_be_of_day else None,
        )
    if text.startswith('the '):
        # The end is that of the flight, which is cut to it.
        return Instant(text, float('inf') if 'end' in text.split() else 0.0)
    if bare := re.fullmatch(rf'(?:(?:second|t ?=) ?)?({NUMBER})', text):
        if not unit and text == bare.group(1):
            raise QuestionError(f'{text} what? say seconds, or m:ss from the begin of the flight')
        is_second = text != bare.group(1)
        return Instant(text, number_of(bare.group(1)) * (1.0 if is_second else _UNITS[unit[0]]))
    return Instant(text, _duration(text))


def _duration(text: str) -> float:
    """Return the seconds that a length of time says; "minute" alone is one."""
    parts = re.findall(rf'(?:({_DIGITS}|{NUMBER}) ?-?)?({_UNIT})', text)
    return sum(number_of(number or 'one') * _UNITS[unit[0]] for number, unit in parts)


def _stamp_ns(instant: Instant, first_ns: int, last_ns: int) -> int:
    lasted = (last_ns - first_ns) / NS_PER_S
    meant = []
    if instant.share is not None:
        meant.append(first_ns + round(instant.share * (last_ns - first_ns)))
    if instant.ago is not None and instant.ago <= lasted:
        meant.append(last_ns - round(instant.ago * NS_PER_S))
    if instant.seconds is not None and (
        instant.seconds <= lasted + _LATE or math.isinf(instant.seconds)
    ):
        meant.append(min(first_ns + round(min(instant.seconds, lasted) * NS_PER_S), last_ns))
    if instant.of_day is not None and first_ns >= _CLOCK_SET_NS:
        begin = datetime.fromtimestamp(first_ns / NS_PER_S, timezone.utc)
        midnight = begin.replace(hour=0, minute=0, second=0, microsecond=0)
        after = (midnight.timestamp() + instant.of_day) - first_ns / NS_PER_S
        # A flight may go on after midnight.
        after += _DAY if after < -_DAY / 2.0 else 0.0
        if -60.0 < after <= lasted:
            meant.append(first_ns + round(max(after, 0.0) * NS_PER_S))
    if len(meant) > 1:
        raise QuestionError(
            f'"{instant.said}" may be a time of the flight or of the day; say seconds, or h:mm:ss'
        )
    if not meant:
        raise QuestionError(
            f'"{instant.said}" is not in this flight, which lasted {lasted:.1f} s; times count '
            'from its begin'
        )
    return meant[0]
