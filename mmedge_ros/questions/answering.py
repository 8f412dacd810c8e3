"""Answers questions from what was perceived, without a language model, or says why not.

Times in answers count from the begin of the flight (s), distances are meant over ground (m).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mmedge_ros.data_types import NS_PER_S, FloatArray
from mmedge_ros.fusion.decision_fusion import RADAR_ONLY_LABEL
from mmedge_ros.memory.moment import STILL_BELOW
from mmedge_ros.memory.query import Phrase
from mmedge_ros.questions import QuestionError
from mmedge_ros.questions.answer import TRACKS, TRACKS_AND_MEMORY, Answer, Evidence, Value
from mmedge_ros.questions.answer_words import (
    closest_of,
    direction,
    names_of,
    numbers_of,
    words_of,
    yes_or_no,
)
from mmedge_ros.questions.grammar import read_question
from mmedge_ros.questions.observations import Observations, ObservedTrack
from mmedge_ros.questions.question import Asked, Measure, Question, Sense
from mmedge_ros.questions.selection import (
    AT_NS,
    Chosen,
    KnownFlight,
    Selector,
    no_looks,
    rows_between,
)

_MOST_VIEWS = 3
# An instant is answered from a decision that is nearer than this.
_FAR_NS = NS_PER_S
# What is asked of objects in general; "is" means now there.
_OF_OBJECTS = {Asked.COUNT, Asked.EXISTS, Asked.LIST, Asked.EXTREME, Asked.COUNTS}


class Count(NamedTuple):
    """How many there were: ``best``, from ``low`` seen at once to ``high`` distinct tracks."""

    best: int
    low: int
    high: int


def counted(observations: Observations, chosen: Sequence[Chosen], *, is_exact: bool) -> Count:
    """Count the objects that tracks are of.

    Over a span the most seen at once in half of the time misses those who came and went, and
    distinct tracks count everybody whose track broke twice; the best is the middle of both. Tracks
    that may look as was asked count for the upper end alone.
    """
    sure = [one for one in chosen if one.is_sure]
    if is_exact or not sure:
        return Count(len(sure), len(sure), len(chosen))
    stamps = observations.stamps_ns[observations.camera]
    there = np.array([np.isin(stamps, one.track.stamps_ns[one.rows]) for one in sure])
    at_once = int(np.median(there.sum(axis=0))) if there.size else 0
    return Count((at_once + len(sure) + 1) // 2, at_once, len(chosen))


def ask(text: str, flight: KnownFlight) -> Answer:
    """Read a question and answer it; one that is not understood is refused."""
    labels = {*flight.labels, *(track.label for track in flight.observations.tracks)}
    try:
        # "moving" is what tracks of the radar alone are called, and a word of its own.
        question = read_question(text, sorted(labels - {RADAR_ONLY_LABEL}))
    except QuestionError as err:
        return Answer(str(err), refused=str(err))
    return answer(question, flight)


def answer(question: Question, flight: KnownFlight) -> Answer:
    """Answer a question, or say in ``refused`` why that is not possible."""
    try:
        found = _Answering(question, flight).answer()
    except QuestionError as err:
        return Answer(str(err), refused=str(err))
    taken = ''.join(f'; {word} is taken for {other}' for word, other in question.taken_as)
    return replace(found, text=f'{found.text}{taken}.')


class _Answering:
    """Answers one question."""

    def __init__(self, question: Question, flight: KnownFlight) -> None:
        observations = flight.observations
        if not len(observations.stamps_ns):
            raise QuestionError('nothing was perceived in this flight; look at the recording')
        self._asked, self._observed, self._flight = question, observations, flight
        self._selector = Selector(observations, flight.looks_like)
        phrases = (*question.phrases, *_phrases_of(question))
        if question.versus is not None:
            phrases = (*phrases, *question.versus.phrases, *_phrases_of(question.versus))
        _require_labels(phrases, flight.labels)
        self._has_looks = any(phrase.attributes for phrase in phrases)
        if self._has_looks and flight.looks_like is no_looks:
            raise QuestionError(
                'looks are known from a memory of the flight alone, and there is none that can be '
                'read; mmedge memory build makes it'
            )
        span = question.span.within(observations.begin_ns, observations.end_ns)
        # What is asked of now, and not of tracks, which have a newest instant of their own.
        self._is_now = (
            not question.is_past and not question.span.said and question.asked in _OF_OBJECTS
        )
        if self._is_now:
            span = (self._newest(),) * 2
        self._begin_ns, self._end_ns = span
        if question.span.is_instant:
            nearest = int(np.argmin(np.abs(observations.stamps_ns - span[0])))
            self._begin_ns = self._end_ns = int(observations.stamps_ns[nearest])
        self._watched = self._watched_share(span)

    def answer(self) -> Answer:
        """Return the answer.

        :raises QuestionError: if it is not known
        """
        for number, label in self._asked.called:
            track = self._selector.track(number)
            if track.label != label:
                raise QuestionError(f'track {number} is a {track.label}, no {label}')
        answers: dict[Asked, Callable[[], Answer]] = {
            Asked.COUNT: self._counted,
            Asked.COUNTS: self._counts_compared,
            Asked.EXISTS: self._exists,
            Asked.LIST: self._listed,
            Asked.EXTREME: self._extreme,
            Asked.PAIR: self._pair,
        }
        made = answers.get(self._asked.asked, self._status)()
        return replace(
            made,
            watched=self._watched,
            source=TRACKS_AND_MEMORY if self._has_looks else TRACKS,
        )

    def _newest(self) -> int:
        """Return the newest instant (ns) at which all tracks that are named were there."""
        asked = self._asked
        anchors = (asked.anchor, *(place.anchor for place in asked.places))
        named = {*asked.tracks, *(one.track for one in anchors if one.track is not None)}
        common = self._observed.stamps_ns
        for number in named:
            common = np.intersect1d(common, self._selector.track(number).stamps_ns)
        return int(common[-1]) if len(common) else self._observed.end_ns

    def _watched_share(self, span: tuple[int, int]) -> float:
        stamps, camera = self._observed.stamps_ns, self._observed.camera
        first, last = min(span[0], self._begin_ns), max(span[1], self._end_ns)
        within = (stamps >= first) & (stamps <= last)
        is_far = span[0] == span[1] and np.abs(stamps - span[0]).min() > _FAR_NS
        if not within.any() or is_far:
            raise QuestionError(
                f'nothing was perceived {self._when() or "then"}; ask for another time'
            )
        return float(camera[within].mean())

    def _require_watched(self) -> None:
        if not self._watched:
            raise QuestionError(
                f'the camera gave nothing {self._when() or "in this flight"}, so it is not known '
                'who was there; ask for another time'
            )

    # Of objects.

    def _chosen(self, phrases: Sequence[Phrase] | None = None) -> list[Chosen]:
        return self._selector.chosen(
            self._asked.phrases if phrases is None else phrases,
            self._asked.places,
            self._begin_ns,
            self._end_ns,
            self._asked.tracks,
        )

    def _count(self) -> tuple[Count, list[Chosen]]:
        self._require_watched()
        chosen = self._chosen()
        is_exact = self._flight.is_exact or self._begin_ns == self._end_ns
        return counted(self._within, chosen, is_exact=is_exact), chosen

    @property
    def _within(self) -> Observations:
        """What was perceived in the span."""
        seen = self._observed
        rows = (seen.stamps_ns >= self._begin_ns) & (seen.stamps_ns <= self._end_ns)
        return replace(seen, stamps_ns=seen.stamps_ns[rows], camera=seen.camera[rows])

    def _counted(self) -> Answer:
        found, chosen = self._count()
        spread = f' (from {found.low} to {found.high})' if found.low < found.high else ''
        tracks = f'{len(chosen)} track' + ('s' if len(chosen) != 1 else '')
        text = f'{found.best}{spread} {self._what()}{self._where_when()}, by {tracks}'
        evidence = self._evidence(chosen)
        return Answer(text, found.best, found.low, found.high, evidence=evidence)

    def _counts_compared(self) -> Answer:
        ours, chosen = self._count()
        if self._asked.number is not None:
            number, others = self._asked.number, list[Chosen]()
            theirs, than = Count(number, number, number), str(number)
        else:
            assert self._asked.versus is not None
            versus = self._asked.versus
            if self._is_now:
                versus = replace(versus, is_past=False)
            other = _Answering(versus, self._flight)
            theirs, others = other._count()
            than = f'{theirs.best} {other._what()}'
            if (versus.places, versus.span) != (self._asked.places, self._asked.span):
                than += other._where_when()
        sense = self._asked.sense
        ends = {
            _holds(sense, a, b)
            for a in range(ours.low, ours.high + 1)
            for b in range(theirs.low, theirs.high + 1)
        }
        doubt = '' if len(ends) == 1 else ', but tracks that broke may decide it'
        compared = f'{ours.best} {self._what()}{self._where_when()} beside {than}{doubt}'
        value = _holds(sense, ours.best, theirs.best)
        begun = yes_or_no(value)
        if not self._asked.is_yes_or_no:
            value = ours.best > theirs.best
            begun = 'More of the first' if value else 'More of the second'
            begun = 'As many' if ours.best == theirs.best else begun
        evidence = self._evidence([*chosen, *others])
        return Answer(f'{begun}: {compared}', value, evidence=evidence)

    def _exists(self) -> Answer:
        chosen = self._chosen()
        sure = [one for one in chosen if one.is_sure]
        if chosen and not sure:
            raise QuestionError(
                f'{numbers_of(chosen)} may be it: no view of them is in the memory'
            )
        if not sure:
            self._require_watched()
            rest = '' if self._asked.tracks else ', which says nothing of what was out of view'
            named = [f'track {number}' for number in self._asked.tracks]
            what = ' '.join((*named, self._what())) if named else f'no {self._what()}'
            text = f'No: {what} {"not " if named else ""}seen{self._where_when()}{rest}'
            return Answer(text, False)
        evidence = self._evidence(sure)
        first = min(one.begin for one in evidence)
        last = max(one.end for one in evidence)
        closest = ''
        if self._asked.places:
            nearest = closest_of(evidence)
            closest = f', {nearest}' if nearest else ''
        when = f'from {first:.1f} to {last:.1f} s'
        text = f'Yes: {numbers_of(sure)}{self._where_when()}, {when}{closest}'
        return Answer(text, True, evidence=evidence)

    def _listed(self) -> Answer:
        chosen = self._chosen()
        if not chosen:
            self._require_watched()
            text = f'None: no {self._what()} seen{self._where_when()}'
            return Answer(text, ())
        text = f'{names_of(chosen)}{self._where_when()}'
        numbers = tuple(sorted(one.track.id for one in chosen))
        return Answer(text, numbers, evidence=self._evidence(chosen))

    def _extreme(self) -> Answer:
        measured = []
        for one in self._chosen():
            if one.track.id == self._asked.anchor.track:
                continue
            values = self._values(one.track)[one.rows]
            values = values[np.isfinite(values)]
            if len(values):
                measured.append((self._summary(values), one))
        if not measured:
            self._require_watched()
            raise QuestionError(
                f'no {self._what()} was seen{self._where_when()} that can be measured'
            )
        sign = -1.0 if self._asked.is_largest else 1.0
        measured.sort(key=lambda pair: (sign * pair[0], pair[1].track.id))
        value, best = measured[0]
        if self._asked.measure is Measure.SPEED:
            how = f'{value:.1f} m/s in the median'
        elif self._asked.measure is Measure.FIRST_SEEN:
            how = f'seen from {value:.1f} s on'
        else:
            end = 'farthest' if self._asked.is_largest else 'closest'
            how = f'{value:.1f} m from {self._asked.anchor} at its {end}'
        text = f'{best.track.label} {best.track.id}: {how}{self._where_when()}'
        evidence = self._evidence([one for _, one in measured])
        return Answer(text, best.track.id, value, value, evidence=evidence)

    # Of tracks.

    def _status(self) -> Answer:
        track = self._subject()
        if self._asked.asked is Asked.LABEL:
            rows = np.ones(len(track.stamps_ns), bool)
            text = f'Track {track.id} is a {track.label}'
            return Answer(text, track.label, evidence=self._evidence([Chosen(track, rows)]))
        if self._asked.asked in (Asked.FIRST_SEEN, Asked.LAST_SEEN):
            return self._seen(track)
        if self._asked.asked is Asked.DURATION:
            return self._lasting(track)
        rows = self._rows(track)
        stated = {
            Asked.HEADING: self._heading,
            Asked.SPEED: self._speed,
            Asked.PLACE: self._place,
            Asked.DISTANCE: self._distance,
            Asked.MOTION: self._motion,
        }[self._asked.asked](track, rows)
        when = self._times(track, rows)
        return replace(
            stated,
            text=f'Track {track.id} ({track.label}) {stated.text} {when}',
            evidence=self._evidence([Chosen(track, rows)]),
        )

    def _subject(self) -> ObservedTrack:
        if self._asked.tracks:
            return self._selector.track(self._asked.tracks[0])
        return self._only(self._asked.phrases)

    def _only(self, phrases: Sequence[Phrase]) -> ObservedTrack:
        """Return the one object that is meant, or the one of several that is most so."""
        chosen = self._chosen(phrases)
        if not chosen:
            raise QuestionError(f'no {words_of(phrases)} was seen{self._where_when()}')
        if self._asked.asked is Asked.FIRST_SEEN:
            return min(chosen, key=lambda one: one.track.begin_ns).track
        if self._asked.asked is Asked.LAST_SEEN:
            return max(chosen, key=lambda one: one.track.end_ns).track
        if self._asked.asked is Asked.DISTANCE and self._asked.is_closest:
            return min(chosen, key=self._shortest).track
        if len(chosen) == 1:
            return chosen[0].track
        raise QuestionError(
            f'{len(chosen)} tracks are meant: {numbers_of(chosen)}; ask for one by its number'
        )

    def _shortest(self, one: Chosen) -> float:
        away = self._selector.distances(one.track, self._asked.anchor)[one.rows]
        return float(np.fmin.reduce(away, initial=math.inf))

    def _rows(self, track: ObservedTrack) -> NDArray[np.bool_]:
        """Return the rows that are meant: of the span, or the newest one.

        :raises QuestionError: if there are none
        """
        rows = rows_between(track, self._begin_ns, self._end_ns, AT_NS)
        if not rows.any():
            raise QuestionError(
                f'track {track.id} was not tracked {self._when()}; it was from '
                f'{self._since(track.begin_ns):.1f} to {self._since(track.end_ns):.1f} s'
            )
        if not self._asked.is_past:
            rows[: int(np.flatnonzero(rows)[-1])] = False
        return rows

    def _seen(self, track: ObservedTrack) -> Answer:
        rows = rows_between(track, self._begin_ns, self._end_ns) & track.seen
        if not rows.any():
            raise QuestionError(f'the camera did not see track {track.id} {self._when()}'.rstrip())
        is_first = self._asked.asked is Asked.FIRST_SEEN
        stamp_ns = int(track.stamps_ns[rows][0 if is_first else -1])
        word = 'first' if is_first else 'last'
        text = f'Track {track.id} ({track.label}) was {word} seen at {self._since(stamp_ns):.1f} s'
        evidence = self._evidence([Chosen(track, rows)])
        return Answer(text, self._since(stamp_ns), evidence=evidence)

    def _lasting(self, track: ObservedTrack) -> Answer:
        """Say how long the camera saw a track, or it moved so."""
        rows = rows_between(track, self._begin_ns, self._end_ns)
        if not self._asked.motions:
            rows &= track.seen
        for motion in self._asked.motions:
            rows &= self._selector.motion(track, motion)
        steps = np.diff(self._observed.stamps_ns)
        step = float(np.median(steps)) / NS_PER_S if len(steps) else 0.0
        value = step * int(np.count_nonzero(rows))
        named = self._motion_words() or 'seen by the camera'
        text = (
            f'Track {track.id} ({track.label}) was {named} for {value:.1f} s{self._where_when()}'
        )
        evidence = self._evidence([Chosen(track, rows)]) if rows.any() else ()
        return Answer(text, value, evidence=evidence)

    def _heading(self, track: ObservedTrack, rows: NDArray[np.bool_]) -> Answer:
        east, north = track.velocities[rows, :2].mean(axis=0)
        speed = math.hypot(east, north)
        if speed < STILL_BELOW:
            return Answer(f'stood still ({speed:.1f} m/s)', 'still')
        angle = math.degrees(math.atan2(north, east))
        text = f'moved towards {angle:.0f} deg at {speed:.1f} m/s (0 deg: x, 90 deg: y)'
        headings = self._selector.headings(track.stamps_ns)[rows]
        headings = headings[np.isfinite(headings)]
        if len(headings):
            beside = (angle - math.degrees(float(headings.mean())) + 180.0) % 360.0 - 180.0
            text += f', seen from the drone {direction(beside)}'
        return Answer(text, angle)

    def _speed(self, track: ObservedTrack, rows: NDArray[np.bool_]) -> Answer:
        speeds = _speeds(track)[rows]
        value = float(np.median(speeds))
        if self._asked.is_largest:
            value = float(speeds.max())
            return Answer(f'moved at up to {value:.1f} m/s', value)
        if len(speeds) == 1:
            return Answer(f'moved at {value:.1f} m/s', value)
        low, high = float(speeds.min()), float(speeds.max())
        return Answer(f'moved at {value:.1f} m/s ({low:.1f} to {high:.1f})', value, low, high)

    def _place(self, track: ObservedTrack, rows: NDArray[np.bool_]) -> Answer:
        row = int(np.flatnonzero(rows)[-1])
        x, y = map(float, track.positions[row, :2])
        frame = self._observed.frame_id
        text = f'was at {x:.1f}, {y:.1f} m in {frame} (+- {track.deviations[row]:.1f} m)'
        if len(rows[rows]) > 1:
            text += ' at the end'
        return Answer(text, (x, y))

    def _distance(self, track: ObservedTrack, rows: NDArray[np.bool_]) -> Answer:
        anchor = self._asked.anchor
        distances = self._selector.distances(track, anchor)[rows]
        deviations = self._selector.deviations(track, anchor)[rows]
        known = np.isfinite(distances)
        if not known.any():
            raise QuestionError(f'nothing is known of {anchor} while track {track.id} was tracked')
        distances, deviations = distances[known], deviations[known]
        low, high = float(distances.min()), float(distances.max())
        nearest = float(deviations[int(np.argmin(distances))])
        if self._asked.is_closest:
            return Answer(f'came as close as {low:.1f} m (+- {nearest:.1f}) to {anchor}', low)
        value = float(np.median(distances))
        spread = f'({low:.1f} to {high:.1f})' if len(distances) > 1 else f'(+- {nearest:.1f})'
        return Answer(f'was {value:.1f} m {spread} from {anchor}', value, low, high)

    def _motion(self, track: ObservedTrack, rows: NDArray[np.bool_]) -> Answer:
        held = np.ones(len(rows), bool)
        for motion in self._asked.motions:
            held &= self._selector.motion(track, motion)
        share = float(held[rows].mean())
        does = share >= 0.5
        speed = float(np.median(_speeds(track)[rows]))
        named = self._motion_words()
        text = f'was {"" if does else "not "}{named} ({speed:.1f} m/s, {share:.0%} of the time)'
        return Answer(text, does)

    # Of two tracks.

    def _pair(self) -> Answer:
        if self._asked.versus is None:
            first, second = map(self._selector.track, self._asked.tracks)
        else:
            first = self._only(self._asked.phrases)
            second = self._only(self._asked.versus.phrases)
            if first.id == second.id:
                raise QuestionError(f'both of these are track {first.id}; name two objects')
        rows = [
            rows_between(track, self._begin_ns, self._end_ns, AT_NS) for track in (first, second)
        ]
        how = self._asked
        for track, held in zip((first, second), rows, strict=True):
            if not held.any():
                self._rows(track)
        if not how.is_past and self._begin_ns < self._end_ns:
            common = np.intersect1d(first.stamps_ns[rows[0]], second.stamps_ns[rows[1]])
            if not len(common):
                raise QuestionError(
                    f'tracks {first.id} and {second.id} were never there at once; ask which "was" '
                    'or "came" so'
                )
            rows = [track.stamps_ns == common[-1] for track in (first, second)]
        values = []
        for track, held in zip((first, second), rows, strict=True):
            known = self._values(track)[held]
            known = known[np.isfinite(known)]
            if not len(known):
                raise QuestionError(f'nothing is known of {how.anchor} beside track {track.id}')
            is_least = how.is_closest and how.measure is Measure.DISTANCE
            is_least |= how.measure is Measure.FIRST_SEEN
            values.append(float(known.min() if is_least else np.median(known)))
        ours, theirs = values
        is_first = ours > theirs if how.is_largest else ours < theirs
        unit = {
            Measure.SPEED: 'm/s',
            Measure.DISTANCE: f'm from {how.anchor}',
            Measure.FIRST_SEEN: 's (first seen)',
        }[how.measure]
        said = f'track {first.id} {ours:.1f}, track {second.id} {theirs:.1f} {unit}'
        begun = (
            yes_or_no(is_first)
            if how.is_yes_or_no
            else f'Track {(first if is_first else second).id}'
        )
        winner: Value = is_first if how.is_yes_or_no else (first if is_first else second).id
        doubt = ''
        if how.measure is Measure.DISTANCE:
            spread = math.hypot(
                *(
                    float(np.median(t.deviations[r]))
                    for t, r in zip((first, second), rows, strict=True)
                )
            )
            doubt = ', which differ by less than one standard deviation'
            doubt = doubt if abs(ours - theirs) < spread else ''
        chosen = [Chosen(t, r) for t, r in zip((first, second), rows, strict=True)]
        when = '' if how.is_past else f' {self._times(first, rows[0])}'
        return Answer(
            f'{begun}: {said}{self._where_when()}{when}{doubt}',
            winner,
            evidence=self._evidence(chosen),
        )

    def _values(self, track: ObservedTrack) -> FloatArray:
        """Return what tracks are compared by (N,)."""
        if self._asked.measure is Measure.SPEED:
            return _speeds(track)
        if self._asked.measure is Measure.FIRST_SEEN:
            seconds = (track.stamps_ns - self._observed.begin_ns) / NS_PER_S
            return np.where(track.seen, seconds, np.nan)
        return self._selector.distances(track, self._asked.anchor)

    def _summary(self, values: FloatArray) -> float:
        if self._asked.measure is Measure.SPEED:
            return float(np.median(values))
        return float(values.max() if self._asked.is_largest else values.min())

    # In words.

    def _evidence(self, chosen: Sequence[Chosen]) -> tuple[Evidence, ...]:
        return tuple(map(self._evident, chosen))

    def _evident(self, one: Chosen) -> Evidence:
        track, rows = one.track, one.rows
        stamps = track.stamps_ns[rows]
        evidence = Evidence(
            track.id,
            track.label,
            self._since(int(stamps[0])),
            self._since(int(stamps[-1])),
            views=track.view_ids[:_MOST_VIEWS],
        )
        anchors = [place.anchor for place in self._asked.places if place.side is None]
        anchor = (anchors or [self._asked.anchor])[0]
        if anchor.track == track.id or (anchor.is_drone and self._observed.drone is None):
            return evidence
        distances = self._selector.distances(track, anchor)[rows]
        if not np.isfinite(distances).any():
            return evidence
        nearest = int(np.nanargmin(distances))
        deviations = self._selector.deviations(track, anchor)[rows]
        return evidence._replace(
            distance=float(distances[nearest]),
            deviation=float(deviations[nearest]),
            at=self._since(int(stamps[nearest])),
        )

    def _since(self, stamp_ns: int) -> float:
        return (stamp_ns - self._observed.begin_ns) / NS_PER_S

    def _what(self) -> str:
        return words_of(self._asked.phrases)

    def _motion_words(self) -> str:
        return ', '.join(motion.name.lower() for motion in self._asked.motions)

    def _when(self) -> str:
        """Say the span in seconds from the begin; '' for the whole flight."""
        if self._asked.span.is_whole and not self._is_now:
            return ''
        begin, end = self._since(self._begin_ns), self._since(self._end_ns)
        return f'at {begin:.1f} s' if begin == end else f'between {begin:.1f} and {end:.1f} s'

    def _where_when(self) -> str:
        places = [str(place) for place in self._asked.places]
        return ''.join(f' {word}' for word in (*places, self._when()) if word)

    def _times(self, track: ObservedTrack, rows: NDArray[np.bool_]) -> str:
        stamps = track.stamps_ns[rows]
        begin, end = self._since(int(stamps[0])), self._since(int(stamps[-1]))
        return f'at {begin:.1f} s' if begin == end else f'from {begin:.1f} to {end:.1f} s'


def _phrases_of(question: Question) -> list[Phrase]:
    anchors = (question.anchor, *(place.anchor for place in question.places))
    return [anchor.phrase for anchor in anchors if anchor.phrase is not None]


def _require_labels(phrases: Sequence[Phrase], known: Sequence[str]) -> None:
    """Make sure that the detector could have seen what is asked for.

    :raises QuestionError: if not
    """
    missing = {label for phrase in phrases for label in phrase.labels} - set(known)
    if known and missing:
        raise QuestionError(
            f'the detector does not know {" or ".join(sorted(missing))}, so it is not '
            f'known whether there was one; it knows {", ".join(known)}'
        )


def _speeds(track: ObservedTrack) -> FloatArray:
    return np.asarray(np.hypot(track.velocities[:, 0], track.velocities[:, 1]))


def _holds(sense: Sense, ours: int, theirs: int) -> bool:
    return {
        Sense.MORE: ours > theirs,
        Sense.FEWER: ours < theirs,
        Sense.AT_LEAST: ours >= theirs,
        Sense.AT_MOST: ours <= theirs,
        Sense.EQUAL: ours == theirs,
    }[sense]
