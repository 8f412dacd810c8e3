"""What flights beside a language model are judged by, written down by hand."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from mmedge_lab.judging import EvaluationError
from mmedge_lab.judging.bench import BenchRequest
from mmedge_lab.rivals.mmedge.described_bench import (
    DescribedFlight,
    bench,
    described_sums,
    limits_at,
)
from mmedge_ros.core.data_types import NS_PER_S, Decision
from mmedge_ros.core.run_record import RunRecord

ZERO_NS = 1_000 * NS_PER_S
TOTAL, USUAL = 1.0, 0.1


def at(seconds: float) -> int:
    return ZERO_NS + round(seconds * NS_PER_S)


def said(
    seconds: float, takes: str, sentences: int = 9, newest: str = '960.0'
) -> tuple[int, dict[str, str]]:
    figures = {'sentences': str(sentences), 'newest sentence (ms)': newest}
    return at(seconds), {**figures, 'count takes (ms, 95 %)': takes}


def flown(latencies: list[float], *statuses: tuple[int, dict[str, str]]) -> DescribedFlight:
    """A flight with a decision every 0.1 s from its beginning; none where latency is NaN."""
    record = RunRecord('a flight', 'live', 0.1, 0.5, 0.1)
    for number, latency in enumerate(latencies):
        end_ns = at(number / 10)
        if not math.isnan(latency):
            published_ns = end_ns + round(latency * NS_PER_S)
            record.decisions.append(
                Decision(end_ns, end_ns, 'odom', (), {}, published_ns=published_ns)
            )
    return DescribedFlight(record, statuses)


def test_the_limit_is_what_sentences_leave_and_a_shorter_one_holds_after_two_seconds() -> None:
    flight = flown([], said(1.0, 'nan'), said(5.0, '950.0'), said(8.0, '700.0'))
    ends = [at(seconds) for seconds in (0.0, 2.0, 5.5, 6.9, 7.1, 7.9, 8.0)]
    assert limits_at(flight, ends, TOTAL, USUAL).tolist() == pytest.approx(
        [USUAL, USUAL, USUAL, USUAL, 0.05, 0.05, USUAL]
    )


def test_late_and_missing_decisions_are_not_in_time() -> None:
    latencies = [0.2] * 70 + [0.04] * 17 + [0.06, math.nan, 0.04]
    sums = described_sums(flown(latencies, said(0.0, '950.0')), TOTAL, USUAL)
    assert (sums['windows'], sums['in_time']) == (20, 18)
    assert (sums['limit'], sums['takes']) == pytest.approx((20 * 50.0, 950.0))


def test_each_sentence_counts_once_by_when_it_came_after_its_window() -> None:
    rows = [('nan', 0), ('950.0', 1), ('950.0', 1), ('1010.0', 2), ('980.0', 4)]
    statuses = [said(n, 'nan', number, newest) for n, (newest, number) in enumerate(rows)]
    sums = described_sums(flown([0.04] * 90, *statuses), TOTAL, USUAL)
    assert (sums['sentences'], sums['sentences_in_time']) == (3, 2)


def test_what_is_needed_to_fly_is_named(tmp_path: Path) -> None:
    inputs = (tmp_path / 'own.gguf', tmp_path / 'flight')
    for request, settings, words in (
        (BenchRequest(), {}, 'name a language model'),
        (BenchRequest(inputs[:1]), {}, 'name a flight'),
        (BenchRequest(inputs), {}, 'profile of this machine'),
        (BenchRequest(inputs), {'profile': 'p', 'kinds': 'riddle'}, "no kind 'riddle'"),
    ):
        with pytest.raises(EvaluationError, match=words):
            bench(request, **settings)
