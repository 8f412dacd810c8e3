"""Height bias: how much taller or shorter than most a tracked body is, learned from the radar.

A range from the height of a box, or by a network, is wrong by the same factor each time. Where
radar and box range a body together that factor is learned, and the box alone becomes nearly as
good a measure of the range as the radar.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from mmedge_ros.core.data_types import FloatArray, Measurement

# Heights of boxes repeat their errors for about so long (s): the time in which gait and the
# edges of a body in the picture change.
_ERRORS_LAST = 0.25
# What cannot be learned: a detector draws large boxes otherwise than small ones.
_LEAST_VARIANCE = 0.03**2
_SHORTEST_STEP = 1e-3


class HeightBias(NamedTuple):
    """Logarithm of true range over the one from the box's height, and its variance.

    The variance is that of the factor's own spread among people until something is learned;
    NaN: as large as the measurement says.
    """

    value: float = 0.0
    variance: float = math.nan


UNKNOWN = HeightBias()


def updated_bias(
    bias: HeightBias, measurement: Measurement, own: float, exchanged: float, since: float
) -> HeightBias:
    """Learn the height bias from a measurement.

    :param own: probability that the returns are the body's own
    :param exchanged: probability that the track has gone over to another body
    :param since: seconds since radar and box last ranged it together
    """
    height = measurement.otherwise or measurement
    if exchanged > 0.0:
        bias = _widened(bias, exchanged, height.height_deviation)
    if measurement.otherwise is None or own < 0.5:
        return bias
    return _compared(bias, measurement, height, own, since)


def _widened(bias: HeightBias, exchanged: float, prior: float) -> HeightBias:
    """Mix in the prior, as probable as it is another body by now.

    :param prior: standard deviation among people, NaN if the box says nothing of it
    """
    if math.isnan(bias.variance):
        return bias
    if math.isnan(prior):  # nothing to mix in by degrees
        return bias if exchanged < 0.5 else UNKNOWN
    kept = 1.0 - exchanged
    spread = kept * bias.variance + exchanged * prior**2
    return HeightBias(kept * bias.value, spread + kept * exchanged * bias.value**2)


def _compared(
    bias: HeightBias, by_radar: Measurement, by_height: Measurement, own: float, since: float
) -> HeightBias:
    """Compare the radar's range of a box with the one from its height."""
    if not (by_height.height_deviation > 0.0 and by_radar.depth > 0.0 and by_height.depth > 0.0):
        return bias  # NaN is not
    prior = by_height.height_deviation**2
    value, variance = bias
    if math.isnan(variance):
        variance = prior
    noise = _relative_noise(by_height) + _relative_noise(by_radar)
    again = math.exp(-max(since, _SHORTEST_STEP) / _ERRORS_LAST)
    noise *= (1.0 + again) / (1.0 - again) / own
    gain = variance / (variance + noise)
    read = math.log(by_radar.depth / by_height.depth)
    return HeightBias(
        value + gain * (read - value), max((1.0 - gain) * variance, min(_LEAST_VARIANCE, prior))
    )


def unbiased(measurement: Measurement, bias: HeightBias) -> Measurement:
    """Correct ranges from the height of a box for a height bias, also that of ``otherwise``."""
    if math.isnan(bias.variance):
        return measurement
    m, prior = measurement, measurement.height_deviation**2
    other = None if m.otherwise is None else unbiased(m.otherwise, bias)
    if bias.variance < prior:  # NaN is not
        factor = math.exp(bias.value)
        known = bias.variance / prior
        squared = factor * factor
        return replace(
            m,
            position=m.origin + factor * (m.position - m.origin),
            covariance=squared * (m.covariance - (1.0 - known) * _whole(m.lasting)),
            depth=m.depth * factor,
            lasting={name: squared * known * spread for name, spread in m.lasting.items()},
            otherwise=other,
        )
    return m if other is m.otherwise else replace(m, otherwise=other)


def misassociation_spread(measurement: Measurement) -> FloatArray | None:
    """Covariance (3, 3) of a range by another object's returns; None where it is unknown.

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
