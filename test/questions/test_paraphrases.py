"""Questions of two people who had not seen the grammar are read as they were meant, or refused.

``reading`` in the file is what a person judged to be meant; None where nothing but a refusal is
right, or nothing better was reached. Set b was held out until the grammar was finished.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mmedge_ros.questions import QuestionError
from mmedge_ros.questions.grammar import read_question
from mmedge_ros.questions.question import Measure, Question
from mmedge_ros.questions.time_words import Span

LABELS = ('person', 'cyclist', 'car', 'dog')
PARAPHRASES = json.loads(Path(__file__).with_name('paraphrases.json').read_text('utf-8'))
# What was measured; it must not become fewer.
LEAST_READ = {'a': 42, 'b': 36}


def outline(question: Question) -> dict[str, Any]:
    """Say in short what was understood, without the words that say nothing."""
    said = {
        'asked': question.asked.value,
        'of': [
            ' '.join(
                (
                    *(phrase.labels or ('any',)),
                    *(f'{one.part or "whole"}={one.value}' for one in phrase.attributes),
                    *(motion.name.lower() for motion in phrase.motions),
                )
            )
            for phrase in question.phrases
        ],
        'tracks': list(question.tracks),
        'motions': [motion.name.lower() for motion in question.motions],
        'places': sorted(map(str, question.places)),
        'span': span_of(question.span),
        'from': '' if question.anchor.is_drone else str(question.anchor),
        'measure': '' if question.measure is Measure.DISTANCE else question.measure.value,
        'number': question.number,
        'largest': question.is_largest,
        'now': not question.is_past,
        'versus': None if question.versus is None else outline(question.versus),
    }
    return {name: value for name, value in said.items() if value}


def span_of(span: Span) -> str:
    if span.last is not None:
        return f'last {span.last:g} s'
    ends = [
        ''
        if one is None
        else '/'.join(
            f'{name} {value:g}'
            for name in ('seconds', 'of_day', 'ago', 'share')
            if (value := getattr(one, name)) is not None
        )
        for one in (span.begin, span.end)
    ]
    return ' to '.join(ends) if any(ends) else ''


def read(text: str) -> dict[str, Any] | None:
    try:
        return outline(read_question(text, LABELS))
    except QuestionError:
        return None


def test_none_is_read_otherwise_than_it_was_meant() -> None:
    for one in PARAPHRASES:
        assert read(one['text']) in (None, one['reading']), one['text']


@pytest.mark.parametrize('name', ['a', 'b'])
def test_as_many_are_read_as_were_measured(name: str) -> None:
    found = [one for one in PARAPHRASES if one['set'] == name]
    assert len(found) == 50
    assert sum(read(one['text']) is not None for one in found) >= LEAST_READ[name]


def test_what_nobody_can_know_is_refused() -> None:
    for one in PARAPHRASES:
        if one['unanswerable']:
            assert read(one['text']) is None, one['text']
