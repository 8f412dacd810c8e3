"""What a latency model says about every configuration."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

FloatArray = NDArray[np.float64]


class PredictedLatency:
    """A log-normal latency for each configuration.

    The spread holds both how much latencies scatter and how little is known of them, so that
    a configuration not seen for long needs more room below a limit.

    :param log_median: (size,) log of the median in seconds
    :param spread: (size,) or scalar, standard deviation of log latency
    """

    def __init__(self, log_median: FloatArray, spread: FloatArray | float) -> None:
        self.log_median = log_median
        self.spread = spread

    def quantiles(self, probability: float) -> FloatArray:
        """Return (size,) latencies in seconds that are kept with a probability in (0, 1)."""
        return np.exp(self.log_median + float(ndtri(probability)) * self.spread)

    def chances(self, limit: float) -> FloatArray:
        """Return (size,) probabilities to keep a limit in seconds; all 1 where there is none."""
        if math.isnan(limit) or limit == math.inf:
            return np.ones(self.log_median.size)
        if limit <= 0.0:
            return np.zeros(self.log_median.size)
        chances: FloatArray = ndtr((math.log(limit) - self.log_median) / self.spread)
        return chances
