"""Noise scale: how much larger the errors of a track are than the filter's noise models say.

Those models know how the errors of bearings, ranges, returns and walks compare, but not how large
they all are for the person and the network at hand: rate, level, score, distance, crowding and how
long errors repeat all change it. So variances are taken as known up to one factor for each track,
which is estimated from its innovations (variance learning: West and Harrison, "Bayesian
Forecasting and Dynamic Models", sections 4.5 and 10.8). The factor is common to the prediction and
the measurement, so that gains and means are those of the filter without it. What it is before
anything is learned was fitted to flights and comes with the model bundle
(`mmedge lab train fit noise`).
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, NamedTuple

from mmedge_ros.core.data_types import NS_PER_S, Measurement
from mmedge_ros.core.untrusted_files import PlainYamlError, is_number, load_plain_yaml, shown
from mmedge_ros.encoding import EncodingError

NOISE_FILE = 'tracking_noise.yaml'
# Of detectors without a fit: the scale of the shipped one, rounded down.
USUAL_SCALE = 2.0
_LARGEST_FILE = 1 << 12
_LEAST_SCALE, _MOST_SCALE = 0.01, 100.0
# The scale of a bundle counts as so many innovations of a track.
_PRIOR_WEIGHT = 2.5
# Innovations are forgotten over about this time, s.
_REMEMBERED = 0.5
# Larger squared innovations only mean that something is wrong.
_LARGEST_INNOVATION = 30.0
_POSITION_DOF = 3


class NoiseScale(NamedTuple):
    """What the innovations of a track say of its scale.

    ``mean_squared`` is the mean squared innovation per dimension, 1 where the noise models are
    right, over innovations of total ``weight`` up to ``stamp_ns``.
    """

    mean_squared: float = 0.0
    weight: float = 0.0
    stamp_ns: int = 0

    def factor(self, usual: float) -> float:
        """Return the factor of variances, given the one of most tracks."""
        total = _PRIOR_WEIGHT + self.weight
        return usual * (_PRIOR_WEIGHT + self.weight * self.mean_squared) / total


UNLEARNED = NoiseScale()


def updated_scale(scale: NoiseScale, measurement: Measurement, distance: float) -> NoiseScale:
    """Learn from an innovation; those of clusters without a box are left out.

    :param distance: squared Mahalanobis distance of the measured position from the predicted one
    """
    if measurement.box is None:
        return scale
    since = max(measurement.stamp_ns - scale.stamp_ns, 0) / NS_PER_S
    kept = scale.weight * math.exp(-since / _REMEMBERED)
    squared = min(distance, _LARGEST_INNOVATION) / _POSITION_DOF
    mean = (kept * scale.mean_squared + squared) / (kept + 1.0)
    return NoiseScale(mean, kept + 1.0, measurement.stamp_ns)


def is_fitted(model: Path) -> bool:
    """Tell a bundle whose errors were fitted from others and from weight files."""
    return (model / NOISE_FILE).is_file()


def read_noise_scale(bundle: Path) -> float:
    """Read the usual scale of a model bundle; `USUAL_SCALE` where it has none.

    :raises EncodingError: if the file is wrong
    """
    path = bundle / NOISE_FILE
    if not path.exists():
        return USUAL_SCALE
    try:
        value: Any = load_plain_yaml(path, _LARGEST_FILE).get('scale')
    except PlainYamlError as err:
        raise EncodingError(str(err)) from err
    if not is_number(value, _LEAST_SCALE, _MOST_SCALE):
        raise EncodingError(
            f'{path} has scale {shown(value)}; it must be a number from {_LEAST_SCALE:g} to '
            f'{_MOST_SCALE:g}'
        )
    return float(value)
