"""Which share of a sensor's units comes: a supply that browns out makes it stutter."""

from __future__ import annotations

import math
from collections import deque

_SPAN = 1.5  # s that are counted over
_MOST = 2000


class ScanShare:
    """Counts arrivals, and compares with the most there ever were at the same configured rate."""

    def __init__(self) -> None:
        self._arrivals: deque[float] = deque(maxlen=_MOST)
        self._most: dict[float, int] = {}
        self._rate = 0.0
        self._excused_until = -math.inf

    def arrived(self, now: float) -> None:
        """Enter that a unit arrived at ``now`` (s, monotonic)."""
        self._arrivals.append(now)

    def configure(self, rate: float, now: float) -> None:
        """Enter another rate (Hz); for a span nothing can be said."""
        if rate != self._rate:
            self._rate = rate
            self.excuse(now)

    def excuse(self, until: float) -> None:
        """Say nothing until a span after ``until`` (s, monotonic), such as for a skip lease."""
        self._excused_until = max(self._excused_until, until + _SPAN)

    def share(self, now: float) -> float:
        """Return the share over the last span, 0..1; NaN where nobody can tell."""
        while self._arrivals and self._arrivals[0] < now - _SPAN:
            self._arrivals.popleft()
        if now < self._excused_until:
            return math.nan
        count = len(self._arrivals)
        most = self._most[self._rate] = max(self._most.get(self._rate, 0), count)
        return count / most if most else math.nan
