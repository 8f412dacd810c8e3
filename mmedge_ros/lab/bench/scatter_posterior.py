"""How much a measured quantity scatters, from few samples with outliers among them.

All deviations and scales are of a log: 0.1 is 10 %.
"""

from __future__ import annotations

import math

import numpy as np

# Scales that are thought possible, in log units, and how far before the first sample the
# expected one may be off, as a factor.
_SMALLEST, _LARGEST, _SCALES = 0.001, 1.0, 48
_PRIOR_FACTOR = 2.5
# Share of samples that are no scatter but an accident, and how far up those reach.
_OUTLIERS, _REACH = 0.03, 2.5


class ScatterPosterior:
    """Belief about a standard deviation: one weight for each scale that is possible.

    A sample counts for every scale by how likely it is under it, an outlier being as likely
    under all of them. So a few samples tell 1 % from 15 %, and no single one is taken for more
    scatter than it shows. ``value`` is the root mean square of what is believed.

    :param initial: middle of the scales that are expected before the first sample, above 0;
        as larger ones weigh more, ``value`` begins above it
    :param memory: samples after which older ones have faded, 1 or more
    """

    def __init__(self, initial: float, memory: int = 96) -> None:
        self._scales = np.geomspace(_SMALLEST, _LARGEST, _SCALES)
        apart = np.log(self._scales / initial) / math.log(_PRIOR_FACTOR)
        self._prior = -0.5 * apart**2
        self._evidence = np.zeros(_SCALES)
        self._keep = 1.0 - 1.0 / memory
        self.value = self._mean()

    def update(self, deviation: float, known: float) -> None:
        """Take in a sample's deviation from its expectation; what is no number teaches nothing.

        :param known: standard deviation of that expectation itself
        """
        if not (math.isfinite(deviation) and math.isfinite(known)):
            return
        scales = np.sqrt(self._scales**2 + known**2)
        normal = np.exp(-0.5 * (deviation / scales) ** 2) / (math.sqrt(2.0 * math.pi) * scales)
        likelihood = (1.0 - _OUTLIERS) * normal + _OUTLIERS / _REACH
        self._evidence = self._keep * self._evidence + np.log(likelihood)
        self.value = self._mean()

    def _mean(self) -> float:
        total = self._prior + self._evidence
        weights = np.exp(total - total.max())
        return float(math.sqrt(weights @ self._scales**2 / weights.sum()))
