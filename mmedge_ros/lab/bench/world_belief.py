"""Which of many worlds agree with what was measured, and what follows for everything else."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mmedge_ros.configuration import ConfigurationError

FloatArray = NDArray[np.float64]

# No single measurement decides against a world: the worlds are rough.
_WORST_MISFIT = 8.0
# Worlds that are asked after the measurements, times configurations.
_CELLS = 8_000
_FEWEST = 16


class Sighting(NamedTuple):
    """What was measured of one configuration.

    ``ratio`` is log(latency / profiled latency) with a finite ``variance``; ``worth`` in 0..1
    is the probability that it still holds.
    """

    configuration: int
    ratio: float
    variance: float
    worth: float


class Belief(NamedTuple):
    """A mixture of normal log ratios for each configuration, all arrays (count, size).

    ``shares`` add up to 1 over the components; ``ratios`` are means, ``ignorance`` the standard
    deviations of these. The last component is what was measured, the others are worlds.
    """

    shares: FloatArray
    ratios: FloatArray
    ignorance: FloatArray


class WorldBelief:
    """Worlds, each with the error it may have and still be right.

    :param worlds: (count, size) log ratios
    :param error: standard deviation of a log ratio that a world says is unchanged
    :param growth: how much more that is per unit of log ratio: what is overloaded is rough
    :param tolerance: how far measurements may be from a world that is still thought right
    :raises ConfigurationError: for no worlds, or log ratios that are no numbers
    """

    def __init__(
        self, worlds: NDArray[np.float32], error: float, growth: float, tolerance: float
    ) -> None:
        if worlds.ndim != 2 or worlds.size == 0 or not np.isfinite(worlds).all():
            raise ConfigurationError(
                f'worlds of shape {worlds.shape} are none or hold what is no number; '
                'draw at least one, of finite log ratios'
            )
        # One row per configuration, since they are asked about one by one.
        self._means = np.ascontiguousarray(worlds.T, np.float64)
        self._variances = np.square(error + growth * np.abs(self._means))
        self._tolerated = tolerance**2
        self._count = min(max(_CELLS // len(self._means), _FEWEST), len(worlds))

    def of(self, index: int, sightings: Sequence[Sighting]) -> tuple[float, float]:
        """Return mean and variance of the log ratio of one that was not measured itself.

        :param sightings: of others than ``index``
        """
        support = np.zeros(self._means.shape[1])
        for sighting in sightings:
            support += self._support(sighting)
        shares = _normalised(support)
        means = self._means[index]
        mean = float(shares @ means)
        return mean, float(shares @ (means**2 + self._variances[index])) - mean**2

    def mixture(self, sightings: Sequence[Sighting]) -> Belief:
        """Return what is believed of all configurations.

        :param sightings: at most one of each
        """
        support = [self._support(sighting) for sighting in sightings]
        total = np.sum(support, axis=0) if support else np.zeros(self._means.shape[1])
        ratios, variances = self._drawn(total)
        worths = np.zeros(ratios.shape[1])
        seen, ignorance = np.zeros(ratios.shape[1]), np.ones(ratios.shape[1])
        for sighting, own in zip(sightings, support, strict=True):
            index = sighting.configuration
            # If it holds no more, it says nothing about its own configuration.
            ratios[:, index], variances[:, index] = self._drawn(total - own, index)
            seen[index], variance = self._seen(_normalised(total), sighting)
            ignorance[index] = math.sqrt(variance)
            worths[index] = sighting.worth
        stale = np.broadcast_to((1.0 - worths) / len(ratios), ratios.shape)
        return Belief(
            np.vstack([stale, worths]),
            np.vstack([ratios, seen]),
            np.vstack([np.sqrt(variances), ignorance]),
        )

    def _drawn(
        self, support: FloatArray, index: int | slice = slice(None)
    ) -> tuple[FloatArray, FloatArray]:
        """Return means and variances of worlds, each as often as it is probable."""
        steps = (np.arange(self._count) + 0.5) / self._count
        drawn = np.searchsorted(np.cumsum(_normalised(support)), steps)
        drawn = np.minimum(drawn, len(support) - 1)
        return self._means[index].T[drawn], self._variances[index].T[drawn]

    def _support(self, sighting: Sighting) -> FloatArray:
        """Return (count,) how much a measurement speaks for each world, in log units."""
        index, ratio, variance, worth = sighting
        misfit = 0.5 * (ratio - self._means[index]) ** 2 / (self._tolerated + variance)
        support: FloatArray = -worth * np.minimum(misfit - misfit.min(), _WORST_MISFIT)
        return support

    def _seen(self, shares: FloatArray, sighting: Sighting) -> tuple[float, float]:
        """Return mean and variance of what was measured, given what the worlds say of it."""
        index = sighting.configuration
        means, variances = self._means[index], self._variances[index]
        trust = variances / (variances + sighting.variance)
        updated = means + trust * (sighting.ratio - means)
        mean = float(shares @ updated)
        spread = float(shares @ (updated**2 + trust * sighting.variance)) - mean**2
        return mean, max(spread, 0.0)


def _normalised(support: FloatArray) -> FloatArray:
    shares = np.exp(support - support.max())
    normalised: FloatArray = shares / shares.sum()
    return normalised
