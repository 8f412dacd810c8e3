from __future__ import annotations

import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mmedge_ros.adaptation.latency_budget import (
    LatencyBudget,
    LatencyBudgetParameters,
    LatencyDemand,
)

USUAL = 0.1


def model(
    decode: float = 0.32, total: float = 0.4, lease: float = 1.0, source: str = 'model'
) -> LatencyDemand:
    return LatencyDemand(source, decode, total, lease)


def test_without_a_consumer_the_limit_is_the_usual_one() -> None:
    assert LatencyBudget().limit(USUAL, 0.0) == (USUAL, ())


def test_what_a_consumer_leaves_is_the_limit_and_the_reason_names_it() -> None:
    budget = LatencyBudget()
    assert budget.take(model(), 10.0)
    limit, reasons = budget.limit(USUAL, 10.5)
    assert limit == pytest.approx(0.08)
    assert reasons == ('latency budget: model leaves 80 ms',)
    assert budget.consumers(10.5) == ('model',)


def test_a_consumer_that_falls_silent_holds_nobody_back() -> None:
    budget = LatencyBudget()
    budget.take(model(lease=1.0), 10.0)
    assert budget.limit(USUAL, 10.999)[0] < USUAL
    assert budget.limit(USUAL, 11.0) == (USUAL, ())
    assert budget.consumers(11.0) == ()


def test_a_later_announcement_replaces_an_earlier_one_of_the_same_source() -> None:
    budget = LatencyBudget()
    budget.take(model(decode=0.34), 0.0)
    budget.take(model(decode=0.10), 0.1)
    assert budget.limit(USUAL, 0.2) == (USUAL, ())


def test_of_several_consumers_the_one_that_leaves_least_decides() -> None:
    budget = LatencyBudget()
    budget.take(model(decode=0.32, source='a'), 0.0)
    budget.take(model(decode=0.35, source='b', lease=0.5), 0.0)
    limit, reasons = budget.limit(USUAL, 0.1)
    assert limit == pytest.approx(0.05)
    assert 'b leaves' in reasons[0]
    limit, reasons = budget.limit(USUAL, 0.6)
    assert limit == pytest.approx(0.08)
    assert 'a leaves' in reasons[0]


def test_the_limit_never_falls_below_the_floor_nor_rises_to_it() -> None:
    budget = LatencyBudget(LatencyBudgetParameters(floor=0.03))
    budget.take(model(decode=2.0), 0.0)
    limit, reasons = budget.limit(USUAL, 0.1)
    assert limit == 0.03
    assert 'less than the least, 30 ms' in reasons[0]
    assert budget.limit(0.02, 0.1) == (0.02, ())


def test_a_decode_time_that_varies_a_little_is_no_news() -> None:
    budget = LatencyBudget(LatencyBudgetParameters(step=0.01))
    limits = set()
    for decode in (0.321, 0.3233, 0.3277, 0.3299):
        budget.take(model(decode=decode), 0.0)
        limits.add(budget.limit(USUAL, 0.1))
    assert [reasons for _, reasons in limits] == [('latency budget: model leaves 70 ms',)]


@pytest.mark.parametrize(
    ('demand', 'words'),
    [
        (model(decode=math.nan), 'decode_time of nan'),
        (model(decode=-0.1), 'decode_time of -0.1'),
        (model(decode=math.inf), 'decode_time of inf'),
        (model(decode=1e9), 'decode_time of 1e[+]09'),
        (model(total=math.nan), 'total_limit of nan'),
        (model(total=-1.0), 'total_limit of -1'),
        (model(total=0.0), 'total_limit of 0 s'),
        (model(lease=0.0), 'had passed'),
        (model(lease=-3.0), 'had passed'),
        (model(lease=math.nan), 'had passed'),
        (model(lease=1e12), '1e[+]12 s ahead; announce at most 5 s'),
        (model(source=''), "a source named ''"),
        (model(source='x' * 1000), 'with 1 to 64 characters'),
    ],
)
def test_what_cannot_be_meant_is_not_used_and_said(demand: LatencyDemand, words: str) -> None:
    budget = LatencyBudget()
    assert not budget.take(demand, 0.0)
    assert budget.limit(USUAL, 0.0) == (USUAL, ())
    assert (budget.taken, budget.refused) == (0, 1)
    assert re.search(words, budget.problem)


def test_nonsense_does_not_end_what_the_same_consumer_announced_before() -> None:
    budget = LatencyBudget()
    budget.take(model(), 0.0)
    assert not budget.take(model(decode=math.nan), 0.1)
    assert budget.limit(USUAL, 0.2)[0] == pytest.approx(0.08)


def test_a_flood_of_names_fills_no_memory_and_those_known_go_on() -> None:
    budget = LatencyBudget()
    for number in range(100):
        budget.take(model(source=f'consumer {number}'), 0.0)
    assert len(budget.consumers(0.1)) == 16
    assert 'more than 16' in budget.problem
    assert budget.take(model(source='consumer 3', decode=0.1), 0.2)
    assert budget.take(model(source='later'), 2.0)


anything = st.floats(allow_nan=True, allow_infinity=True)


@given(
    st.lists(st.tuples(st.text(max_size=70), anything, anything, anything), max_size=30),
    st.floats(0.001, 10.0),
)
def test_whatever_is_announced_the_limit_stays_between_floor_and_usual(
    demands: list[tuple[str, float, float, float]], usual: float
) -> None:
    budget = LatencyBudget()
    for demand in demands:
        budget.take(LatencyDemand(*demand), 1.0)
    limit, reasons = budget.limit(usual, 1.0)
    assert min(usual, 0.02) <= limit <= usual
    assert bool(reasons) == (limit < usual)
