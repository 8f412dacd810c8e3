"""Figures of the last seconds: latency and age of decisions, rates of units."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from mmedge_ros.core.data_types import Decision, UnitFeatures

# Long enough for a 95 % quantile of 10 decisions a second, short enough to follow a change.
SPAN = 10.0
_MOST = 1000
_RATE_SPAN = 3.0


class _Entry(NamedTuple):
    at: float
    latency: float
    ages: dict[str, float]


class RecentDecisions:
    """Quantiles over the decisions of the last ten seconds.

    :param clock: returns seconds
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._entries: deque[_Entry] = deque(maxlen=_MOST)
        self._count = 0
        self._late = 0

    def add(self, decision: Decision, deadline: float) -> None:
        """Enter a decision; it is late when its latency exceeds the deadline (s)."""
        self._count += 1
        self._late += decision.latency > deadline
        self._entries.append(_Entry(self._clock(), decision.latency, decision.ages))

    def figures(self) -> dict[str, Any]:
        """Return latency and ages in s, decisions per second, and how many were late."""
        now = self._clock()
        while self._entries and now - self._entries[0].at > SPAN:
            self._entries.popleft()
        entries = self._entries
        latencies = [entry.latency for entry in entries]
        modalities = sorted({name for entry in entries for name in entry.ages})
        return {
            'span': SPAN,
            'rate': _rate([entry.at for entry in entries], now),
            'p50': _quantile(latencies, 0.5),
            'p95': _quantile(latencies, 0.95),
            'newest': latencies[-40:],
            'ages': {
                name: _quantile([e.ages[name] for e in entries if name in e.ages], 0.5)
                for name in modalities
            },
            'late': self._late,
            'decisions': self._count,
        }


class RecentUnits:
    """Rate and level of the encoded units of one modality."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._times: deque[float] = deque(maxlen=_MOST)
        self._level = ''

    def add(self, unit: UnitFeatures) -> None:
        """Enter an encoded unit."""
        self._times.append(self._clock())
        self._level = unit.level

    def figures(self) -> dict[str, Any]:
        """Return the units per second, and the level of the newest one."""
        return {'rate': _rate(list(self._times), self._clock()), 'level': self._level}


def _rate(times: list[float], now: float) -> float:
    """Events per second of the last seconds, 0 where there is no more than one."""
    recent = [at for at in times if now - at <= _RATE_SPAN]
    if len(recent) < 2:
        return 0.0
    return len(recent) / min(_RATE_SPAN, max(now - recent[0], 0.5))


def _quantile(values: list[float], share: float) -> float | None:
    known = [value for value in values if np.isfinite(value)]
    return float(np.quantile(known, share)) if known else None
