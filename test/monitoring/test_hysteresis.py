"""Values that hover at a limit."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from mmedge_ros.monitoring.hysteresis import Hysteresis, Level, Limits

HEAT = Limits(80.0, 92.0, margin=0.03, release=2.0)


def levels(limits: Limits, values: list[tuple[float, float]]) -> list[Level]:
    """Levels after each (time, value)."""
    judge = Hysteresis(limits)
    return [judge.update(value, time) for time, value in values]


def test_heat_is_told_at_once_and_forgiven_late() -> None:
    course = [(0, 79), (1, 81), (2, 93), (3, 91), (4, 79), (5, 79), (6, 77), (7, 77), (8, 77)]
    assert levels(HEAT, course) == [0, 1, 2, 2, 2, 2, 1, 1, 0]
    # 91 is within the margin of 92, and 79 within that of 80: each waits for its own release.
    assert levels(HEAT, [(0, 81), (1, 77), (2.9, 77), (3, 77)]) == [1, 1, 1, 0]


def test_a_value_that_hovers_at_the_limit_does_not_flicker() -> None:
    course = [(0.1 * n, 80.0 + 0.5 * (-1) ** n) for n in range(100)]
    assert levels(HEAT, course)[1:] == [Level.WARN] * 99


def test_a_low_value_is_bad_where_small_ones_are() -> None:
    charge = Limits(0.25, 0.1, below=True, margin=0.04, release=1.0)
    assert levels(charge, [(0, 0.3), (1, 0.24), (2, 0.09), (3, 0.255), (5, 0.255)]) == [
        0,
        1,
        2,
        2,
        1,
    ]
    assert levels(charge, [(0, 0.24), (1, 0.27), (2, 0.27)]) == [1, 1, 0]


def test_a_load_must_last() -> None:
    load = Limits(95.0, rise=5.0, margin=0.03, release=2.0)
    assert levels(load, [(0, 99), (4, 99), (4.5, 50), (5, 99), (9, 99), (10, 99)]) == [
        0,
        0,
        0,
        0,
        0,
        1,
    ]


def test_an_unknown_value_is_not_judged_and_starts_all_over() -> None:
    assert levels(HEAT, [(0, 95), (1, math.nan), (2, 79)]) == [2, 0, 0]


def test_without_a_limit_nothing_is_bad() -> None:
    assert levels(Limits(math.nan), [(0, 1e9), (1, -1e9)]) == [0, 0]


@given(st.lists(st.floats(0.0, 200.0), min_size=1, max_size=60))
def test_what_is_beyond_a_limit_is_never_called_good(values: list[float]) -> None:
    found = levels(HEAT, [(0.1 * n, value) for n, value in enumerate(values)])
    for value, level in zip(values, found, strict=True):
        assert level >= HEAT.grade(value)
