"""Fits how the radar is turned, and how late its stamps are, to returns paired with people.

Expectation maximisation: each return comes from one of the people on whose path it lies, or from
something else. Errors to the left are a mixture of two normal distributions, as limbs and echoes
by way of the ground lie farther off.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mmedge_ros.core.data_types import FloatArray
from mmedge_ros.replay.extrinsics.pairs import NEAR_DIRECTION, NEAR_PATH, Pairs

# Parameters in this order: yaw, pitch, roll (rad), and by how much radar stamps are late (s).
NAMES = ('yaw', 'pitch', 'roll', 'time')
_STEPS = np.array([1e-4, 1e-4, 1e-4, 1e-3])
_LONGEST_STEP = np.array([*np.radians([3.0, 4.0, 4.0]), 0.04])
_CONVERGED = np.array([*np.radians([0.002, 0.01, 0.01]), 1e-5])
_MOST_ROUNDS = 30
_OFF_PATH = 0.35  # m
_TAIL_SHARE, _TAIL = 0.25, 3.0
_UP_WINDOW = np.radians(40.0)
_SQRT_2PI = np.sqrt(2.0 * np.pi)
# Errors of one moment repeat in the next: so long (s) counts as one reading.
_BLOCK = 2.0


class Prior(NamedTuple):
    """What is known of the parameters (4,) before: around ``centre`` with ``deviations``."""

    centre: FloatArray
    deviations: FloatArray


@dataclass(frozen=True)
class Spread:
    """Deviations of the cosines, and the share of returns that are people's."""

    left: float = np.radians(1.5)
    up: float = np.radians(6.0)
    share: float = 0.7


class RotationFit(NamedTuple):
    """Parameters (4,) and their deviations (4,), NaN for those that were held.

    ``blocks`` and ``people`` are how many moments and people the deviations come from;
    ``distance`` m is the median of the returns.
    """

    parameters: FloatArray
    deviations: FloatArray
    spread: Spread
    blocks: int
    people: int
    distance: float


def scan_yaw(pairs: Pairs, late: float, widest: float = np.radians(14.0)) -> float:
    """Return the yaw (rad) at which most returns lie in the direction of someone as far away."""
    candidates = np.arange(-widest, widest + 1e-9, np.radians(1.0))
    spread, count = np.radians(3.0), np.bincount(pairs.returned)[pairs.returned]
    by_range = np.exp(-0.5 * ((pairs.disagreement + 0.05) / 0.2) ** 2) / count
    scores = []
    for yaw in candidates:
        left, _ = pairs.errors(np.array([yaw, 0.0, 0.0, late]))
        fit = np.bincount(pairs.returned, by_range * np.exp(-0.5 * (left / spread) ** 2))
        scores.append(np.log(fit + 0.05).sum())
    return float(candidates[int(np.argmax(scores))])


def fit_rotation(
    pairs: Pairs, start: FloatArray, prior: Prior, free: NDArray[np.bool_], spread: Spread
) -> RotationFit:
    """Fit the ``free`` (4,) parameters, from ``start`` on; the others stay where the prior is.

    :param spread: to begin with; where the radar measures no elevation, ``up`` is infinite
    """
    parameters = np.where(free, start, prior.centre)
    for _ in range(_MOST_ROUNDS):
        step = _Step(pairs, parameters, spread)
        precision = step.information + np.diag(prior.deviations**-2.0)
        slope = step.slopes.sum(axis=0) - (parameters - prior.centre) / prior.deviations**2
        move = np.zeros(4)
        move[free] = np.linalg.solve(precision[np.ix_(free, free)], slope[free])
        move = np.clip(move, -_LONGEST_STEP, _LONGEST_STEP)
        parameters, spread = parameters + move, step.spread
        if (np.abs(move) < _CONVERGED).all():
            break
    deviations = np.full(4, np.nan)
    inverse = np.linalg.inv(precision[np.ix_(free, free)])
    moments = np.floor(pairs.times / _BLOCK)
    # Of errors that last for a while, and of those that go with a person, the larger counts.
    variances = [
        np.diag(inverse @ _scatter(step.slopes[:, free], group) @ inverse)
        for group in (moments, pairs.track)
    ]
    deviations[free] = np.sqrt(np.max(variances, axis=0))
    return RotationFit(
        parameters,
        deviations,
        spread,
        len(np.unique(moments)),
        len(np.unique(pairs.track)),
        float(np.median(pairs.ranges)),
    )


def _scatter(slopes: FloatArray, group: FloatArray | NDArray[np.intp]) -> FloatArray:
    """Return the scatter (K, K) of the sums of slopes (P, K) in each group (P,)."""
    _, number = np.unique(group, return_inverse=True)
    sums = np.stack([np.bincount(number, column) for column in slopes.T], axis=1)
    return np.asarray(sums.T @ sums * len(sums) / max(len(sums) - 1, 1))


class _Step:
    """One round: who sent which return, and what that says of parameters and spread."""

    def __init__(self, pairs: Pairs, parameters: FloatArray, spread: Spread) -> None:
        left, up = pairs.errors(parameters)
        has_up = np.isfinite(spread.up)
        core = (1.0 - _TAIL_SHARE) * _density(left, spread.left)
        tail = _TAIL_SHARE * _density(left, _TAIL * spread.left)
        likelihood = (core + tail) * _density(pairs.off_path, _OFF_PATH)
        clutter = 1.0 / (4.0 * NEAR_DIRECTION * NEAR_PATH)
        if has_up:
            likelihood *= _density(up, spread.up)
            clutter /= _UP_WINDOW
        rivals = np.bincount(pairs.returned)[pairs.returned]
        likelihood *= spread.share / rivals
        total = np.bincount(pairs.returned, likelihood) + (1.0 - spread.share) * clutter
        weight = likelihood / total[pairs.returned]
        in_core = core / (core + tail)
        across = weight * (in_core + (1.0 - in_core) / _TAIL**2)
        to_left, upwards = np.empty((len(pairs), 4)), np.zeros((len(pairs), 4))
        for k, size in enumerate(_STEPS):
            moved = parameters.copy()
            moved[k] += size
            moved_left, moved_up = pairs.errors(moved)
            to_left[:, k] = (moved_left - left) / size
            if has_up:
                upwards[:, k] = (moved_up - up) / size
        by_left, by_up = across / spread.left**2, weight / spread.up**2
        self.information = (to_left * by_left[:, None]).T @ to_left
        self.information += (upwards * by_up[:, None]).T @ upwards
        self.slopes = -to_left * (by_left * left)[:, None] - upwards * (by_up * up)[:, None]
        sure = weight.sum()
        self.spread = Spread(
            _within(np.sqrt((across * left**2).sum() / sure), 0.3, 4.0),
            _within(np.sqrt((weight * up**2).sum() / sure), 1.0, 10.0) if has_up else np.inf,
            float(np.clip(sure / len(total), 0.05, 0.98)),
        )


def _density(errors: FloatArray, deviation: float) -> FloatArray:
    return np.asarray(np.exp(-0.5 * (errors / deviation) ** 2) / (deviation * _SQRT_2PI))


def _within(value: float, low: float, high: float) -> float:
    """Limit a deviation in rad to degrees."""
    return float(np.clip(value, np.radians(low), np.radians(high)))
