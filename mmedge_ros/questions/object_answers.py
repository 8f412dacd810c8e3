"""Answers about objects: how many there were, whether there was one, which, and which most so."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from mmedge_ros.core.data_types import FloatArray
from mmedge_ros.questions import QuestionError
from mmedge_ros.questions.answer import Answer, Evidence
from mmedge_ros.questions.question import Measure, Sense
from mmedge_ros.questions.scope import MOST_NAMED, Scope, numbers_of
from mmedge_ros.questions.selection import Chosen
from mmedge_ros.questions.track_answers import compared_by, yes_or_no


class Count(NamedTuple):
    """How many there were: ``best``, from ``low`` seen at once to ``high`` distinct tracks."""

    best: int
    low: int
    high: int


def _count(scope: Scope) -> tuple[Count, list[Chosen]]:
    """Count the objects that tracks are of; return the tracks as well.

    Over a span those seen at once in half of the time leave out who came and went, and distinct
    tracks count everybody twice whose track broke; the best is the middle of both. Tracks that
    may look as was asked count for the upper end alone.
    """
    scope.require_watched()
    chosen = scope.chosen()
    sure = [one for one in chosen if one.is_sure]
    seen = scope.flight.observations
    if scope.flight.is_exact or scope.begin_ns == scope.end_ns or not sure:
        return Count(len(sure), len(sure), len(chosen)), chosen
    is_within = (seen.stamps_ns >= scope.begin_ns) & (seen.stamps_ns <= scope.end_ns)
    stamps = seen.stamps_ns[is_within & seen.camera]
    there = np.array([np.isin(stamps, one.track.stamps_ns[one.rows]) for one in sure])
    at_once = int(np.median(there.sum(axis=0)))
    return Count((at_once + len(sure) + 1) // 2, at_once, len(chosen)), chosen


def how_many(scope: Scope) -> Answer:
    """Say how many there were.

    :raises QuestionError: if that is not known
    """
    found, chosen = _count(scope)
    spread = f' (from {found.low} to {found.high})' if found.low < found.high else ''
    tracks = f'{len(chosen)} track' + ('s' if len(chosen) != 1 else '')
    text = f'{found.best}{spread} {scope.what()}{scope.where_when()}, by {tracks}'
    evidence = scope.evidence(chosen)
    return Answer(text, found.best, found.low, found.high, evidence=evidence)


def which_count(scope: Scope) -> Answer:
    """Say whether there were more of one kind than of another, or than a number.

    :raises QuestionError: if that is not known
    """
    ours, chosen = _count(scope)
    if scope.question.number is not None:
        number, others = scope.question.number, list[Chosen]()
        theirs, than = Count(number, number, number), str(number)
    else:
        assert scope.question.versus is not None
        versus = scope.question.versus
        if scope.is_now:
            versus = replace(versus, is_past=False)
        other = Scope(versus, scope.flight)
        theirs, others = _count(other)
        than = f'{theirs.best} {other.what()}'
        if (versus.places, versus.span) != (scope.question.places, scope.question.span):
            than += other.where_when()
    sense = scope.question.sense
    ends = {
        _holds(sense, a, b)
        for a in range(ours.low, ours.high + 1)
        for b in range(theirs.low, theirs.high + 1)
    }
    doubt = '' if len(ends) == 1 else ', but tracks that broke may decide it'
    compared = f'{ours.best} {scope.what()}{scope.where_when()} beside {than}{doubt}'
    value = _holds(sense, ours.best, theirs.best)
    begun = yes_or_no(value)
    if not scope.question.is_yes_or_no:
        value = ours.best > theirs.best
        begun = 'More of the first' if value else 'More of the second'
        begun = 'As many' if ours.best == theirs.best else begun
    evidence = scope.evidence([*chosen, *others])
    return Answer(f'{begun}: {compared}', value, evidence=evidence)


def whether(scope: Scope) -> Answer:
    """Say whether there was one.

    :raises QuestionError: if that is not known
    """
    chosen = scope.chosen()
    sure = [one for one in chosen if one.is_sure]
    if chosen and not sure:
        raise QuestionError(f'{numbers_of(chosen)} may be it: no view of them is in the memory')
    if not sure:
        scope.require_watched()
        rest = '' if scope.question.tracks else ', which says nothing of what was out of view'
        named = [f'track {number}' for number in scope.question.tracks]
        what = ' '.join((*named, scope.what())) if named else f'no {scope.what()}'
        text = f'No: {what} {"not " if named else ""}seen{scope.where_when()}{rest}'
        return Answer(text, False)
    evidence = scope.evidence(sure)
    first = min(one.begin for one in evidence)
    last = max(one.end for one in evidence)
    closest = ''
    if scope.question.places:
        nearest = _closest_of(evidence)
        closest = f', {nearest}' if nearest else ''
    when = f'from {first:.1f} to {last:.1f} s'
    text = f'Yes: {numbers_of(sure)}{scope.where_when()}, {when}{closest}'
    return Answer(text, True, evidence=evidence)


def which(scope: Scope) -> Answer:
    """Name those there were.

    :raises QuestionError: if that is not known
    """
    chosen = scope.chosen()
    if not chosen:
        scope.require_watched()
        text = f'None: no {scope.what()} seen{scope.where_when()}'
        return Answer(text, ())
    text = f'{_names_of(chosen)}{scope.where_when()}'
    numbers = tuple(sorted(one.track.id for one in chosen))
    return Answer(text, numbers, evidence=scope.evidence(chosen))


def the_most(scope: Scope) -> Answer:
    """Name the one that is most so.

    :raises QuestionError: if that is not known
    """
    measured = []
    for one in scope.chosen():
        if one.track.id == scope.question.anchor.track:
            continue
        values = compared_by(scope, one.track)[one.rows]
        values = values[np.isfinite(values)]
        if len(values):
            measured.append((_summary(scope, values), one))
    if not measured:
        scope.require_watched()
        raise QuestionError(f'no {scope.what()} was seen{scope.where_when()} that can be measured')
    sign = -1.0 if scope.question.is_largest else 1.0
    measured.sort(key=lambda pair: (sign * pair[0], pair[1].track.id))
    value, best = measured[0]
    if scope.question.measure is Measure.SPEED:
        how = f'{value:.1f} m/s in the median'
    elif scope.question.measure is Measure.FIRST_SEEN:
        how = f'seen from {value:.1f} s on'
    else:
        end = 'farthest' if scope.question.is_largest else 'closest'
        how = f'{value:.1f} m from {scope.question.anchor} at its {end}'
    text = f'{best.track.label} {best.track.id}: {how}{scope.where_when()}'
    evidence = scope.evidence([one for _, one in measured])
    return Answer(text, best.track.id, value, value, evidence=evidence)


def _summary(scope: Scope, values: FloatArray) -> float:
    if scope.question.measure is Measure.SPEED:
        return float(np.median(values))
    return float(values.max() if scope.question.is_largest else values.min())


def _names_of(chosen: Sequence[Chosen]) -> str:
    """Name tracks by label and number, a dozen at most."""
    named = [
        f'{one.track.label} {one.track.id}' + ('' if one.is_sure else ' (perhaps)')
        for one in chosen
    ]
    more = len(named) - MOST_NAMED
    return ', '.join(named[:MOST_NAMED]) + (f' and {more} more' if more > 0 else '')


def _closest_of(evidence: Sequence[Evidence]) -> str:
    """Say how close the closest came, and when; '' where no distance is known."""
    known = [one for one in evidence if one.distance is not None]
    if not known:
        return ''
    best = min(known, key=lambda one: one.distance or 0.0)
    return f'closest {best.distance:.1f} m (+- {best.deviation:.1f}) at {best.at:.1f} s'


def _holds(sense: Sense, ours: int, theirs: int) -> bool:
    return {
        Sense.MORE: ours > theirs,
        Sense.FEWER: ours < theirs,
        Sense.AT_LEAST: ours >= theirs,
        Sense.AT_MOST: ours <= theirs,
        Sense.EQUAL: ours == theirs,
    }[sense]
