"""Counting failures in bounded memory."""

from __future__ import annotations

from collections import Counter

from mmedge_ros.records.failure_counts import count_failure, unexpected


def test_the_first_of_a_reason_is_new_and_the_next_are_not() -> None:
    failures: Counter[str] = Counter()
    assert count_failure(failures, 'broken')
    assert not count_failure(failures, 'broken')
    assert count_failure(failures, 'missing')
    assert failures == {'broken': 2, 'missing': 1}


def test_of_ever_new_reasons_only_the_first_are_told_apart() -> None:
    failures: Counter[str] = Counter()
    new = [count_failure(failures, f'reason {n}') for n in range(10_000)]
    assert failures.total() == 10_000
    assert len(failures) < 100
    assert sum(new) == len(failures)
    assert not count_failure(failures, 'reason 0')
    assert failures['reason 0'] == 2


def test_an_error_nobody_foresaw_is_named_with_its_kind() -> None:
    assert unexpected(KeyError('x')) == "unexpected KeyError: 'x'"
