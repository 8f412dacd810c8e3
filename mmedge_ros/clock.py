"""The clock protocol: nothing in the core asks the system for the time."""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """What the core may ask of time."""

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


class VirtualClock:
    """A clock that moves only when told to; for offline replay and for tests."""

    def __init__(self, now_ns: int = 0) -> None:
        self._now_ns = now_ns

    def now_ns(self) -> int:
        return self._now_ns

    def monotonic_ns(self) -> int:
        return self._now_ns

    def advance_to(self, now_ns: int) -> None:
        """Move to ``now_ns``; an instant in the past leaves the clock where it is."""
        self._now_ns = max(self._now_ns, now_ns)
