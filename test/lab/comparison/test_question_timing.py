"""What asking costs: the parts are of the whole, and what the gate is asked differs each time."""

from __future__ import annotations

import pytest
from hand_made_questions import gate

from mmedge_ros.lab.comparison.question_timing import question_times
from mmedge_ros.skipping.gate import Gate
from mmedge_ros.skipping.question import Question


def test_the_parts_are_parts_of_the_whole() -> None:
    times = question_times(gate())
    assert set(times) == {'whole', 'asking', 'taking in', 'question', 'network'}
    middle = {name: found['p50'] for name, found in times.items()}
    assert min(middle.values()) > 0.0
    assert max(middle['asking'], middle['taking in']) < middle['whole']
    assert max(middle['question'], middle['network']) < middle['asking']


def test_what_is_asked_is_of_five_people_and_new_each_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[Question] = []

    def confidence(_: Gate, question: Question) -> float:
        asked.append(question)
        return 0.0

    monkeypatch.setattr(Gate, 'confidence', confidence)
    question_times(gate())
    settled = asked[-len(asked) // 3 + 30 :]  # the third time round
    assert {question.people for question in settled} == {5.0}
    assert len(set(settled)) == len(settled)
