"""Words of answers: objects, tracks and distances as they are said."""

from __future__ import annotations

import re
from collections.abc import Sequence

from mmedge_ros.memory.query import Phrase
from mmedge_ros.questions.answer import Evidence
from mmedge_ros.questions.selection import Chosen

_MOST_NAMED = 12


def words_of(phrases: Sequence[Phrase]) -> str:
    """Name objects as they were asked for; what has no word is a track."""
    parts = [' '.join(phrase.words) for phrase in phrases if phrase.words]
    said = ' or '.join(f'"{part}"' if ' ' in part else part for part in parts)
    return re.sub(r'\b(?:anyone|someone|somebody)\b', 'person', said) or 'track'


def yes_or_no(holds: bool) -> str:
    """Say whether something holds."""
    return 'Yes' if holds else 'No'


def numbers_of(chosen: Sequence[Chosen]) -> str:
    """Name tracks by their numbers, a dozen at most."""
    numbers = [str(one.track.id) for one in chosen]
    named = ', '.join(numbers[:_MOST_NAMED]) + (' ...' if len(numbers) > _MOST_NAMED else '')
    return f'track{"s" if len(numbers) > 1 else ""} {named}'


def names_of(chosen: Sequence[Chosen]) -> str:
    """Name tracks by label and number, a dozen at most."""
    named = [
        f'{one.track.label} {one.track.id}' + ('' if one.is_sure else ' (perhaps)')
        for one in chosen
    ]
    more = len(named) - _MOST_NAMED
    return ', '.join(named[:_MOST_NAMED]) + (f' and {more} more' if more > 0 else '')


def closest_of(evidence: Sequence[Evidence]) -> str:
    """Say how close the closest came, and when; '' where no distance is known."""
    known = [one for one in evidence if one.distance is not None]
    if not known:
        return ''
    best = min(known, key=lambda one: one.distance or 0.0)
    return f'closest {best.distance:.1f} m (+- {best.deviation:.1f}) at {best.at:.1f} s'


def direction(beside: float) -> str:
    """Say a direction as seen from the drone; ``beside`` (deg) counts to the left."""
    if abs(beside) < 45.0:
        return 'away, the way it headed'
    if abs(beside) > 135.0:
        return 'against the way it headed'
    return 'to the left' if beside > 0.0 else 'to the right'
