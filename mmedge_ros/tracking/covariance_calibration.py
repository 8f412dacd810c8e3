"""Covariance calibration: reported covariances, corrected by how large errors were in flights.

A filter's covariance is right where its model is. The errors of boxes and returns are mostly small
and now and then large: returns of another object, a box that is half another's. A calibration was
fitted to the errors of flights with known truth. It scales the variances of position and velocity,
along the line of sight and across it, by what goes with larger errors. It comes with the model
bundle; without one the filter's covariance is reported. The filter itself does not use it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from mmedge_ros.data_types import NS_PER_S, FloatArray, Measurement
from mmedge_ros.encoding import EncodingError
from mmedge_ros.untrusted_files import PlainYamlError, load_plain_yaml, shown

CALIBRATION_FILE = 'covariance_calibration.yaml'
_LARGEST_FILE = 1 << 16
# e^10 times a variance: no error is so much larger than the filter says.
_LARGEST_FACTOR = 10.0
# By what sets the range of a box; ranges of the radar go with those of the box they are in.
_RANGES = ('height', 'learned')
_VARIANCES = ('position_along', 'position_across', 'velocity_along', 'velocity_across')
# Logarithms of factors, which are summed: ``usual`` always; ``innovation`` for every e-fold of the
# mean squared innovation; ``new`` of a track that begins, ``unranged`` of one that the radar does
# not range, ``crowding`` of one in the line of sight of another; ``speed_along`` and
# ``speed_across`` for every e-fold of the speed along and across the line of sight; ``distance``
# of one much nearer or farther than most.
_TERMS = (
    'usual',
    'innovation',
    'new',
    'unranged',
    'crowding',
    'speed_along',
    'speed_across',
    'distance',
)

# Squared innovations are averaged over about this time, s.
_AVERAGED = 0.5
# Larger ones only mean that something is wrong.
_LARGEST_INNOVATION = 30.0
_POSITION_DOF = 3
# The definitions of the terms, as they were when the factors were fitted. Errors are not as small
# as the smallest innovations.
_LEAST_INNOVATION = 0.3
# Time (s) in which a new track settles, and in which a range by the radar becomes stale.
_SETTLING = _STALE = 0.5
_SHORTEST_SIGHT = 1e-3
# The median distance (m) of people in those flights; nearly all were within e^1.2 times.
_MIDDLE_DISTANCE = 15.0
_LARGEST_DISTANCE_TERM = 1.5
# Speeds (m/s): a person who seems to stand may walk as fast as the first; none ran faster than
# the second.
_LEAST_SPEED, _MOST_SPEED = 0.2, 3.0


class InnovationHistory(NamedTuple):
    """How well a track has predicted its boxes.

    ``mean_squared`` is the mean squared innovation per dimension, 1 where the filter is right,
    over measurements of total ``weight`` up to ``stamp_ns``; ``origin`` (3,) m is where they were
    seen from, None where only a radar ranged them; ``range_from`` is what ranged the last box.
    """

    mean_squared: float = 0.0
    weight: float = 0.0
    stamp_ns: int = 0
    origin: FloatArray | None = None
    range_from: str = ''


NO_INNOVATIONS = InnovationHistory()


def updated_history(
    history: InnovationHistory, measurement: Measurement, distance: float
) -> InnovationHistory:
    """Enter an innovation; those of clusters without a box are left out.

    :param distance: squared Mahalanobis distance of the measured position from the predicted one
    """
    if measurement.box is None:
        return history
    range_from = (measurement.otherwise or measurement).range_from
    since = max(measurement.stamp_ns - history.stamp_ns, 0) / NS_PER_S
    kept = history.weight * math.exp(-since / _AVERAGED)
    squared = min(distance, _LARGEST_INNOVATION) / _POSITION_DOF
    return InnovationHistory(
        (kept * history.mean_squared + squared) / (kept + 1.0),
        kept + 1.0,
        measurement.stamp_ns,
        measurement.origin if range_from in _RANGES else None,
        range_from,
    )


class Situation(NamedTuple):
    """When a track is reported: ``age`` in s, ``unranged`` the time in s since the radar saw it.

    ``unranged`` is infinite for a track the radar never saw; ``crowding`` (0..1) is of
    `crowding_along_sight`.
    """

    age: float
    unranged: float
    crowding: float


class CovarianceCalibration:
    """The factors of a model bundle.

    :param factors: by what sets the range of boxes, four rows (`_VARIANCES`) of eight terms
        (`_TERMS`); tracks ranged otherwise keep the filter's covariance
    """

    def __init__(self, factors: Mapping[str, Sequence[Sequence[float]]]) -> None:
        self._factors = dict(factors)

    def reported(
        self,
        mean: FloatArray,
        covariance: FloatArray,
        history: InnovationHistory,
        situation: Situation,
    ) -> FloatArray:
        """Return the covariance (6, 6) to report of a state (6,)."""
        factors = self._factors.get(history.range_from)
        if history.origin is None or factors is None:
            return covariance
        sight = mean[:3] - history.origin
        distance = math.sqrt(float(sight @ sight))
        if not distance > _SHORTEST_SIGHT:  # NaN is not
            return covariance
        ray = sight / distance
        along = float(ray @ mean[3:])
        aside = mean[3:] - along * ray
        terms = (
            1.0,
            math.log(_LEAST_INNOVATION + history.mean_squared),
            math.exp(-max(situation.age, 0.0) / _SETTLING),
            -math.expm1(-max(situation.unranged, 0.0) / _STALE),
            situation.crowding,
            math.log(_LEAST_SPEED + min(abs(along), _MOST_SPEED)),
            math.log(_LEAST_SPEED + min(math.sqrt(float(aside @ aside)), _MOST_SPEED)),
            min(math.log(distance / _MIDDLE_DISTANCE) ** 2, _LARGEST_DISTANCE_TERM),
        )
        position_along, position_across, velocity_along, velocity_across = (
            math.exp(0.5 * sum(f * t for f, t in zip(row, terms, strict=True))) for row in factors
        )
        line = np.outer(ray, ray)
        scale = np.zeros((6, 6))
        scale[:3, :3] = position_across * np.eye(3) + (position_along - position_across) * line
        scale[3:, 3:] = velocity_across * np.eye(3) + (velocity_along - velocity_across) * line
        scaled: FloatArray = scale @ covariance @ scale
        return scaled


def read_calibration(bundle: Path) -> CovarianceCalibration | None:
    """Read the calibration of a model bundle; None where it has none.

    :raises EncodingError: if the file is wrong
    """
    path = bundle / CALIBRATION_FILE
    if not path.exists():
        return None
    try:
        content = load_plain_yaml(path, _LARGEST_FILE)
    except PlainYamlError as err:
        raise EncodingError(str(err)) from err
    for name in content:
        if name not in _RANGES:
            raise EncodingError(f'{path} has {shown(name)}; it may have {" and ".join(_RANGES)}')
    return CovarianceCalibration(
        {
            name: [
                [_factor(path, table, name, row, term) for term in _TERMS] for row in _VARIANCES
            ]
            for name, table in content.items()
        }
    )


def _factor(path: Path, table: Any, *place: str) -> float:
    value = table
    for name in place[1:]:
        value = value.get(name) if isinstance(value, Mapping) else None
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not abs(value) <= _LARGEST_FACTOR:
        raise EncodingError(
            f'{path} has {".".join(place)} {shown(value)}; it must be a number from '
            f'{-_LARGEST_FACTOR:g} to {_LARGEST_FACTOR:g}'
        )
    return float(value)


def crowding_along_sight(
    positions: FloatArray, origins: Sequence[FloatArray | None]
) -> list[float]:
    """Return how near (0..1) the line of sight of each object is to the nearest other one's.

    It is exp(-distance between the lines in m), 1 for the same line.

    :param positions: (N, 3) m
    :param origins: where each is seen from; None gives 0
    """
    crowding = []
    for i, origin in enumerate(origins):
        if origin is None or len(positions) < 2:
            crowding.append(0.0)
            continue
        sights = positions - origin
        lengths = np.maximum(np.sqrt(np.einsum('ij,ij->i', sights, sights)), _SHORTEST_SIGHT)
        cosines = sights @ sights[i] / (lengths * lengths[i])
        apart = lengths[i] * np.sqrt(np.clip(1.0 - cosines**2, 0.0, 1.0))
        apart[cosines <= 0.0] = np.inf
        apart[i] = np.inf
        crowding.append(float(np.exp(-apart.min())))
    return crowding
