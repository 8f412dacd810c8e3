from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from mmedge_ros.configuration.steady_time import SteadyTime


def test_time_passes_as_the_clock_says() -> None:
    steady = SteadyTime()
    assert [steady.advance(reading) for reading in (100.0, 100.5, 102.0)] == [0.0, 0.5, 1.5]
    assert steady.now == 2.0


def test_a_clock_set_back_counts_as_no_time_and_goes_on() -> None:
    steady = SteadyTime()
    assert [steady.advance(reading) for reading in (100.0, 3.0, 4.0)] == [0.0, 0.0, 1.0]


def test_a_clock_set_ahead_counts_as_an_hour_and_goes_on() -> None:
    steady = SteadyTime()
    assert [steady.advance(reading) for reading in (0.0, 1e18, 1e18)] == [0.0, 3600.0, 0.0]


@given(st.lists(st.floats()))
def test_time_never_goes_back_and_is_always_a_number(readings: list[float]) -> None:
    steady = SteadyTime()
    for reading in readings:
        before = steady.now
        assert steady.advance(reading) >= 0.0
        assert math.isfinite(steady.now)
        assert steady.now >= before
