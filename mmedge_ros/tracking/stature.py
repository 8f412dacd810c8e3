"""How tall a followed body is, learned while the radar ranges it.

A range from the height of a box is wrong by as much as the body is taller or shorter than
most, each time by the same factor. Once radar and box have been read together, that factor is
known, and the box alone is nearly as good a measure of the range as the radar.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from mmedge_ros.data_types import FloatArray, Measurement

# Heights of boxes repeat their errors for about so long (s): the time in which gait and the
# edges of a body in the picture change.
_ERRORS_LAST = 0.25
# What cannot be learned: a detector draws large boxes otherwise than small ones.
_LEAST_VARIANCE = 0.03**2
_SHORTEST_STEP = 1e-3


class Stature(NamedTuple):
    """Logarithm of true range over the one from the box's height, and its variance.

    The variance is that of the factor's own spread among people until something is learned;
    NaN: as large as the measurement says.
    """

    value: float = 0.0
    variance: float = math.nan


UNKNOWN = Stature()


def after(
    stature: Stature, measurement: Measurement, own: float, exchanged: float, since: float
) -> Stature:
    """Learn from a measurement how tall a body is.

    :param own: probability that the returns are the body's own
    :param exchanged: probability that it is another body by now
    :param since: seconds since radar and box were last read together
    """
    height = measurement.otherwise or measurement
    if exchanged > 0.0:
        stature = _doubted(stature, exchanged, height.height_deviation)
    if measurement.otherwise is None or own < 0.5:
        return stature
    return _compared(stature, measurement, height, own, since)


def _doubted(stature: Stature, exchanged: float, prior: float) -> Stature:
    """Take into account that with some probability it is somebody else by now.

    :param prior: standard deviation among people, NaN if the box does not tell
    """
    if math.isnan(stature.variance):
        return stature
    if math.isnan(prior):  # nothing to go back to by degrees
        return stature if exchanged < 0.5 else UNKNOWN
    kept = 1.0 - exchanged
    spread = kept * stature.variance + exchanged * prior**2
    return Stature(kept * stature.value, spread + kept * exchanged * stature.value**2)


def _compared(
    stature: Stature, by_radar: Measurement, by_height: Measurement, own: float, since: float
) -> Stature:
    """Compare the radar's range of a box with the one from its height."""
    if not (by_height.height_deviation > 0.0 and by_radar.depth > 0.0 and by_height.depth > 0.0):
        return stature  # NaN is not
    prior = by_height.height_deviation**2
    value, variance = stature
    if math.isnan(variance):
        variance = prior
    noise = _relative_noise(by_height) + _relative_noise(by_radar)
    again = math.exp(-max(since, _SHORTEST_STEP) / _ERRORS_LAST)
    noise *= (1.0 + again) / (1.0 - again) / own
    gain = variance / (variance + noise)
    read = math.log(by_radar.depth / by_height.depth)
    return Stature(
        value + gain * (read - value), max((1.0 - gain) * variance, min(_LEAST_VARIANCE, prior))
    )


def read_for(measurement: Measurement, stature: Stature) -> Measurement:
    """Read ranges from the height of a box for a body of that stature, also those in doubt."""
    if math.isnan(stature.variance):
        return measurement
    m, prior = measurement, measurement.height_deviation**2
    other = None if m.otherwise is None else read_for(m.otherwise, stature)
    position, covariance, depth, lasting = m.position, m.covariance, m.depth, m.lasting
    if stature.variance < prior:  # NaN is not
        factor = math.exp(stature.value)
        known = stature.variance / prior
        squared = factor * factor
        position = m.origin + factor * (position - m.origin)
        covariance = squared * (covariance - (1.0 - known) * _whole(lasting))
        depth *= factor
        lasting = {name: squared * known * spread for name, spread in lasting.items()}
    elif other is m.otherwise:
        return m
    # Once per track and step: `replace` would take several times as long.
    return Measurement(
        m.stamp_ns,
        m.label,
        m.score,
        m.box,
        position,
        covariance,
        m.radial_velocity,
        m.radial_variance,
        m.origin,
        m.seen_by,
        m.range_from,
        depth,
        lasting,
        other,
        m.odds,
        m.height_deviation,
    )


def stranger_spread(measurement: Measurement) -> FloatArray | None:
    """How far off (3, 3) a range by returns may be that are somebody else's; None: no such.

    As far as heights would let it pass: the returns of others agree with those, or they would
    not be taken for the object's own.
    """
    deviation = (measurement.otherwise or measurement).height_deviation
    if not deviation > 0.0:  # NaN is not
        return None
    offset = measurement.position - measurement.origin
    spread: FloatArray = deviation**2 * np.outer(offset, offset)
    return spread


def _whole(lasting: Mapping[str, FloatArray]) -> FloatArray | float:
    """Sum of the parts (3, 3) of a covariance that last."""
    return sum(lasting.values(), 0.0)


def _relative_noise(measurement: Measurement) -> float:
    """Variance of what is new in a range, relative to the range."""
    offset = measurement.position - measurement.origin
    squared = max(float(offset @ offset), 1e-6)
    fresh = measurement.covariance - _whole(measurement.lasting)
    return max(float(offset @ fresh @ offset), 0.0) / squared**2
