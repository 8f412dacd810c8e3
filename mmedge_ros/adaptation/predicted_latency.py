"""Predicted latency of every configuration, and what decisions of the running one correct.

Near saturation unit times cannot show whether a queue will grow: a few percent of their scatter
decide between no wait and a full queue, and the model has to assume the worse. The decisions of
the configuration in use show it.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from statistics import median
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]

# Decisions that are enough, and how long they count, s. Of so many the longest is left out.
_ENOUGH, _LASTS = 3, 2.0
_MANY = 10
# What a configuration is reckoned to keep with 95 %: the longest that was seen, and this more.
_MARGIN, _Z95 = 1.02, 1.6449
# The first decisions still wait for units of the configuration before, and queues empty, s.
_SETTLING = 0.6
# A machine that got this much slower since is another one.
_SLOWER = 1.25


class LogNormal(NamedTuple):
    """A duration: log of its median in seconds, standard deviation of its log."""

    log_median: float
    spread: float


class PredictedLatency:
    """A log-normal latency for each configuration.

    The spread holds both how much latencies scatter and how little is known of them, so that
    a configuration not seen for long needs more room below a limit.

    :param log_median: (size,) log of the median in seconds
    :param spread: (size,) or scalar, standard deviation of log latency
    :param load: (size,) the work of each, in any unit; None where unknown
    :param delay: (size,) s, how long the content of a unit waits to be known on average, queues
        aside; None where unknown
    """

    def __init__(
        self,
        log_median: FloatArray,
        spread: FloatArray | float,
        load: FloatArray | None = None,
        delay: FloatArray | None = None,
    ) -> None:
        self.log_median = log_median
        self.spread = spread
        self.load = load
        self.delay = delay

    def of(self, index: int) -> LogNormal:
        """Return the latency of one configuration."""
        spread = np.broadcast_to(self.spread, self.log_median.shape)[index]
        return LogNormal(float(self.log_median[index]), float(spread))

    def but(self, index: int, known: LogNormal) -> PredictedLatency:
        """Return the same with another latency of one configuration."""
        log_median = self.log_median.copy()
        spread = np.array(np.broadcast_to(self.spread, log_median.shape))
        log_median[index], spread[index] = known
        return PredictedLatency(log_median, spread, self.load, self.delay)

    def quantiles(self, probability: float) -> FloatArray:
        """Return (size,) latencies in seconds that are kept with a probability in (0, 1)."""
        return np.exp(self.log_median + float(ndtri(probability)) * self.spread)

    def best_chance(self, limit: float, allowed: BoolArray | None = None) -> float:
        """Return the largest probability to keep a limit in seconds; 0 where none is known.

        :param allowed: (size,) which to look at; all of them if that is none
        """
        scores = self._scores(limit)
        if allowed is not None and allowed.any():
            scores = scores[allowed]
        known = scores[~np.isnan(scores)]
        return float(ndtr(known.max(initial=-math.inf)))

    def _scores(self, limit: float) -> FloatArray:
        """Return (size,) standard scores of a limit in seconds."""
        if math.isnan(limit) or limit == math.inf:
            return np.full(self.log_median.size, math.inf)
        if limit <= 0.0:
            return np.full(self.log_median.size, -math.inf)
        scores: FloatArray = (math.log(limit) - self.log_median) / self.spread
        return scores


class DecisionProof:
    """What the decisions of the configuration in use say against predicted latencies.

    :param pace: gives how long the units of a configuration take now, in any unit
    """

    def __init__(self, pace: Callable[[int], float]) -> None:
        self._pace = pace
        self._current: int | None = None
        self._from = math.inf
        self._seen: deque[tuple[float, float, float]] = deque(maxlen=256)
        self._expected = PredictedLatency(np.zeros(0), 0.0)

    def configured(self, index: int | None, effective_from: float) -> None:
        """Enter which configuration is in use from then on (s, monotonic)."""
        if index != self._current:
            self._current, self._from = index, effective_from + _SETTLING
            self._seen.clear()

    def decided(self, latency: float, now: float) -> None:
        """Enter the latency (s) of a decision; an early one is not that of a full window."""
        if self._current is not None and now >= self._from and 0.0 < latency < math.inf:
            self._seen.append((now, latency, self._pace(self._current)))

    def corrected(self, predicted: PredictedLatency, now: float) -> PredictedLatency:
        """Return what is known at ``now`` (s, monotonic) of every configuration."""
        self._expected = predicted
        longest = self._longest(now)
        if self._current is None or longest is None:
            return predicted
        spread = math.log(_MARGIN) / _Z95
        believed = predicted.of(self._current)
        if believed.log_median + _Z95 * believed.spread <= math.log(longest * _MARGIN):
            return predicted
        return predicted.but(self._current, LogNormal(math.log(longest), spread))

    def is_explained(self, limit: float) -> bool:
        """Whether unit times alone say that the configuration in use breaks a limit (s)."""
        if self._current is None or not self._current < self._expected.log_median.size:
            return False
        known = self._expected.of(self._current)
        return known.log_median + _Z95 * known.spread > math.log(limit)

    def _longest(self, now: float) -> float | None:
        """Return the longest recent latency; None where there is no proof.

        Of many one is left out: a page fault says nothing of the configuration.
        """
        while self._seen and not now - _LASTS <= self._seen[0][0] <= now:
            self._seen.popleft()
        if self._current is None or len(self._seen) < _ENOUGH:
            return None
        if self._pace(self._current) > _SLOWER * median(pace for _, _, pace in self._seen):
            return None
        latencies = sorted(latency for _, latency, _ in self._seen)
        return latencies[-2 if len(latencies) >= _MANY else -1]
