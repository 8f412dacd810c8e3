"""The configurations worth choosing, sorted, so that a limit is answered by bisection."""

from __future__ import annotations

import math
from bisect import bisect_right

import numpy as np
from numpy.typing import ArrayLike

from mmedge_ros.configuration import ConfigurationError


class ParetoFront:
    """A front of accuracy over latency, for when neither has changed since it was made.

    Gives for every limit what the exact search gives (without a current configuration).

    :param accuracy: (size,) predicted
    :param latency: (size,) quantile, s
    :param allowed: (size,) what the caps allow; everything if that is nothing
    :param energy: (size,) in any unit, breaks ties of accuracy and latency
    :raises ConfigurationError: if the arrays are empty or differ in size
    """

    def __init__(
        self,
        accuracy: ArrayLike,
        latency: ArrayLike,
        allowed: ArrayLike | None = None,
        energy: ArrayLike | None = None,
    ) -> None:
        score = np.asarray(accuracy, np.float64)
        seconds = np.asarray(latency, np.float64)
        if score.ndim != 1 or not score.size or seconds.shape != score.shape:
            raise ConfigurationError(
                f'a front needs one accuracy and one latency per configuration, not '
                f'{score.shape} and {seconds.shape}'
            )
        score = np.where(np.isfinite(score), score, -math.inf)
        seconds = np.where(np.isfinite(seconds), seconds, math.inf)
        cost = np.zeros(score.size) if energy is None else np.asarray(energy, np.float64)
        cost = np.where(np.isfinite(cost), cost, math.inf)
        mask = np.ones(score.size, bool) if allowed is None else np.asarray(allowed, bool)
        found = np.flatnonzero(mask if mask.any() else ~mask)
        order = found[np.lexsort((cost[found], -score[found], seconds[found]))]
        order = order[seconds[order] < math.inf]
        if not order.size:
            order = found[:1]
        best_before = np.maximum.accumulate(score[order])
        better = np.concatenate([[True], best_before[1:] > best_before[:-1]])
        self._indices: list[int] = order[better].tolist()
        self._latencies: list[float] = seconds[order[better]].tolist()

    def __len__(self) -> int:
        return len(self._indices)

    def choose(self, limit: float) -> tuple[int, bool]:
        """Return the best configuration for a limit in seconds and whether it keeps it."""
        limit = math.inf if math.isnan(limit) else limit
        place = bisect_right(self._latencies, limit)
        if place == 0 or self._latencies[place - 1] == math.inf:
            return self._indices[0], False
        return self._indices[place - 1], True
