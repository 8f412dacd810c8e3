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
        'covered': None,
        'width': None,
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


def test_ranges_of_counts_are_judged_apart() -> None:
    counts = [
        row('count', expected=3, covered=True, width=2),
        row('count', expected=4, covered=False, width=0),
        row('count', expected=4),
    ]
    report = judged([counts], Drawings.of(['a'], 50))
    assert report['ranges']['questions'] == 2
    assert report['ranges']['covered']['value'] == 0.5
    assert report['ranges']['width']['value'] == 1.0
    verdicts = {one['target']: one['verdict'] for one in report['verdicts']}
    assert verdicts['ranges of counts hold in 0.85'] == 'missed'
    assert verdicts['true tracks: at least 0.98 right'] == 'met'
    assert verdicts['at least 200 questions'] == 'missed'
