"""A question with the span and the tracks of a flight that it is about, and words for both.

Times in answers count from the begin of the flight (s), distances are meant over ground (m).
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mmedge_ros.core.data_types import NS_PER_S
from mmedge_ros.memory.query import Phrase
from mmedge_ros.questions import QuestionError
from mmedge_ros.questions.answer import Evidence
from mmedge_ros.questions.observations import ObservedTrack
from mmedge_ros.questions.question import Asked, Question
from mmedge_ros.questions.selection import Chosen, KnownFlight, Selector, no_looks

# So many tracks are named in an answer.
MOST_NAMED, _MOST_VIEWS = 12, 3
# An instant is answered from a decision that is nearer than this.
_FAR_NS = NS_PER_S
# What is asked of objects in general; "is" means now there.
_OF_OBJECTS = {Asked.COUNT, Asked.EXISTS, Asked.LIST, Asked.EXTREME, Asked.COUNTS}


class Scope:
    """The span and the tracks that a question is about.

    :ivar begin_ns: first instant that is meant; ``end_ns`` is the last one
    :ivar is_now: whether it is asked of now, where no time was named
    :ivar watched: share of the span in which the camera sent something
    :ivar has_looks: whether it asks how something looks
    :raises QuestionError: if nothing is known of it
    """

    def __init__(self, question: Question, flight: KnownFlight) -> None:
        observations = flight.observations
        if not len(observations.stamps_ns):
            raise QuestionError('nothing was perceived in this flight; look at the recording')
        self.question, self.flight = question, flight
        self.selector = Selector(observations, flight.looks_like)
        phrases = (*question.phrases, *_phrases_of(question))
        if question.versus is not None:
            phrases = (*phrases, *question.versus.phrases, *_phrases_of(question.versus))
        _require_labels(phrases, flight.labels)
        self.has_looks = any(phrase.attributes for phrase in phrases)
        if self.has_looks and flight.looks_like is no_looks:
            raise QuestionError(
                'looks are known from a memory of the flight alone, and there is none that can be '
                'read; mmedge memory build makes it'
            )
        span = question.span.within(observations.begin_ns, observations.end_ns)
        # What is asked of now, and not of tracks, which have a newest instant of their own.
        self.is_now = (
            not question.is_past and not question.span.said and question.asked in _OF_OBJECTS
        )
        if self.is_now:
            span = (self._newest(),) * 2
        self.begin_ns, self.end_ns = span
        if question.span.is_instant:
            nearest = int(np.argmin(np.abs(observations.stamps_ns - span[0])))
            self.begin_ns = self.end_ns = int(observations.stamps_ns[nearest])
        self.watched = self._share_watched(span)

    def _newest(self) -> int:
        """Return the newest instant (ns) at which all tracks that are named were there."""
        asked = self.question
        anchors = (asked.anchor, *(place.anchor for place in asked.places))
        named = {*asked.tracks, *(one.track for one in anchors if one.track is not None)}
        common = self.flight.observations.stamps_ns
        for number in named:
            common = np.intersect1d(common, self.selector.track(number).stamps_ns)
        return int(common[-1]) if len(common) else self.flight.observations.end_ns

    def _share_watched(self, span: tuple[int, int]) -> float:
        stamps, camera = self.flight.observations.stamps_ns, self.flight.observations.camera
        first, last = min(span[0], self.begin_ns), max(span[1], self.end_ns)
        within = (stamps >= first) & (stamps <= last)
        is_far = span[0] == span[1] and np.abs(stamps - span[0]).min() > _FAR_NS
        if not within.any() or is_far:
            raise QuestionError(
                f'nothing was perceived {self.when() or "then"}; ask for another time'
            )
        return float(camera[within].mean())

    def require_watched(self) -> None:
        """Make sure that the camera saw enough to say that nobody was there.

        :raises QuestionError: if the camera gave nothing
        """
        if not self.watched:
            raise QuestionError(
                f'the camera gave nothing {self.when() or "in this flight"}, so it is not known '
                'who was there; ask for another time'
            )

    def chosen(self, phrases: Sequence[Phrase] | None = None) -> list[Chosen]:
        """Return the tracks that are meant, or those of other phrases in the same span."""
        return self.selector.chosen(
            self.question.phrases if phrases is None else phrases,
            self.question.places,
            self.begin_ns,
            self.end_ns,
            self.question.tracks,
        )

    def evidence(self, chosen: Sequence[Chosen]) -> tuple[Evidence, ...]:
        """Return what an answer about tracks rests on."""
        return tuple(map(self._evident, chosen))

    def _evident(self, one: Chosen) -> Evidence:
        track, rows = one.track, one.rows
        stamps = track.stamps_ns[rows]
        evidence = Evidence(
            track.id,
            track.label,
            self.since(int(stamps[0])),
            self.since(int(stamps[-1])),
            views=track.view_ids[:_MOST_VIEWS],
        )
        anchors = [place.anchor for place in self.question.places if place.side is None]
        anchor = (anchors or [self.question.anchor])[0]
        if anchor.track == track.id or (
            anchor.is_drone and self.flight.observations.drone is None
        ):
            return evidence
        distances = self.selector.distances(track, anchor)[rows]
        if not np.isfinite(distances).any():
            return evidence
        nearest = int(np.nanargmin(distances))
        deviations = self.selector.deviations(track, anchor)[rows]
        return evidence._replace(
            distance=float(distances[nearest]),
            deviation=float(deviations[nearest]),
            at=self.since(int(stamps[nearest])),
        )

    def since(self, stamp_ns: int) -> float:
        """Return an instant in seconds from the begin of the flight."""
        return (stamp_ns - self.flight.observations.begin_ns) / NS_PER_S

    def what(self) -> str:
        """Name the objects as they were asked for."""
        return words_of(self.question.phrases)

    def when(self) -> str:
        """Say the span in seconds from the begin; '' for the whole flight."""
        if self.question.span.is_whole and not self.is_now:
            return ''
        begin, end = self.since(self.begin_ns), self.since(self.end_ns)
        return f'at {begin:.1f} s' if begin == end else f'between {begin:.1f} and {end:.1f} s'

    def where_when(self) -> str:
        """Say places and span, each after a space."""
        places = [str(place) for place in self.question.places]
        return ''.join(f' {word}' for word in (*places, self.when()) if word)

    def times(self, track: ObservedTrack, rows: NDArray[np.bool_]) -> str:
        """Say when the rows of a track were."""
        stamps = track.stamps_ns[rows]
        begin, end = self.since(int(stamps[0])), self.since(int(stamps[-1]))
        return f'at {begin:.1f} s' if begin == end else f'from {begin:.1f} to {end:.1f} s'


def words_of(phrases: Sequence[Phrase]) -> str:
    """Name objects as they were asked for; what has no word is a track."""
    parts = [' '.join(phrase.words) for phrase in phrases if phrase.words]
    said = ' or '.join(f'"{part}"' if ' ' in part else part for part in parts)
    return re.sub(r'\b(?:anyone|someone|somebody)\b', 'person', said) or 'track'


def numbers_of(chosen: Sequence[Chosen]) -> str:
    """Name tracks by their numbers, a dozen at most."""
    numbers = [str(one.track.id) for one in chosen]
    named = ', '.join(numbers[:MOST_NAMED]) + (' ...' if len(numbers) > MOST_NAMED else '')
    return f'track{"s" if len(numbers) > 1 else ""} {named}'


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
