"""Kept figures: what moved by more than it may is shown, whatever the file holds."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from hand_made_outcomes import FACTS, Worth, better_ours, comparison
from hypothesis import given, settings
from hypothesis import strategies as st

from mmedge_lab.judging import EvaluationError
from mmedge_lab.rivals.comparison.plan import plan_comparison
from mmedge_lab.rivals.comparison.regression import KEPT, changes, write_kept
from mmedge_lab.rivals.comparison.report import comparison_report


def reported(worth: Worth = better_ours, policies: str = 'ours,blocking') -> dict[str, Any]:
    plan = plan_comparison(FACTS, policies, 'stream')
    return {
        'bundle': {'sha256': 'ab'},
        'profile': 'stated',
        **comparison_report(comparison(worth, 2, plan=plan)),
    }


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    path = tmp_path / 'deeper' / 'kept.json'
    write_kept(reported(), path)
    return path


def test_the_same_figures_did_not_move(kept: Path) -> None:
    result = changes(reported(), kept)
    assert len(result) == 2 * len(KEPT)
    assert all(move.within for move in result)


def test_a_figure_that_moved_is_named_with_both_values(kept: Path) -> None:
    result = changes(reported(lambda case, flight: better_ours(case, flight) - 0.05), kept)
    moved = {(move.case, move.figure): move for move in result if not move.within}
    move = moved['ours-stream-100-50ms', 'accuracy.streaming_mean_iou']
    assert (move.kept, move.now) == (pytest.approx(0.515), pytest.approx(0.465))
    assert not any(figure.startswith('latency') for _, figure in moved)


def test_a_small_move_is_allowed(kept: Path) -> None:
    result = changes(reported(lambda case, flight: better_ours(case, flight) - 0.01), kept)
    assert all(move.within for move in result)


def test_a_case_that_is_missing_now_moved(kept: Path) -> None:
    missing = [move for move in changes(reported(policies='ours'), kept) if move.now is None]
    assert {move.case for move in missing} == {'blocking-stream-100-50ms'}
    assert any(not move.within for move in missing)


@pytest.mark.parametrize(
    ('change', 'what'),
    [
        ({'flights': ['another']}, 'flights'),
        ({'bundle_sha256': 'cd'}, 'bundle'),
        ({'profile': 'another'}, 'profile'),
    ],
)
def test_figures_of_something_else_are_not_compared(
    kept: Path, change: dict[str, Any], what: str
) -> None:
    kept.write_text(json.dumps(json.loads(kept.read_text()) | change))
    with pytest.raises(EvaluationError, match=f'made with other {what}'):
        changes(reported(), kept)


@pytest.mark.parametrize(
    'content', ['', '{', '[]', '{}', '{"cases": 3}', '{"cases": {"a": 1}}', '[' * 100_000, '\x00']
)
def test_a_file_of_something_else_is_one_sentence(tmp_path: Path, content: str) -> None:
    path = tmp_path / 'kept.json'
    path.write_text(content)
    with pytest.raises(EvaluationError, match=r'kept\.json'):
        changes(reported(), path)


_values = st.none() | st.booleans() | st.floats() | st.text(max_size=4) | st.just([])


@settings(max_examples=40, deadline=None)
@given(value=_values, tolerance=_values)
def test_whatever_stands_for_a_figure_is_judged_or_refused(
    tmp_path_factory: pytest.TempPathFactory, value: Any, tolerance: Any
) -> None:
    report = {**_REPORT}
    path = tmp_path_factory.mktemp('kept') / 'kept.json'
    content = {
        'flights': report['flights'],
        'bundle_sha256': 'ab',
        'profile': 'stated',
        'cases': {
            'ours-stream-100-50ms': {'latency_ms.p50': {'value': value, 'tolerance': tolerance}}
        },
    }
    path.write_text(json.dumps(content))
    fits = all(isinstance(v, int | float) and not isinstance(v, bool) for v in (value, tolerance))
    if (fits or value is None) and isinstance(tolerance, float) and 0.0 <= tolerance < math.inf:
        assert [move.tolerance for move in changes(report, path)] == [tolerance]
    else:
        with pytest.raises(EvaluationError, match=r'kept\.json'):
            changes(report, path)


_REPORT = reported(policies='ours')
