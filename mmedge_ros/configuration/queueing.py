"""How long the last unit of a window takes when units may have to queue.

Unit i arrives at a_i and takes e_i: it is finished at f_i = max(f_(i-1), a_i) + e_i (MMEdge,
the queueing recursion behind max(L_E, L_S) x N). Below saturation only the last unit's own time
is left after the window; above it, the queue of a whole window.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]


def last_unit_quantiles(
    service: FloatArray,
    scatter: FloatArray,
    ignorance: FloatArray,
    interval: FloatArray,
    standard_scores: Sequence[float],
    units: FloatArray,
    capacity: int,
    ahead: FloatArray | float = 0.0,
) -> FloatArray:
    """Return quantiles of the time from a window's end until its last unit is finished.

    Unrolled, the recursion says f_N - a_N = max over k of (e_(N-k) + ... + e_N - k d) for
    units that arrive every d seconds, the last of them as the window ends. The quantile of
    each sum is that of a normal distribution (scatter averages out over a sum, ignorance does
    not), and the largest is taken: exact without scatter, a little low near saturation. A
    queue that drops its oldest unit bounds the sum by ``capacity`` units that wait and the one
    in work.

    :param service: (size,) time per unit, s
    :param scatter: (size,) its standard deviation from unit to unit, s
    :param ignorance: (size,) standard deviation of what is known of ``service``, s
    :param interval: (size,) time between units, s
    :param standard_scores: (n,) of the quantiles, 1.645 for 95 %
    :param units: (size,) how many units a queue can have been growing for
    :param capacity: units that can wait
    :param ahead: (`queue_lengths`, size) s, by how much earlier than that the last so many
        units begin to arrive; times are negative for a unit that is finished before the end
    :return: (n, size)
    """
    count = queue_lengths(max(int(units.max(initial=1.0)), 1))
    full = capacity + 1.0
    early = np.broadcast_to(ahead, (len(count), len(service)))
    waited = count * service - (count - 1.0) * interval - early
    mean = np.where(count <= units, waited, -np.inf)
    spread = _spread(count, scatter, ignorance)
    full_spread, own_spread = (_spread(n, scatter, ignorance) for n in (full, 1.0))
    finished = []
    for score in standard_scores:
        longest = (mean + score * spread).max(axis=0)
        bound = full * service + score * full_spread - early[0]
        own = service + score * own_spread - early[0]
        finished.append(np.maximum(np.minimum(longest, bound), own))
    return np.stack(finished)


def _spread(count: FloatArray | float, scatter: FloatArray, ignorance: FloatArray) -> FloatArray:
    """Return the standard deviation of the sum of so many units, s."""
    spread: FloatArray = np.sqrt(count * scatter**2 + (count * ignorance) ** 2)
    return spread


@lru_cache(maxsize=64)
def queue_lengths(longest: int) -> FloatArray:
    """Return (n, 1) lengths of a queue; it grows steadily, so not every one is looked at."""
    return np.unique(np.geomspace(1.0, longest, min(longest, 12)).round())[:, None]
