"""How far a figure will have risen, from how it rose lately."""

from __future__ import annotations

import math
from collections import deque

import numpy as np

_SPAN = 8.0  # s that are looked back over
_SHORTEST = 3.0  # s without which nothing can be said
_MOST = 200


class Slope:
    """A straight line through the last few seconds of a figure.

    :param ahead: s
    """

    def __init__(self, ahead: float) -> None:
        self._ahead = ahead
        self._recent: deque[tuple[float, float]] = deque(maxlen=_MOST)

    def add(self, now: float, value: float) -> None:
        """Take a value at ``now`` (s, monotonic); one that is unknown starts all over."""
        if not math.isfinite(value) or (self._recent and now < self._recent[-1][0]):
            self._recent.clear()
        if math.isfinite(value):
            self._recent.append((now, value))
            while now - self._recent[0][0] > _SPAN:
                self._recent.popleft()

    def rise(self) -> float:
        """Return how much it will have risen ``ahead`` from now; 0 where nobody can tell."""
        if len(self._recent) < 3 or self._recent[-1][0] - self._recent[0][0] < _SHORTEST:
            return 0.0
        times, values = np.array(self._recent).T
        times -= times.mean()
        return float(self._ahead * (times @ values) / (times @ times))
