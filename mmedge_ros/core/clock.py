"""Clocks: nothing in the core asks the system for the time."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable
from typing import Protocol

# A gap between readings is believed up to this (s); a longer one means that the clock was set.
_LONGEST_PAUSE = 3600.0
# The usual time of a part of the work follows slower ones fast and quicker ones slowly, so that
# it is seldom exceeded; one that was not begun for lack of time counts as this much quicker,
# or it would never be tried again. Stalls of the machine (ns) say nothing of the work.
_RISE, _FALL, _RETRY, _LONGEST_PART = 0.3, 0.03, 0.9, 100_000_000


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


class TimeBudget:
    """Says whether work fits before an instant, by how long such work took lately.

    :param now_ns: clock of the instants; None, as in virtual time: all fits, nothing is measured
    """

    def __init__(self, now_ns: Callable[[], int] | None = None) -> None:
        self.shed: Counter[str] = Counter()
        self._now_ns = now_ns
        self._until_ns = 0
        self._usual_ns: dict[str, float] = {}

    @property
    def is_limited(self) -> bool:
        return self._now_ns is not None

    def begin(self, until_ns: int) -> None:
        """Set the instant before which work has to be done."""
        self._until_ns = until_ns

    def usual_ns(self, part: str) -> int:
        """Return how long a part of the work usually takes, 0 where it is not known."""
        return round(self._usual_ns.get(part, 0.0))

    def fits(self, **parts: int) -> bool:
        """Say whether there is time left for so many of each part of the work."""
        if self._now_ns is None:
            return True
        needed = sum(count * self.usual_ns(part) for part, count in parts.items())
        if self._now_ns() + needed <= self._until_ns:
            return True
        for part in parts:
            self._usual_ns[part] = _RETRY * self._usual_ns.get(part, 0.0)
        return False

    def most(self, part: str, count: int) -> int:
        """Return how many of ``count`` of a part of the work there is time for."""
        if count < 1 or self.fits(**{part: count}):
            return count
        left = self._until_ns - self._now_ns() if self._now_ns else 0
        return min(max(int(left // max(self.usual_ns(part), 1)), 0), count - 1)

    def started(self) -> int:
        """Return when a part of the work begins, for `ended`."""
        return 0 if self._now_ns is None else self._now_ns()

    def ended(self, part: str, started_ns: int, count: int = 1) -> None:
        """Learn how long each of ``count`` parts took that began together."""
        if self._now_ns is None or count < 1:
            return
        taken = min((self._now_ns() - started_ns) / count, _LONGEST_PART)
        usual = self._usual_ns.setdefault(part, taken)
        self._usual_ns[part] += (_RISE if taken > usual else _FALL) * (taken - usual)
