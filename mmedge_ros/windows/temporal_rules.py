"""Which units of a window are compared, and how they are weighted: the rules of aggregation.

Training and flight take the numbers from here. Both find neighbours in time as float32 seconds
to the window's end, so that they agree on ties as well.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mmedge_ros.windows.network_graph import Array

# In s. At 30 Hz the farther lag with its tolerance reaches seven units back.
LAGS = (0.1, 0.2)
LAG_TOLERANCE = 0.05
NEIGHBOUR_TOLERANCE = 0.12
REMEMBERED = 8
# exp(-10) is nothing beside a unit at the window's end, and keeps sums of weights above zero.
LARGEST_EXPONENT = 10.0
OLDEST = 10.0

_LAGS = np.array(LAGS, np.float32)[:, None]
_LAG_TOLERANCE = np.float32(LAG_TOLERANCE)
_NEIGHBOUR_TOLERANCE = np.float32(NEIGHBOUR_TOLERANCE)


class Neighbours(NamedTuple):
    """Which units before it a unit is encoded with.

    ``is_near`` says that the unit before is its neighbour in the temporal shift, and it that
    one's; ``lagged`` has for each lag the place of a recent unit, None where there is none.
    """

    is_near: bool
    lagged: tuple[int | None, ...]


def neighbours(recent: Array, seconds: np.float32) -> Neighbours:
    """Find the neighbours of a unit among those before it.

    :param recent: (N,) seconds from them to the window's end, newest first; at most REMEMBERED
    :param seconds: from the unit to the window's end
    """
    if not recent.size:
        return Neighbours(False, (None,) * len(LAGS))
    gaps = recent - seconds
    misses = np.abs(gaps - _LAGS)
    nearest = misses.argmin(axis=1).tolist()
    lagged = tuple(
        place if misses[lag, place] <= _LAG_TOLERANCE else None
        for lag, place in enumerate(nearest)
    )
    return Neighbours(bool(gaps[0] <= _NEIGHBOUR_TOLERANCE), lagged)


def weights(decays: Array, seconds: float) -> Array:
    """Return how much each channel of a unit counts when a window is pooled: (W,).

    :param decays: (W,) per second
    :param seconds: from the unit to the window's end
    """
    age = np.float32(min(max(float(seconds), 0.0), OLDEST))
    shares: Array = np.exp(-np.minimum(decays * age, np.float32(LARGEST_EXPONENT)))
    return shares
