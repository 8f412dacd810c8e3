"""Random numbers of a flight: one independent stream for each purpose.

A stream depends on the flight's seed and the purpose only, so that the same seed gives the same
people in another light, and a sensor that looks more often changes nothing for the others.
"""

from __future__ import annotations

from enum import IntEnum

import numpy as np


class Stream(IntEnum):
    """Purposes; the numbers are part of what a seed means and never change."""

    PATH = 1
    SURROUNDINGS = 2
    MOTION = 3
    LOOKS = 4
    LIGHT = 5
    RIG = 6
    VIBRATION = 7
    SYSTEM = 8
    ODOMETRY = 9


def generator(seed: int, stream: Stream, *more: int) -> np.random.Generator:
    """Return the generator of one purpose; ``more`` tells apart its parts."""
    return np.random.default_rng((seed, int(stream), *more))
