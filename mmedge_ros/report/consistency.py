"""Covariance consistency: the normalised estimation error squared (NEES).

Where errors are as large as the covariances say, the NEES of a state of k dimensions follows
the chi-squared distribution with k degrees of freedom, and the average over n independent
samples lies within the quantiles of chi-squared(n k) / n (Bar-Shalom, Li, Kirubarajan,
"Estimation with Applications to Tracking and Navigation", section 5.4). Above the bounds
the tracker is overconfident, below them underconfident.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtri

from mmedge_ros.core.data_types import NS_PER_S, FloatArray

_CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class Consistency:
    """Average NEES of ``samples`` independent samples, NaN without any.

    ``low`` and ``high`` are where that of a consistent tracker lies, 19 times of 20; ``in_bounds``
    is None without a sample. ``outside_95`` is the share of single samples beyond the bound that
    95 % of them should keep.
    """

    mean: float
    dof: int
    low: float
    high: float
    samples: int
    in_bounds: bool | None
    outside_95: float


def average_bounds(dof: int, samples: int) -> tuple[float, float]:
    """Return the 95 % bounds of the average of that many independent NEES samples."""
    if not samples:
        return math.nan, math.nan
    tail = (1.0 - _CONFIDENCE) / 2.0
    low, high = (float(chdtri(samples * dof, p)) / samples for p in (1.0 - tail, tail))
    return low, high


def consistency_of(values: FloatArray, dof: int) -> Consistency:
    """Average independent NEES samples (N,); values that are not finite are left out."""
    finite = values[np.isfinite(values)]
    low, high = average_bounds(dof, len(finite))
    if not len(finite):
        return Consistency(math.nan, dof, low, high, 0, None, math.nan)
    mean, bound = float(finite.mean()), chdtri(dof, 1.0 - _CONFIDENCE)
    outside = float((finite > bound).mean())
    return Consistency(mean, dof, low, high, len(finite), low <= mean <= high, outside)


def nees(errors: FloatArray, covariances: FloatArray) -> FloatArray:
    """Return the NEES (N,) of errors (N, k) under covariances (N, k, k).

    NaN where the covariance is none: not finite, or not positive definite.
    """
    values = np.full(len(errors), np.nan)
    for place, (error, covariance) in enumerate(zip(errors, covariances, strict=True)):
        if not (np.isfinite(error).all() and np.isfinite(covariance).all()):
            continue
        try:
            lower = np.linalg.cholesky(covariance)
        except np.linalg.LinAlgError:
            continue
        whitened = np.linalg.solve(lower, error)
        values[place] = float(whitened @ whitened)
    return values


def thinned(stamps_ns: Sequence[int], numbers: Sequence[int], spacing: float) -> NDArray[np.intp]:
    """Choose samples of each number (a track's id) at least ``spacing`` seconds apart.

    The errors of one track follow from one another; only after a while are they new ones.
    """
    spacing_ns = round(spacing * NS_PER_S)
    last: dict[int, int] = {}
    chosen = []
    for place in np.argsort(np.asarray(stamps_ns, np.int64), kind='stable').tolist():
        stamp_ns, number = stamps_ns[place], numbers[place]
        if number not in last or stamp_ns - last[number] >= spacing_ns:
            last[number] = stamp_ns
            chosen.append(place)
    return np.array(chosen, np.intp)
