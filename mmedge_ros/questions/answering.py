"""Answers questions from tracks, without a language model, or says why that is not possible."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from mmedge_ros.questions import QuestionError
from mmedge_ros.questions.answer import TRACKS, TRACKS_AND_MEMORY, Answer
from mmedge_ros.questions.grammar import read_question
from mmedge_ros.questions.object_answers import how_many, the_most, whether, which, which_count
from mmedge_ros.questions.question import Asked, Question
from mmedge_ros.questions.scope import Scope
from mmedge_ros.questions.selection import KnownFlight
from mmedge_ros.questions.track_answers import pair, status
from mmedge_ros.tracking.decision_fusion import RADAR_ONLY_LABEL

# What answers; the rest is asked of one track.
_ANSWERS: Mapping[Asked, Callable[[Scope], Answer]] = {
    Asked.COUNT: how_many,
    Asked.COUNTS: which_count,
    Asked.EXISTS: whether,
    Asked.LIST: which,
    Asked.EXTREME: the_most,
    Asked.PAIR: pair,
}


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
        scope = Scope(question, flight)
        for number, label in question.called:
            track = scope.selector.track(number)
            if track.label != label:
                raise QuestionError(f'track {number} is a {track.label}, no {label}')
        found = _ANSWERS.get(question.asked, status)(scope)
    except QuestionError as err:
        return Answer(str(err), refused=str(err))
    taken = ''.join(f'; {word} is taken for {other}' for word, other in question.taken_as)
    return replace(
        found,
        text=f'{found.text}{taken}.',
        watched=scope.watched,
        source=TRACKS_AND_MEMORY if scope.has_looks else TRACKS,
    )
