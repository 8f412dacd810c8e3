"""What a track claims about its errors, weighed by how it has done.

A filter's covariance is right where its model is. People are followed by boxes and returns
whose errors are seldom small and large ones at a time: most of the time a track is surer than it
says, and now and then, for seconds, the returns are somebody else's or the box is half another's.
How often and how much was compared with the truth of simulated flights: what a covariance must
hold is the second moment of the errors, so the filter's is scaled, position and velocity along
the line of sight and across it, by what goes with larger errors. It is scaled only where it is
reported; what the tracker itself takes for possible stays as it is.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from mmedge_ros.data_types import NS_PER_S, FloatArray, Measurement

# Squared innovations are remembered for about so long, s.
_MEMORY = 0.5
# Larger ones say no more than that something is wrong.
_LARGEST = 30.0
_POSITION_DOF = 3
# Where everything is foreseen to the millimetre errors are not that small.
_LEAST_SURPRISE = 0.3
# Time (s) in which a new track settles, and in which a radar's range goes stale.
_SETTLING = _STALE = 0.5
_SHORTEST_SIGHT = 1e-3
# Most people were this far away (m) in the flights compared, and nearly all within e^1.2 times.
_MIDDLE_DISTANCE = 15.0
_MOST_UNUSUAL = 1.5
# Who seems to stand walks nearly as fast as this (m/s) now and then, and nobody ran faster.
_LEAST_SPEED, _MOST_SPEED = 0.2, 3.0
# Where the ranges of the boxes compared came from, but for the radar.
_COMPARED = ('height', 'learned')


class Conduct(NamedTuple):
    """How well a track has foreseen its boxes.

    ``surprise`` is the mean squared innovation per dimension, 1 where the filter is right,
    over readings of ``weight`` up to ``stamp_ns``; ``origin`` (3,) m is where they were seen
    from, None where nothing but a radar ranged them. ``learned`` is whether networks did that,
    which err otherwise than heights of boxes.
    """

    surprise: float = 0.0
    weight: float = 0.0
    stamp_ns: int = 0
    origin: FloatArray | None = None
    learned: bool = False


UNTRIED = Conduct()


class _LogFactors(NamedTuple):
    """Logarithm of what a variance is to be multiplied by, as a sum.

    ``usual`` always; ``surprise`` for every e-fold of it; ``new`` of a track that begins,
    ``unranged`` of one the radar does not range (any more), ``company`` of one in the same line
    of sight as another; ``approaching`` and ``crossing`` for every e-fold of the speed along
    the line of sight and across it; ``unusual`` of one much nearer or further than most.
    """

    usual: float
    surprise: float
    new: float
    unranged: float
    company: float
    approaching: float
    crossing: float
    unusual: float


class _Factors(NamedTuple):
    """Those of a position and a velocity, each along the line of sight and across it."""

    along: _LogFactors
    across: _LogFactors
    approaching: _LogFactors
    crossing: _LogFactors


# Of the greatest likelihood (Gaussian, every second of a track weighs the same) for the errors in
# the validation set and the calibration set, with the shipped detector and with the shipped
# networks of feature fusion; docs/test_set_results.md says what they come to elsewhere.
_BY_HEIGHT = _Factors(
    _LogFactors(-0.58, 1.55, 0.71, 1.10, 1.22, -0.19, -0.35, 0.80),
    _LogFactors(0.46, 0.26, -0.02, -0.38, 0.74, -0.24, 0.14, 0.13),
    _LogFactors(-0.39, 0.70, 1.38, -1.05, 0.42, 1.26, -0.09, 0.29),
    _LogFactors(-1.11, 0.93, 0.87, -0.08, 1.25, 0.02, 0.92, 0.44),
)
_LEARNED = _Factors(
    _LogFactors(1.83, 1.28, 0.77, -0.18, 0.63, 0.21, -0.51, -0.79),
    _LogFactors(0.22, 0.48, 0.18, 0.10, 1.11, -0.32, 0.24, 0.36),
    _LogFactors(-0.20, 0.45, 1.07, -0.70, 0.38, 1.30, 0.01, 0.11),
    _LogFactors(-1.14, 1.00, 0.93, 0.36, 1.76, 0.13, 0.83, 0.17),
)


class Circumstances(NamedTuple):
    """What a track is reported in.

    ``age`` is the time in s since it began, ``unranged`` that since the radar last saw it,
    infinite if it never did; ``company`` is 1 with another track in the same line of sight, and
    falls with the distance (m) between the lines, see `company_of`.
    """

    age: float
    unranged: float
    company: float


def after_reading(conduct: Conduct, measurement: Measurement, distance: float) -> Conduct:
    """Take note of how far from where it was foreseen an object was seen.

    :param distance: squared Mahalanobis distance of the position
    """
    if measurement.box is None:
        return conduct
    read = measurement.otherwise or measurement
    since = max(measurement.stamp_ns - conduct.stamp_ns, 0) / NS_PER_S
    kept = conduct.weight * math.exp(-since / _MEMORY)
    surprise = min(distance, _LARGEST) / _POSITION_DOF
    return Conduct(
        (kept * conduct.surprise + surprise) / (kept + 1.0),
        kept + 1.0,
        measurement.stamp_ns,
        measurement.origin if read.range_from in _COMPARED else None,
        read.range_from == 'learned',
    )


def weighed_claim(
    mean: FloatArray,
    covariance: FloatArray,
    conduct: Conduct,
    where: Circumstances,
    trust: float,
) -> FloatArray:
    """Return the covariance (6, 6) to report of a state (6,).

    :param trust: how far to go by that comparison, 0 (not at all: what the filter says) to 1
    """
    if conduct.origin is None or trust <= 0.0:
        return covariance
    sight = mean[:3] - conduct.origin
    distance = math.sqrt(float(sight @ sight))
    if not distance > _SHORTEST_SIGHT:  # NaN is not
        return covariance
    ray = sight / distance
    approach = float(ray @ mean[3:])
    aside = mean[3:] - approach * ray
    told = (
        1.0,
        math.log(_LEAST_SURPRISE + conduct.surprise),
        math.exp(-max(where.age, 0.0) / _SETTLING),
        -math.expm1(-max(where.unranged, 0.0) / _STALE),
        where.company,
        math.log(_LEAST_SPEED + min(abs(approach), _MOST_SPEED)),
        math.log(_LEAST_SPEED + min(math.sqrt(float(aside @ aside)), _MOST_SPEED)),
        min(math.log(distance / _MIDDLE_DISTANCE) ** 2, _MOST_UNUSUAL),
    )
    along, across, approaching, crossing = (
        math.exp(0.5 * trust * sum(f * t for f, t in zip(factors, told, strict=True)))
        for factors in (_LEARNED if conduct.learned else _BY_HEIGHT)
    )
    line = np.outer(ray, ray)
    scale = np.zeros((6, 6))
    scale[:3, :3] = across * np.eye(3) + (along - across) * line
    scale[3:, 3:] = crossing * np.eye(3) + (approaching - crossing) * line
    scaled: FloatArray = scale @ covariance @ scale
    return scaled


def company_of(positions: FloatArray, origins: Sequence[FloatArray | None]) -> list[float]:
    """How near (0..1) the line of sight of each object is to the nearest other one's.

    :param positions: (N, 3) m
    :param origins: where each is seen from; None: the answer is 0
    """
    found = []
    for i, origin in enumerate(origins):
        if origin is None or len(positions) < 2:
            found.append(0.0)
            continue
        sights = positions - origin
        lengths = np.maximum(np.sqrt(np.einsum('ij,ij->i', sights, sights)), _SHORTEST_SIGHT)
        cosines = sights @ sights[i] / (lengths * lengths[i])
        apart = lengths[i] * np.sqrt(np.clip(1.0 - cosines**2, 0.0, 1.0))
        apart[cosines <= 0.0] = np.inf
        apart[i] = np.inf
        found.append(float(np.exp(-apart.min())))
    return found
