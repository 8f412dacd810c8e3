"""Answers about tracks: where one was, how it moved and when, and comparisons of two."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from mmedge_ros.core.data_types import NS_PER_S, FloatArray
from mmedge_ros.memory.moment import STILL_BELOW
from mmedge_ros.memory.query import Phrase
from mmedge_ros.questions import QuestionError
from mmedge_ros.questions.answer import Answer
from mmedge_ros.questions.observations import ObservedTrack
from mmedge_ros.questions.question import Asked, Measure
from mmedge_ros.questions.scope import Scope, numbers_of, words_of
from mmedge_ros.questions.selection import AT_NS, Chosen, rows_between


def status(scope: Scope) -> Answer:
    """Say what is asked of one track: its label, motion, speed, place, distance or times.

    :raises QuestionError: if it is not known
    """
    track = _subject(scope)
    if scope.question.asked is Asked.LABEL:
        rows = np.ones(len(track.stamps_ns), bool)
        text = f'Track {track.id} is a {track.label}'
        return Answer(text, track.label, evidence=scope.evidence([Chosen(track, rows)]))
    if scope.question.asked in (Asked.FIRST_SEEN, Asked.LAST_SEEN):
        return _seen(scope, track)
    if scope.question.asked is Asked.DURATION:
        return _lasting(scope, track)
    rows = _rows(scope, track)
    stated = {
        Asked.HEADING: _heading,
        Asked.SPEED: _speed,
        Asked.PLACE: _place,
        Asked.DISTANCE: _distance,
        Asked.MOTION: _motion,
    }[scope.question.asked](scope, track, rows)
    when = scope.times(track, rows)
    return replace(
        stated,
        text=f'Track {track.id} ({track.label}) {stated.text} {when}',
        evidence=scope.evidence([Chosen(track, rows)]),
    )


def _subject(scope: Scope) -> ObservedTrack:
    if scope.question.tracks:
        return scope.selector.track(scope.question.tracks[0])
    return _only(scope, scope.question.phrases)


def _only(scope: Scope, phrases: Sequence[Phrase]) -> ObservedTrack:
    """Return the one object that is meant, or of several the one with the greatest measure."""
    chosen = scope.chosen(phrases)
    if not chosen:
        raise QuestionError(f'no {words_of(phrases)} was seen{scope.where_when()}')
    if scope.question.asked is Asked.FIRST_SEEN:
        return min(chosen, key=lambda one: one.track.begin_ns).track
    if scope.question.asked is Asked.LAST_SEEN:
        return max(chosen, key=lambda one: one.track.end_ns).track
    if scope.question.asked is Asked.DISTANCE and scope.question.is_closest:
        return min(chosen, key=lambda one: _shortest(scope, one)).track
    if len(chosen) == 1:
        return chosen[0].track
    raise QuestionError(
        f'{len(chosen)} tracks are meant: {numbers_of(chosen)}; ask for one by its number'
    )


def _shortest(scope: Scope, one: Chosen) -> float:
    away = scope.selector.distances(one.track, scope.question.anchor)[one.rows]
    return float(np.fmin.reduce(away, initial=math.inf))


def _rows(scope: Scope, track: ObservedTrack) -> NDArray[np.bool_]:
    """Return the rows that are meant: of the span, or the newest one.

    :raises QuestionError: if there are none
    """
    rows = rows_between(track, scope.begin_ns, scope.end_ns, AT_NS)
    if not rows.any():
        raise QuestionError(
            f'track {track.id} was not tracked {scope.when()}; it was from '
            f'{scope.since(track.begin_ns):.1f} to {scope.since(track.end_ns):.1f} s'
        )
    if not scope.question.is_past:
        rows[: int(np.flatnonzero(rows)[-1])] = False
    return rows


def _seen(scope: Scope, track: ObservedTrack) -> Answer:
    rows = rows_between(track, scope.begin_ns, scope.end_ns) & track.seen
    if not rows.any():
        raise QuestionError(f'the camera did not see track {track.id} {scope.when()}'.rstrip())
    is_first = scope.question.asked is Asked.FIRST_SEEN
    stamp_ns = int(track.stamps_ns[rows][0 if is_first else -1])
    word = 'first' if is_first else 'last'
    text = f'Track {track.id} ({track.label}) was {word} seen at {scope.since(stamp_ns):.1f} s'
    evidence = scope.evidence([Chosen(track, rows)])
    return Answer(text, scope.since(stamp_ns), evidence=evidence)


def _lasting(scope: Scope, track: ObservedTrack) -> Answer:
    """Say how long the camera saw a track, or how long it moved as the question says."""
    rows = rows_between(track, scope.begin_ns, scope.end_ns)
    if not scope.question.motions:
        rows &= track.seen
    for motion in scope.question.motions:
        rows &= scope.selector.motion(track, motion)
    steps = np.diff(scope.flight.observations.stamps_ns)
    step = float(np.median(steps)) / NS_PER_S if len(steps) else 0.0
    value = step * int(np.count_nonzero(rows))
    named = _motion_words(scope) or 'seen by the camera'
    text = f'Track {track.id} ({track.label}) was {named} for {value:.1f} s{scope.where_when()}'
    evidence = scope.evidence([Chosen(track, rows)]) if rows.any() else ()
    return Answer(text, value, evidence=evidence)


def _heading(scope: Scope, track: ObservedTrack, rows: NDArray[np.bool_]) -> Answer:
    east, north = track.velocities[rows, :2].mean(axis=0)
    speed = math.hypot(east, north)
    if speed < STILL_BELOW:
        return Answer(f'stood still ({speed:.1f} m/s)', 'still')
    angle = math.degrees(math.atan2(north, east))
    text = f'moved towards {angle:.0f} deg at {speed:.1f} m/s (0 deg: x, 90 deg: y)'
    headings = scope.selector.headings(track.stamps_ns)[rows]
    headings = headings[np.isfinite(headings)]
    if len(headings):
        beside = (angle - math.degrees(float(headings.mean())) + 180.0) % 360.0 - 180.0
        text += f', seen from the drone {_direction(beside)}'
    return Answer(text, angle)


def _speed(scope: Scope, track: ObservedTrack, rows: NDArray[np.bool_]) -> Answer:
    speeds = _speeds(track)[rows]
    value = float(np.median(speeds))
    if scope.question.is_largest:
        value = float(speeds.max())
        return Answer(f'moved at up to {value:.1f} m/s', value)
    if len(speeds) == 1:
        return Answer(f'moved at {value:.1f} m/s', value)
    low, high = float(speeds.min()), float(speeds.max())
    return Answer(f'moved at {value:.1f} m/s ({low:.1f} to {high:.1f})', value, low, high)


def _place(scope: Scope, track: ObservedTrack, rows: NDArray[np.bool_]) -> Answer:
    row = int(np.flatnonzero(rows)[-1])
    x, y = map(float, track.positions[row, :2])
    frame = scope.flight.observations.frame_id
    text = f'was at {x:.1f}, {y:.1f} m in {frame} (+- {track.deviations[row]:.1f} m)'
    if len(rows[rows]) > 1:
        text += ' at the end'
    return Answer(text, (x, y))


def _distance(scope: Scope, track: ObservedTrack, rows: NDArray[np.bool_]) -> Answer:
    anchor = scope.question.anchor
    distances = scope.selector.distances(track, anchor)[rows]
    deviations = scope.selector.deviations(track, anchor)[rows]
    known = np.isfinite(distances)
    if not known.any():
        raise QuestionError(f'nothing is known of {anchor} while track {track.id} was tracked')
    distances, deviations = distances[known], deviations[known]
    low, high = float(distances.min()), float(distances.max())
    nearest = float(deviations[int(np.argmin(distances))])
    if scope.question.is_closest:
        return Answer(f'came as close as {low:.1f} m (+- {nearest:.1f}) to {anchor}', low)
    value = float(np.median(distances))
    spread = f'({low:.1f} to {high:.1f})' if len(distances) > 1 else f'(+- {nearest:.1f})'
    return Answer(f'was {value:.1f} m {spread} from {anchor}', value, low, high)


def _motion(scope: Scope, track: ObservedTrack, rows: NDArray[np.bool_]) -> Answer:
    held = np.ones(len(rows), bool)
    for motion in scope.question.motions:
        held &= scope.selector.motion(track, motion)
    share = float(held[rows].mean())
    does = share >= 0.5
    speed = float(np.median(_speeds(track)[rows]))
    named = _motion_words(scope)
    text = f'was {"" if does else "not "}{named} ({speed:.1f} m/s, {share:.0%} of the time)'
    return Answer(text, does)


def pair(scope: Scope) -> Answer:
    """Compare two tracks.

    :raises QuestionError: if it is not known of both
    """
    how, sides = scope.question, _sides(scope)
    ours, theirs = (_worth(scope, one) for one in sides)
    is_first = ours > theirs if how.is_largest else ours < theirs
    first, second = (one.track.id for one in sides)
    winner = first if is_first else second
    unit = {
        Measure.SPEED: 'm/s',
        Measure.DISTANCE: f'm from {how.anchor}',
        Measure.FIRST_SEEN: 's (first seen)',
    }[how.measure]
    doubt = ''
    if how.measure is Measure.DISTANCE:
        spread = math.hypot(*(float(np.median(one.track.deviations[one.rows])) for one in sides))
        if abs(ours - theirs) < spread:
            doubt = ', which differ by less than one standard deviation'
    begun = yes_or_no(is_first) if how.is_yes_or_no else f'Track {winner}'
    when = '' if how.is_past else f' {scope.times(sides[0].track, sides[0].rows)}'
    return Answer(
        f'{begun}: track {first} {ours:.1f}, track {second} {theirs:.1f} {unit}'
        f'{scope.where_when()}{when}{doubt}',
        is_first if how.is_yes_or_no else winner,
        evidence=scope.evidence(sides),
    )


def _sides(scope: Scope) -> list[Chosen]:
    """Return the two tracks that are compared, with the rows that are meant."""
    how = scope.question
    if how.versus is None:
        first, second = map(scope.selector.track, how.tracks)
    else:
        first, second = (_only(scope, of) for of in (how.phrases, how.versus.phrases))
        if first.id == second.id:
            raise QuestionError(f'both of these are track {first.id}; name two objects')
    rows = [rows_between(track, scope.begin_ns, scope.end_ns, AT_NS) for track in (first, second)]
    for track, held in zip((first, second), rows, strict=True):
        if not held.any():
            _rows(scope, track)
    if not how.is_past and scope.begin_ns < scope.end_ns:
        common = np.intersect1d(first.stamps_ns[rows[0]], second.stamps_ns[rows[1]])
        if not len(common):
            raise QuestionError(
                f'tracks {first.id} and {second.id} were never there at once; ask which "was" '
                'or "came" so'
            )
        rows = [track.stamps_ns == common[-1] for track in (first, second)]
    return [Chosen(first, rows[0]), Chosen(second, rows[1])]


def _worth(scope: Scope, one: Chosen) -> float:
    """Return the number by which a track is compared."""
    how = scope.question
    known = compared_by(scope, one.track)[one.rows]
    known = known[np.isfinite(known)]
    if not len(known):
        raise QuestionError(f'nothing is known of {how.anchor} beside track {one.track.id}')
    is_least = how.is_closest and how.measure is Measure.DISTANCE
    is_least |= how.measure is Measure.FIRST_SEEN
    return float(known.min() if is_least else np.median(known))


def compared_by(scope: Scope, track: ObservedTrack) -> FloatArray:
    """Return what tracks are compared by (N,)."""
    if scope.question.measure is Measure.SPEED:
        return _speeds(track)
    if scope.question.measure is Measure.FIRST_SEEN:
        seconds = (track.stamps_ns - scope.flight.observations.begin_ns) / NS_PER_S
        return np.where(track.seen, seconds, np.nan)
    return scope.selector.distances(track, scope.question.anchor)


def _motion_words(scope: Scope) -> str:
    return ', '.join(motion.name.lower() for motion in scope.question.motions)


def yes_or_no(holds: bool) -> str:
    """Say whether something holds."""
    return 'Yes' if holds else 'No'


def _direction(beside: float) -> str:
    """Say a direction as seen from the drone; ``beside`` (deg) counts to the left."""
    if abs(beside) < 45.0:
        return 'away, the way it headed'
    if abs(beside) > 135.0:
        return 'against the way it headed'
    return 'to the left' if beside > 0.0 else 'to the right'


def _speeds(track: ObservedTrack) -> FloatArray:
    return np.asarray(np.hypot(track.velocities[:, 0], track.velocities[:, 1]))
