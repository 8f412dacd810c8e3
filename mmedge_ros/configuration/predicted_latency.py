"""What a latency model says about every configuration."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]


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
    :param load: (size,) what each asks of the machine, in any unit; None where nobody knows
    """

    def __init__(
        self,
        log_median: FloatArray,
        spread: FloatArray | float,
        load: FloatArray | None = None,
    ) -> None:
        self.log_median = log_median
        self.spread = spread
        self.load = load

    def of(self, index: int) -> LogNormal:
        """Return what is said of one configuration."""
        spread = np.broadcast_to(self.spread, self.log_median.shape)[index]
        return LogNormal(float(self.log_median[index]), float(spread))

    def but(self, index: int, known: LogNormal) -> PredictedLatency:
        """Return the same with another latency of one configuration."""
        log_median = self.log_median.copy()
        spread = np.array(np.broadcast_to(self.spread, log_median.shape))
        log_median[index], spread[index] = known
        return PredictedLatency(log_median, spread, self.load)

    def quantiles(
        self,
        probability: float,
        near: float = math.nan,  # noqa: ARG002
    ) -> FloatArray:
        """Return (size,) latencies in seconds that are kept with a probability in (0, 1).

        :param near: latency in seconds around which they matter, where that makes a difference
        """
        return np.exp(self.log_median + float(ndtri(probability)) * self.spread)

    def chances(self, limit: float) -> FloatArray:
        """Return (size,) probabilities to keep a limit in seconds; all 1 where there is none."""
        chances: FloatArray = ndtr(self._scores(limit))
        return chances

    def promises(
        self,
        limit: float,
        certainty: float,  # noqa: ARG002
    ) -> FloatArray:
        """Return (size,) probabilities to prove good enough: to keep a limit that certainly.

        Here those to keep it once: nobody knows which part of the spread is ignorance.
        """
        return self.chances(limit)

    def best_chance(self, limit: float, allowed: BoolArray | None = None) -> float:
        """Return the largest of these probabilities; 0 where none is known.

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
