"""Plausibility limits on radar returns.

Garbage on the wire mostly decodes to numbers that are tiny (1e-38) or huge (1e38), but finite;
only physical limits on every field distinguish it from returns.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from math import pi

import numpy as np
from numpy.typing import NDArray

from mmedge_ros.core.data_types import RETURN_FIELDS
from mmedge_ros.core.parameter import parameter
from mmedge_ros.sensing import SensingError

# In the order of the checks: a return counts for the first limit it breaks.
REASONS = ('non_finite', 'range', 'azimuth', 'elevation', 'velocity')

# What a radar's encoder counts, as it is reported to users.
PROBLEM_WORDS = {
    'non_finite': 'returns dropped because they are no finite numbers',
    'range': 'returns dropped as too near or too far',
    'azimuth': 'returns dropped as too far to the side',
    'elevation': 'returns dropped as too far up or down',
    'velocity': 'returns dropped as too fast',
    'no_velocity': 'scans without velocities, so that none of their returns counts as moving',
}


@dataclass(frozen=True)
class RadarLimits:
    """What a return may be like, in the sensor's frame (x forward, y left, z up)."""

    min_range: float = parameter(
        0.3,
        'nearer returns are dropped; the coupling of the antennas through the housing shows '
        'as a constant return at a quarter of a metre',
        unit='m',
        minimum=0.0,
    )
    max_range: float = parameter(
        60.0,
        'farther returns are dropped; small radars see a person up to about 30 m, a car to 60 m',
        unit='m',
        minimum=0.0,
    )
    # Returns farther to the side are dropped; the default keeps the front half space (rad).
    max_azimuth: float = pi / 2
    # Returns farther up or down are dropped; small arrays measure elevation so badly that a
    # tighter limit would lose people (rad).
    max_elevation: float = 1.4
    # Faster returns are dropped; a drone at 20 m/s and a car towards it stay below (m/s).
    max_speed: float = 40.0


def filter_returns(
    returns: NDArray[np.float32], limits: RadarLimits
) -> tuple[NDArray[np.float32], Counter[str]]:
    """Return the plausible ones of (N, 5) returns and how many were dropped for each reason.

    A NaN velocity or snr means *unknown* and is kept; an infinite one, or a position that is
    not finite, is ``non_finite``. Order is kept.

    :raises SensingError: if ``returns`` is not (N, 5)
    """
    if returns.ndim != 2 or returns.shape[1] != len(RETURN_FIELDS):
        raise SensingError(
            f'returns have shape {returns.shape}; expected (N, {len(RETURN_FIELDS)}): '
            f'{", ".join(RETURN_FIELDS)}'
        )
    position = returns[:, :3].astype(np.float64)
    velocity, snr = returns[:, 3].astype(np.float64), returns[:, 4].astype(np.float64)
    # Squares of float32 fit float64, so only inf and NaN can upset the arithmetic, and the
    # first check is there for them.
    with np.errstate(over='ignore', invalid='ignore'):
        across = np.hypot(position[:, 0], position[:, 1])
        distance = np.hypot(across, position[:, 2])
        azimuth = np.abs(np.arctan2(position[:, 1], position[:, 0]))
        elevation = np.abs(np.arctan2(position[:, 2], across))
        breaks = (
            ~np.isfinite(position).all(axis=1) | np.isinf(velocity) | np.isinf(snr),
            (distance < limits.min_range) | (distance > limits.max_range),
            azimuth > limits.max_azimuth,
            elevation > limits.max_elevation,
            np.abs(velocity) > limits.max_speed,
        )
    first = np.argmax(np.stack([*breaks, np.ones(len(returns), bool)]), axis=0)
    counts = np.bincount(first, minlength=len(REASONS) + 1)
    dropped = Counter({r: int(n) for r, n in zip(REASONS, counts, strict=False) if n})
    return returns[first == len(REASONS)], dropped
