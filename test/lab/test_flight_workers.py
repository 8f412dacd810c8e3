"""Flights at once: progress is reported, and none dies unnoticed."""

from __future__ import annotations

from functools import partial

import pytest
from hand_made_workers import half_done

from mmedge_lab.flight_workers import do_flight_works
from mmedge_lab.judging import EvaluationError


def done(jobs: int, **ends: str) -> list[tuple[float, int]]:
    reports: list[tuple[float, int]] = []
    works = {name: partial(half_done, of) for name, of in ends.items()}
    do_flight_works(works, jobs, lambda *of: reports.append(of), EvaluationError, whole=1)
    return reports


def test_progress_counts_those_that_were_whole_before() -> None:
    reports = done(1, day='well', night='well')
    assert reports[0] == (pytest.approx(1 / 3), 1)
    assert reports[-1] == (1.0, 3)
    assert reports == sorted(reports)


def test_an_error_names_the_flight() -> None:
    with pytest.raises(EvaluationError, match='flight night: no truth'):
        done(2, day='well', night='failed')


def test_a_killed_process_is_reported_and_ends_the_others() -> None:
    with pytest.raises(EvaluationError, match=r'code -9 .*run the same command again'):
        done(2, day='killed', night='well')
