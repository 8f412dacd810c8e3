"""Clocks."""

from __future__ import annotations

import time

from mmedge_ros.clock import SystemClock, VirtualClock


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
