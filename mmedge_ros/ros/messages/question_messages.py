"""Questions and answers as results of the action and as plain text."""

from __future__ import annotations

import math

from mmedge_ros import action, msg
from mmedge_ros.core.data_types import NS_PER_S
from mmedge_ros.core.untrusted_files import printable
from mmedge_ros.memory.query import LONGEST_QUERY
from mmedge_ros.questions.answer import Evidence
from mmedge_ros.questions.language_model import ModelAnswer, ModelRefusal
from mmedge_ros.questions.question_worker import LiveAnswer
from mmedge_ros.ros.messages.conversions import to_time


def to_result(live: LiveAnswer) -> action.Ask.Result:
    """Return what the action answers."""
    answer, said = live.answer, live.said
    result = action.Ask.Result(
        answer='' if answer.refused else answer.text,
        refused=answer.refused,
        low=_number(answer.low),
        high=_number(answer.high),
        watched=_number(answer.watched),
        evidence=[_to_evidence(row, live.begin_ns) for row in answer.evidence],
        source='' if answer.refused else answer.source,
        begin=to_time(live.begin_ns),
    )
    if isinstance(said, ModelAnswer):
        result.model, result.model_tracks = said.text, list(said.tracks)
    elif isinstance(said, ModelRefusal):
        result.model_refused = said.reason
    return result


def question_line(text: str) -> str:
    """Return a question as the first line of its answer has it."""
    return printable(text)[:LONGEST_QUERY]


def answer_lines(question: str, live: LiveAnswer) -> str:
    """Return an answer as text: the question, what was measured, and what a model says."""
    answer, said = live.answer, live.said
    lines = [question_line(question)]
    lines.append(f'not answered: {answer.refused}' if answer.refused else answer.text)
    if isinstance(said, ModelAnswer):
        lines.append(f'the model says: {said.text}')
    elif isinstance(said, ModelRefusal):
        lines.append(f'the model says nothing: {said.reason}')
    return '\n'.join(lines)


def _to_evidence(row: Evidence, begin_ns: int) -> msg.Evidence:
    begin, end, at = (
        to_time(begin_ns + round((seconds or 0.0) * NS_PER_S))
        for seconds in (row.begin, row.end, row.at)
    )
    return msg.Evidence(
        track=row.track,
        label=row.label,
        begin=begin,
        end=end,
        distance=_number(row.distance),
        deviation=_number(row.deviation),
        at=at,
        views=list(row.views),
    )


def _number(value: float | None) -> float:
    return math.nan if value is None else float(value)
