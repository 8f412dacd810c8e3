"""What a running configuration was seen to keep outweighs what unit times promise of it.

Near saturation nobody can tell from unit times whether a queue will grow: a few percent of
their scatter decide between no wait and a full queue, and the model has to fear the worse. The
decisions of the configuration that runs have told.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from statistics import median
from typing import Protocol

from mmedge_ros.configuration.predicted_latency import LogNormal, PredictedLatency

# Decisions that are enough, and how long they count, s.
_ENOUGH, _LASTS = 3, 2.0
# What a configuration is reckoned to keep with 95 %: the longest that was seen, and this more.
_MARGIN, _Z95 = 1.1, 1.6449
# The first decisions still wait for units of the configuration before, s.
_SETTLING = 0.1
# A machine that got this much slower since is another one.
_SLOWER = 1.15


class LatencyModel(Protocol):
    """What predicts before anything was seen."""

    def predict(self, now: float) -> PredictedLatency:
        """Return what is known at ``now`` (s, monotonic) of every configuration."""


class ProvenLatency:
    """A latency model that believes the decisions of the configuration in use.

    :param model: of unit times
    :param pace: says how long the units of a configuration take now, in any unit
    """

    def __init__(self, model: LatencyModel, pace: Callable[[int], float]) -> None:
        self._model = model
        self._pace = pace
        self._current: int | None = None
        self._from = math.inf
        self._seen: deque[tuple[float, float, float]] = deque(maxlen=256)

    def configured(self, index: int | None, effective_from: float) -> None:
        """Enter which configuration is in use from then on (s, monotonic)."""
        if index != self._current:
            self._current, self._from = index, effective_from + _SETTLING
            self._seen.clear()

    def decided(self, latency: float, now: float) -> None:
        """Enter the latency (s) of a decision; an early one says nothing of full windows."""
        if self._current is not None and now >= self._from and 0.0 < latency < math.inf:
            self._seen.append((now, latency, self._pace(self._current)))

    def predict(self, now: float) -> PredictedLatency:
        """Return what is known at ``now`` (s, monotonic) of every configuration."""
        predicted = self._model.predict(now)
        longest = self._longest(now)
        if self._current is None or longest is None:
            return predicted
        spread = math.log(_MARGIN) / _Z95
        believed = predicted.of(self._current)
        if believed.log_median + _Z95 * believed.spread <= math.log(longest * _MARGIN):
            return predicted
        return predicted.but(self._current, LogNormal(math.log(longest), spread))

    def _longest(self, now: float) -> float | None:
        """Return the longest latency seen lately; None where that proves nothing."""
        while self._seen and not now - _LASTS <= self._seen[0][0] <= now:
            self._seen.popleft()
        if self._current is None or len(self._seen) < _ENOUGH:
            return None
        if self._pace(self._current) > _SLOWER * median(pace for _, _, pace in self._seen):
            return None
        return max(latency for _, latency, _ in self._seen)
