"""Clocks: nothing in the core asks the system for the time."""

from __future__ import annotations

import math
import time
from typing import Protocol

# A gap between readings is believed up to this (s); a longer one means that the clock was set.
_LONGEST_PAUSE = 3600.0


class Clock(Protocol):
    """The time as the core sees it."""

    def now_ns(self) -> int:
        """Return the instant on the ROS clock, in nanoseconds."""

    def monotonic_ns(self) -> int:
        """Return a monotonic reading for durations, in nanoseconds."""


class SystemClock:
    """Wall time and the monotonic clock of this machine."""

    def now_ns(self) -> int:
        return time.time_ns()

    def monotonic_ns(self) -> int:
        return time.monotonic_ns()


class SteadyTime:
    """Adds up the time between readings of a clock.

    A clock that is set back counts as no time, one that is set ahead as an hour at most, and
    in both cases what comes after counts as usual. A reading that is no number changes
    nothing.
    """

    def __init__(self) -> None:
        self.now = 0.0
        self._reading: float | None = None

    def advance(self, reading: float) -> float:
        """Take a reading of the clock in seconds; return how much time has passed since."""
        if not math.isfinite(reading):
            return 0.0
        before = reading if self._reading is None else self._reading
        self._reading = reading
        elapsed = min(max(reading - before, 0.0), _LONGEST_PAUSE)
        self.now += elapsed
        return elapsed
