"""The queueing recursion itself, unit by unit, to compare what is computed at once with."""

from __future__ import annotations

import math
from collections.abc import Sequence


def completion_times(arrivals: Sequence[float], services: Sequence[float]) -> list[float]:
    """Return when each unit is finished; one server, in order of arrival (s)."""
    finished: list[float] = []
    free = -math.inf
    for arrival, service in zip(arrivals, services, strict=True):
        free = max(free, arrival) + service
        finished.append(free)
    return finished
