"""Answers are judged by kind, beside the answer that is usual, over seeds."""

from __future__ import annotations

from typing import Any

import pytest

from mmedge_lab.judging.flight_bootstrap import Drawings
from mmedge_lab.judging.question_accuracy import judged


def row(kind: str = 'existence', **changes: Any) -> dict[str, Any]:
    made: dict[str, Any] = {
        'kind': kind,
        'form': 'near',
        'objects': [],
        'sort': 'same',
        'expected': True,
        'within': 0.0,
        'ours': True,
        'true': True,
        'is_refused': False,
    }
    return made | changes


def test_the_usual_answer_is_the_one_that_fits_most_questions_of_a_form() -> None:
    flights = [
        [row(), row(), row(expected=False, ours=False)],
        [row(), row(form='side', expected=False)],
    ]
    report = judged(flights, Drawings.of(['a', 'b'], 50))
    figures = report['kinds']['existence']
    assert figures['questions'] == 5
    assert figures['ours']['value'] == pytest.approx(0.8)
    assert figures['usual']['value'] == pytest.approx(0.8)
    assert figures['ours_minus_usual']['value'] == pytest.approx(0.0)
    assert figures['forms']['existence: side'] == {
        'questions': 1,
        'ours': 1.0,
        'true': 1.0,
        'usual': 1.0,
    }


def test_numbers_count_as_usual_within_what_is_right_and_tracks_by_their_place() -> None:
    distances = [
        row('status', sort='number', expected=value, within=1.0) for value in (3.0, 3.9, 9.0)
    ]
    pairs = [
        row('comparison', sort='object', objects=[4, 5], expected=4),
        row('comparison', sort='object', objects=[8, 9], expected=8),
        row('comparison', sort='object', objects=[1, 2], expected=2),
    ]
    alone = [row('object', sort='object', expected=4)] * 2
    figures = judged([[*distances, *pairs, *alone]], Drawings.of(['a'], 50))['kinds']
    assert figures['status']['usual']['value'] == pytest.approx(2 / 3, abs=1e-3)
    assert figures['comparison']['usual']['value'] == pytest.approx(2 / 3, abs=1e-3)
    assert figures['object']['usual']['value'] == 0.0
