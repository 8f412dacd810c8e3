"""Corrects the states of many tracks at once, one measurement each."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from mmedge_ros.data_types import NS_PER_S, FloatArray, Measurement
from mmedge_ros.tracking.association_cost import POSITION_GATE
from mmedge_ros.tracking.kalman_filter import (
    mahalanobis_squared,
    mixture,
    radial_velocity,
    stacked,
    update_position,
    update_radial_velocity,
)
from mmedge_ros.tracking.track import TrackState

# Four standard deviations: a Doppler reading further off belongs to a limb or to clutter.
_DOPPLER_GATE = 16.0
# Doppler velocities (m/s) that returns of others can have lie within this.
_DOPPLER_SPAN = 4.0
# Of a filter with white acceleration q the variance is sqrt(2) q^(1/4) (R dt)^(3/4) in the long
# run; equal to that of the error itself it is where the error lasts 2^(-5/3) (R / q)^(1/3).
_WALKED = 2.0 ** (-5.0 / 3.0)
_SHORTEST_STEP = 1e-3
# Nine of ten measurements of a position lie nearer, in squared deviations.
_SURPRISING = 6.25
# Boxes that say nothing of the range, over the density of those that do.
_STRAY = 0.02
_LOG_STRAY = math.log(_STRAY)
# Deviation of a range of which nothing is known, relative to the one seen.
_UNKNOWN_RANGE = 0.4


# Explanations of a measurement, one a column: the returns in the box are the object's own, or
# somebody else's; and the box is still the object's, or another one's by now.
_OWN = np.array([1.0, 0.0, 1.0, 0.0])
_EXCHANGED = np.array([0.0, 0.0, 1.0, 1.0])


class Correction(NamedTuple):
    """States after their measurements: ``means`` (N, 6), ``covariances`` (N, 6, 6).

    ``shares`` (N,) are the probabilities that the measurement itself was right and not what it
    says to be ``otherwise``; 1 where there is no such doubt. ``exchanged`` (N,) are those that
    the box is another object's by now than the one the track followed.
    """

    means: FloatArray
    covariances: FloatArray
    shares: FloatArray
    exchanged: FloatArray


class _Explained(NamedTuple):
    """States (N) under one explanation, its log likelihoods (N,) and squared distances (N,)."""

    means: FloatArray
    covariances: FloatArray
    fit: FloatArray
    distance: FloatArray


class _Alternative(NamedTuple):
    """What the measurement of the track at ``place`` is by another explanation; its log odds."""

    place: int
    column: int
    measurement: Measurement
    odds: float


def corrected_states(
    tracks: Sequence[TrackState],
    measurements: Sequence[Measurement],
    acceleration: float,
    start_speed: float,
    exchange_rate: float,
) -> Correction:
    """Correct the states of tracks, one measurement each.

    Where a measurement says what holds otherwise, both are taken in and weighed by how well
    they were foreseen (probabilistic data association). One that fits badly either way may
    also show that the box has gone over to another object at another range, of which the track
    knows the bearing only; that is weighed with them.

    :param acceleration: how briskly the tracked move, m/s^2
    :param start_speed: how fast an object may move of which nothing is known, m/s
    :param exchange_rate: how often boxes go over from one object to another, 1/s
    """
    means = stacked([t.mean for t in tracks])
    covariances = stacked([t.covariance for t in tracks])
    added = _repeated(tracks, measurements, acceleration)
    own = _corrected(means, covariances, measurements, added)
    others = _alternatives(tracks, measurements, own.distance, exchange_rate)
    if not others:
        return Correction(own.means, own.covariances, np.ones(len(tracks)), np.zeros(len(tracks)))
    places = [o.place for o in others]
    seen = [o.measurement for o in others]
    exchanged = _EXCHANGED[[o.column for o in others]][:, None, None]
    bearings = _only_bearings([measurements[i] for i in places], start_speed)
    prior = covariances[places] + exchanged * bearings
    # What another object's readings repeat is not known from this one's.
    added = (1.0 - exchanged) * _repeated([tracks[i] for i in places], seen, acceleration)
    other = _corrected(means[places], prior, seen, added)
    return _weighed(own, np.array([_odds(m) for m in measurements]), others, other)


def _alternatives(
    tracks: Sequence[TrackState],
    measurements: Sequence[Measurement],
    distance: FloatArray,
    exchange_rate: float,
) -> list[_Alternative]:
    """List what else measurements at such a squared distance (N,) may be explained by."""
    found = []
    is_surprising = (distance > _SURPRISING).tolist()
    for i, (track, measurement) in enumerate(zip(tracks, measurements, strict=True)):
        other = measurement.otherwise
        if other is not None:
            found.append(_Alternative(i, 1, other, 0.0))
        if measurement.box is None or not is_surprising[i]:
            continue
        since = min(max(track.camera_age(measurement.stamp_ns), _SHORTEST_STEP), 1.0)
        chance = -math.expm1(-exchange_rate * since)
        if chance <= 0.0:
            continue
        found.append(_Alternative(i, 2, measurement, math.log(chance) + _odds(measurement)))
        if other is not None:
            found.append(_Alternative(i, 3, other, math.log(chance)))
    return found


def _odds(measurement: Measurement) -> float:
    """Logarithm of the odds that the measurement is right and not what holds otherwise."""
    return 0.0 if measurement.otherwise is None else measurement.odds


def _weighed(
    own: _Explained, odds: FloatArray, others: Sequence[_Alternative], other: _Explained
) -> Correction:
    """Merge what the explanations come to, each by its weight."""
    count, columns = len(odds), len(_OWN)
    means, covariances = np.zeros((count, columns, 6)), np.zeros((count, columns, 6, 6))
    fits = np.full((count, columns), -np.inf)
    means[:, 0], covariances[:, 0], fits[:, 0] = own.means, own.covariances, own.fit + odds
    at = ([o.place for o in others], [o.column for o in others])
    means[at], covariances[at] = other.means, other.covariances
    fits[at] = other.fit + [o.odds for o in others]
    weights = np.exp(fits - fits.max(axis=1, keepdims=True))
    weights /= weights.sum(axis=1, keepdims=True)
    return Correction(*mixture(weights, means, covariances), weights @ _OWN, weights @ _EXCHANGED)


def _only_bearings(measurements: Sequence[Measurement], start_speed: float) -> FloatArray:
    """What to add to the covariances (N, 6, 6) of objects of which only the bearing is known."""
    offsets = _UNKNOWN_RANGE * stacked([m.position - m.origin for m in measurements])
    added = np.zeros((len(measurements), 6, 6))
    added[:, :3, :3] = offsets[:, :, None] * offsets[:, None, :]
    added[:, [3, 4], [3, 4]] = start_speed**2
    return added


def _corrected(
    means: FloatArray,
    covariances: FloatArray,
    measurements: Sequence[Measurement],
    added: FloatArray,
) -> _Explained:
    """Correct states by measurements whose noise is larger by ``added`` (N, 3, 3)."""
    positions = stacked([m.position for m in measurements])
    noises = stacked([m.covariance for m in measurements])
    spreads = covariances[:, :3, :3] + noises
    distance = mahalanobis_squared(positions - means[:, :3], spreads)
    # A box that continues the track but disagrees in range is believed less, not fully.
    doubt = np.maximum(1.0, distance / POSITION_GATE)
    # Heights of boxes may say nothing of the range; whose returns they are is asked elsewhere.
    stray = [
        -np.inf if m.otherwise is not None or m.box is None else _LOG_STRAY for m in measurements
    ]
    fit = np.logaddexp(-0.5 * distance, stray) - 0.5 * np.log(np.linalg.det(spreads))
    noises = noises + added
    means, covariances = update_position(
        means, covariances, positions, noises * doubt[:, None, None]
    )
    velocities = np.array([m.radial_velocity for m in measurements])
    variances = np.array([m.radial_variance for m in measurements])
    origins = stacked([m.origin for m in measurements])
    predicted, rows = radial_velocity(means, origins)
    spread = np.sum(rows * (covariances @ rows[..., None])[..., 0], axis=1) + variances
    # False for an unknown velocity, which is NaN.
    squared = (velocities - predicted) ** 2 / spread
    use = squared <= _DOPPLER_GATE
    if use.any():
        means[use], covariances[use] = update_radial_velocity(
            means[use], covariances[use], origins[use], velocities[use], variances[use]
        )
    known = np.isfinite(velocities)
    fit[known] += (
        math.log(_DOPPLER_SPAN)
        - 0.5 * np.minimum(squared[known], _DOPPLER_GATE)
        - 0.5 * np.log(2.0 * math.pi * spread[known])
    )
    return _Explained(means, covariances, fit, distance)


def _repeated(
    tracks: Sequence[TrackState], measurements: Sequence[Measurement], acceleration: float
) -> FloatArray:
    """What to add to the noises (N, 3, 3), because part of the errors is not new.

    Readings with correlated errors, taken as independent ones with (1 + r) / (1 - r) times the
    variance, average out as they do in truth, r being the correlation of one to the next. How
    long an error lasts does not matter beyond the time in which people walk as far as it is
    large: with that time a filter that follows them claims as much as the error.
    """
    added = np.zeros((len(tracks), 3, 3))
    for i, (track, measurement) in enumerate(zip(tracks, measurements, strict=True)):
        for modality, lasting in measurement.lasting.items():
            last_ns = track.updated_ns.get(modality)
            if last_ns is None:
                continue
            since = max((measurement.stamp_ns - last_ns) / NS_PER_S, _SHORTEST_STEP)
            variance = float(lasting[0, 0] + lasting[1, 1] + lasting[2, 2])
            lasts = _WALKED * (variance / acceleration**2) ** (1.0 / 3.0)
            added[i] += 2.0 / math.expm1(min(since / max(lasts, 1e-6), 50.0)) * lasting
    return added
