"""Latencies of configurations of which several things may be true."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from mmedge_ros.configuration.predicted_latency import PredictedLatency

FloatArray = NDArray[np.float64]

_LEAST_CHANCE = 1e-9
_LEAST_SPREAD = 1e-6


class MixtureLatency(PredictedLatency):
    """A mixture of log-normal latencies for each configuration.

    A queue grows without bound or it does not: what lies between is hardly ever true, so one
    log-normal around the mean would promise neither. ``log_median`` and ``spread`` are mean
    and standard deviation of the mixture's log latency.

    :param table: (size,) profiled log latencies, s in log units
    :param shares: (count,) or (count, size) probability of each component; they add up to 1
    :param ratios: (count, size) mean of log(latency / profiled latency) in each
    :param ignorance: (count, size) standard deviation of that mean
    :param scatter: standard deviation of the log latency of one decision around it
    """

    def __init__(
        self,
        table: FloatArray,
        shares: FloatArray,
        ratios: FloatArray,
        ignorance: FloatArray,
        scatter: float,
    ) -> None:
        self._shares = np.broadcast_to(
            shares if shares.ndim == 2 else shares[:, None], ratios.shape
        )
        self._medians = table + ratios
        self._ignorance = np.maximum(ignorance, _LEAST_SPREAD)
        self._spreads = np.sqrt(self._ignorance**2 + scatter**2)
        mean = self._average(self._medians)
        variance = self._average(self._medians**2 + self._spreads**2) - mean**2
        # Rounding aside, no mixture is narrower than its narrowest component.
        narrowest = float(self._spreads.min())
        super().__init__(mean, np.sqrt(np.maximum(variance, narrowest**2)))
        self._scatter = scatter
        self._known: tuple[float, FloatArray] = (math.nan, mean)

    def quantiles(self, probability: float, near: float = math.nan) -> FloatArray:
        """Return (size,) latencies in seconds that are kept with a probability in (0, 1).

        They are those of the log-normal around ``log_median``, or, with ``near``, of one that
        is as wide and keeps that latency with the same chance as the mixture. So a quantile is
        at most ``near`` where the mixture keeps it with that probability, and nowhere else.

        :param near: latency in seconds around which they matter, such as a limit
        """
        around = super().quantiles(probability)
        if not 0.0 < near < math.inf:
            return around
        chances = self.chances(near)
        missing = float(ndtri(probability)) - ndtri(
            np.clip(chances, _LEAST_CHANCE, 1.0 - _LEAST_CHANCE)
        )
        quantiles: FloatArray = near * np.exp(missing * np.asarray(self.spread))
        # So far beyond that a chance tells nothing, what is slower has to remain so.
        beyond = chances < _LEAST_CHANCE
        return np.where(beyond, np.maximum(around, near * (1.0 + _LEAST_SPREAD)), quantiles)

    def promises(self, limit: float, certainty: float) -> FloatArray:
        """Return (size,) probabilities to prove good enough: to keep a limit that certainly.

        That is, how likely the mean leaves room for the scatter below it.

        :param limit: s
        :param certainty: in (0, 1)
        """
        if not 0.0 < limit < math.inf:
            return self.chances(limit)
        room = math.log(limit) - float(ndtri(certainty)) * self._scatter - self._medians
        return self._average(ndtr(room / self._ignorance))

    def chances(self, limit: float) -> FloatArray:
        """Return (size,) probabilities to keep a limit in seconds; all 1 where there is none."""
        if not 0.0 < limit < math.inf:
            return super().chances(limit)
        if self._known[0] != limit:
            scores = (math.log(limit) - self._medians) / self._spreads
            self._known = limit, self._average(ndtr(scores))
        return self._known[1]

    def best_chance(self, limit: float, allowed: NDArray[np.bool_] | None = None) -> float:
        """Return the largest of these probabilities; 0 where none is known.

        :param allowed: (size,) which to look at; all of them if that is none
        """
        chances = self.chances(limit)
        if allowed is not None and allowed.any():
            chances = chances[allowed]
        return float(chances[~np.isnan(chances)].max(initial=0.0))

    def _average(self, values: FloatArray) -> FloatArray:
        average: FloatArray = np.einsum('ij,ij->j', self._shares, values)
        return average
