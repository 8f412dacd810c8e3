"""Clocks."""

from __future__ import annotations

import math
import time

from hypothesis import given
from hypothesis import strategies as st
from virtual_clock import VirtualClock

from mmedge_ros.core.clock import SteadyTime, SystemClock


def test_the_system_clock_tells_wall_time_and_never_runs_back() -> None:
    clock = SystemClock()
    before, after = time.time_ns() - 10**9, time.time_ns() + 10**9
    assert before < clock.now_ns() < after
    assert clock.monotonic_ns() <= clock.monotonic_ns()


def test_a_virtual_clock_moves_only_when_told_to_and_only_forward() -> None:
    clock = VirtualClock(100)
    assert clock.now_ns() == clock.monotonic_ns() == 100
    clock.advance_to(250)
    assert clock.now_ns() == clock.monotonic_ns() == 250
    clock.advance_to(200)
    assert clock.now_ns() == 250


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
