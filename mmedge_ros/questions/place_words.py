"""Places in words: "within 20 m of the drone", "near track 7", "left of the drone"."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum

from mmedge_ros.memory.query import Phrase
from mmedge_ros.memory.relations import NEAR
from mmedge_ros.questions import QuestionError
from mmedge_ros.questions.time_words import number_of


class Side(Enum):
    """The half of the map on one side of the drone, by its heading."""

    LEFT = 'left'
    RIGHT = 'right'
    AHEAD = 'ahead'
    BEHIND = 'behind'


@dataclass(frozen=True)
class Anchor:
    """What distances are measured from: a track, a place (m), an object, else the drone."""

    track: int | None = None
    spot: tuple[float, float] | None = None
    phrase: Phrase | None = None

    @property
    def is_drone(self) -> bool:
        return self == Anchor()

    def __str__(self) -> str:
        if self.track is not None:
            return f'track {self.track}'
        if self.spot is not None:
            return f'{self.spot[0]:g}, {self.spot[1]:g}'
        return 'the drone' if self.phrase is None else ' '.join(('a', *self.phrase.words))


@dataclass(frozen=True)
class PlaceLimit:
    """Where: ``least`` to ``most`` m over ground from the anchor, or on a side of the drone."""

    anchor: Anchor = Anchor()
    least: float = 0.0
    most: float = float('inf')
    side: Side | None = None

    def __str__(self) -> str:
        if self.side is not None:
            joined = {Side.AHEAD: 'ahead of', Side.BEHIND: 'behind'}
            return f'{joined.get(self.side, f"{self.side.value} of")} the drone'
        if self.least and self.most < float('inf'):
            return f'{self.least:g} to {self.most:g} m from {self.anchor}'
        if self.least:
            return f'at least {self.least:g} m from {self.anchor}'
        return f'within {self.most:g} m of {self.anchor}'


DRONE = r'(?:(?:the|our|my|this) )?(?:drone|uav|aircraft|copter|quadcopter|us|you|me|here)\b'
TRACK = (
    r'(?:(?:the )?(?:track|id|object|number|no|nr)\b ?)?#?\d{1,9}\b(?! ?(?:m|met\w+|s|sec\w*)\b)'
)
_REAL = r'-?\d{1,6}(?:\.\d{1,3})?'
_SPOT = rf'(?:(?:the )?(?:point|place|position|spot)? ?(?:at )?\(?{_REAL} ?, ?{_REAL}\)?)'
ANCHOR = rf'(?:{DRONE}|{_SPOT}|{TRACK})'
_NUMBER = r'(?:\d{1,6}(?:\.\d{1,3})?|[a-z]+)'
_LENGTH = rf'(?P<length>{_NUMBER}) ?(?:m|metres?|meters?)\b(?!/)'
_AWAY = r'(?: (?:away|distance|out|off)\b)?'
_TO = (
    rf'(?:,? (?:of|from|to|around|away from) (?:(?P<fixed>{ANCHOR})'
    r'|(?P<phrase>(?:an?|the|any|some) .+$|(?:any|some)(?:body|one|thing)$)))?'
)
_LESS = (
    r'(?:within(?: a radius of)?|in a radius of|inside|(?:closer|nearer|less|not more|no more|'
    r'not farther|not further|no farther|no further) than|at most|under|not beyond)'
)
_MORE = r'(?:(?:more|farther|further) than|at least|beyond|over)'
_NEAR = r'(?:near(?:er)?(?: to)?|close to|next to|beside|alongside|around|by|at)'
_OF_DRONE = rf' of {DRONE}'
_RULES = (
    (
        'between',
        rf'(?:between|from) (?P<from>{_NUMBER})(?: ?(?:m|met(?:re|er)s?))? (?:and|to) '
        rf'{_LENGTH}{_AWAY}{_TO}',
    ),
    ('most', rf'{_LESS} (?:a |an )?{_LENGTH}{_AWAY}{_TO}'),
    ('least', rf'{_MORE} (?:a |an )?{_LENGTH}{_AWAY}{_TO}'),
    ('near', rf'{_NEAR} (?P<fixed>{ANCHOR})'),
    (
        'near',
        r'(?:near(?:er)?(?: to)?|close to|next to|beside|alongside|around) '
        r'(?P<phrase>(?:(?:an?|the|any|some) )?[a-z].*)$',
    ),
    ('near', r'nearby\b|close by\b'),
    (
        'side',
        r'(?:to|on|at) (?:the|our|its|your) (?P<side>left|right)(?: hand)?(?: side)?'
        rf'(?:{_OF_DRONE}|(?! of\b))',
    ),
    ('side', rf'(?P<side>left|right|ahead|in front){_OF_DRONE}|ahead\b(?! of\b)'),
    ('side', rf'(?P<side>behind) {DRONE}'),
)


def read_places(text: str) -> tuple[tuple[PlaceLimit, ...], str, str]:
    """Take the places out of a question.

    :returns: the places, the other words, and those that say of what object a distance is meant;
        the place has an empty phrase then
    :raises QuestionError: if a length is none
    """
    places: list[PlaceLimit] = []
    of_what = ''
    for name, pattern in _RULES:
        while found := re.search(rf'(?<![\w.-])(?:{pattern})', text):
            text = f'{text[: found.start()]} {text[found.end() :]}'.strip()
            groups = found.groupdict()
            if groups.get('phrase'):
                if of_what:
                    raise QuestionError('two objects are measured from; name one')
                of_what = groups['phrase']
            places.append(_limit(name, groups))
    return tuple(places), ' '.join(text.split()), of_what


def read_anchor(text: str) -> Anchor:
    """Return what `ANCHOR` has found."""
    if re.fullmatch(DRONE, text):
        return Anchor()
    if ',' in text:
        x, y = (float(number) for number in re.findall(_REAL, text))
        return Anchor(spot=(x, y))
    return Anchor(track=track_of(text))


def track_of(text: str) -> int:
    """Return the number that `TRACK` has found."""
    return int(re.findall(r'\d+', text)[-1])


def _limit(name: str, groups: dict[str, str | None]) -> PlaceLimit:
    if name == 'side':
        side = groups.get('side') or 'ahead'
        return PlaceLimit(side=Side.AHEAD if side == 'in front' else Side(side))
    # What object is meant is read with the vocabulary, elsewhere.
    is_object = groups.get('phrase') is not None
    anchor = Anchor(phrase=Phrase()) if is_object else read_anchor(groups.get('fixed') or 'us')
    if name == 'near':
        return PlaceLimit(anchor, most=NEAR)
    length = _metres(groups['length'] or '')
    if name == 'between':
        return PlaceLimit(anchor, least=_metres(groups['from'] or ''), most=length)
    return PlaceLimit(anchor, least=length) if name == 'least' else PlaceLimit(anchor, most=length)


def _metres(said: str) -> float:
    try:
        return number_of(said)
    except (KeyError, ValueError):
        raise QuestionError(f'"{said}" is no number of metres; say it in digits') from None
