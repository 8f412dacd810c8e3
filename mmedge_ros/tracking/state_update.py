"""Corrects the states of many tracks at once, one measurement each."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from mmedge_ros.core.data_types import CAMERA, NS_PER_S, FloatArray, Measurement
from mmedge_ros.tracking.association_cost import POSITION_GATE
from mmedge_ros.tracking.kalman_filter import (
    inverse_3,
    mixture,
    radial_velocity,
    stacked,
    update_position,
    update_scalar,
    weighted_square,
)
from mmedge_ros.tracking.track import TrackState

# Four standard deviations: a Doppler reading further off belongs to a limb or to clutter.
_DOPPLER_GATE = 16.0
# Doppler velocities of other objects' returns are taken as uniform over this width, m/s.
_DOPPLER_SPAN = 4.0
# With white acceleration q the variance of a filter is sqrt(2) q^(1/4) (R dt)^(3/4) in the long
# run. It equals R, that of the error, where the error lasts dt = 2^(-5/3) (R / q)^(1/3).
_WALKED = 2.0 ** (-5.0 / 3.0)
_SHORTEST_STEP = 1e-3
# 90 % of the chi-squared distribution with three degrees of freedom.
_SURPRISING = 6.25
# Density of boxes that say nothing of the range, relative to that of the others.
_STRAY = 0.02
_LOG_STRAY = math.log(_STRAY)
# Cosine of the angle up to which two directions differ by errors only.
_SAME_SIGHT = 0.5
_IDENTITY = np.eye(3)
# Standard deviation of an unknown range, relative to the measured one.
_UNKNOWN_RANGE = 0.4


# Explanations of a measurement, one a column: the returns in the box are the object's own, or
# another's; and the box is still the object's, or another one's by now.
_OWN = np.array([1.0, 0.0, 1.0, 0.0])
_EXCHANGED = np.array([0.0, 0.0, 1.0, 1.0])


class Correction(NamedTuple):
    """States after their measurements: ``means`` (N, 6), ``covariances`` (N, 6, 6).

    ``shares`` (N,) are the probabilities that the measurement itself was right and not what it
    says to be ``otherwise``; 1 where there is no such doubt. ``exchanged`` (N,) are those that
    the box is another object's by now than the one the track followed. ``distances`` (N,) are
    squared Mahalanobis distances of the measured positions from the predicted ones.
    """

    means: FloatArray
    covariances: FloatArray
    shares: FloatArray
    exchanged: FloatArray
    distances: FloatArray


class _Prediction(NamedTuple):
    """Measured positions (N, 3), their noises (N, 3, 3), and how far they lie from the states.

    ``distance`` (N,) are squared Mahalanobis distances, ``determinants`` (N,) those of the
    covariances they are under.
    """

    positions: FloatArray
    noises: FloatArray
    distance: FloatArray
    determinants: FloatArray


class _Explained(NamedTuple):
    """States (N) under one explanation each, and its log likelihoods (N,)."""

    means: FloatArray
    covariances: FloatArray
    fit: FloatArray

    def select(self, which: slice) -> _Explained:
        return _Explained(self.means[which], self.covariances[which], self.fit[which])


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
    they were predicted (probabilistic data association). One that fits badly either way may
    also show that the box has gone over to another object at another range, of which the track
    knows the bearing only; that is weighed with them.

    :param acceleration: how briskly the tracked move, m/s^2
    :param start_speed: how fast an object may move of which nothing is known, m/s
    :param exchange_rate: how often boxes go over from one object to another, 1/s
    """
    means = stacked([t.mean for t in tracks])
    covariances = stacked([t.covariance for t in tracks])
    turns = _sight_turns(means, measurements)
    predicted = _predicted(means, covariances, measurements, turns)
    count = len(tracks)
    others = _alternatives(tracks, measurements, predicted.distance, exchange_rate)
    if not others:
        added = _turned(_repeated(tracks, measurements, acceleration), turns)
        own = _corrected(means, covariances, measurements, predicted, added)
        sure, distances = np.ones(count), predicted.distance
        return Correction(own.means, own.covariances, sure, np.zeros(count), distances)
    # All explanations of all tracks are tried at once: calls cost more than what they compute.
    places = [*range(count), *(o.place for o in others)]
    seen = [*measurements, *(o.measurement for o in others)]
    added = _repeated([tracks[i] for i in places], seen, acceleration)
    means, covariances = means[places], covariances[places]
    rest_turns = _sight_turns(means[count:], seen[count:])
    added = _turned(added, np.concatenate([turns, rest_turns]))
    for row, other in enumerate(others, count):
        if _EXCHANGED[other.column]:
            covariances[row] += _only_bearing(measurements[other.place], start_speed)
            # What another object's readings repeat is not known from this one's.
            added[row] = 0.0
    rest = _predicted(means[count:], covariances[count:], seen[count:], rest_turns)
    predicted = _Prediction(*(np.concatenate(pair) for pair in zip(predicted, rest, strict=True)))
    tried = _corrected(means, covariances, seen, predicted, added)
    odds = np.array([_odds(m) for m in measurements])
    own, otherwise = tried.select(slice(count)), tried.select(slice(count, None))
    weights, means, covariances = _weighed(own, odds, others, otherwise)
    shares, distances = (weights @ _OWN, weights @ _EXCHANGED), predicted.distance[:count]
    return Correction(means, covariances, *shares, distances)


def _predicted(
    means: FloatArray,
    covariances: FloatArray,
    measurements: Sequence[Measurement],
    turns: FloatArray,
) -> _Prediction:
    """Compare measured positions with those of states (N, 6).

    :param turns: see `_sight_turns`
    """
    positions = stacked([m.position for m in measurements])
    noises = _turned(stacked([m.covariance for m in measurements]), turns)
    weights, determinants = inverse_3(covariances[:, :3, :3] + noises)
    distance = weighted_square(positions - means[:, :3], weights)
    return _Prediction(positions, noises, distance, determinants)


def _sight_turns(means: FloatArray, measurements: Sequence[Measurement]) -> FloatArray:
    """Rotations (N, 3, 3) from the lines of sight of boxes to those to where their tracks are.

    A box gives a good bearing and a poor range. With its noise taken along the ray of each
    picture, rays that differ by the errors of bearings would all but meet where they come from:
    every picture would pull the track towards the camera, by a fifth of its range in the end.
    """
    origins = stacked([m.origin for m in measurements])
    seen = stacked([m.position for m in measurements]) - origins
    predicted = means[:, :3] - origins
    lengths = np.sqrt(
        np.einsum('ij,ij->i', seen, seen) * np.einsum('ij,ij->i', predicted, predicted)
    )
    lengths = np.maximum(lengths, 1e-12)
    cosines = np.einsum('ij,ij->i', seen, predicted) / lengths
    # Not for what lies in quite another direction, nor for clusters: their range is measured.
    turned = (cosines > _SAME_SIGHT) & np.array([m.box is not None for m in measurements])
    x, y, z = seen.T / lengths
    u, v, w = predicted.T
    skew = np.zeros((len(seen), 3, 3))
    skew[:, 2, 1], skew[:, 0, 2], skew[:, 1, 0] = y * w - z * v, z * u - x * w, x * v - y * u
    skew -= np.swapaxes(skew, -1, -2)
    bent = np.maximum(1.0 + cosines, 1.0)[:, None, None]
    turns: FloatArray = _IDENTITY + skew + skew @ skew / bent
    turns[~turned] = _IDENTITY
    return turns


def _turned(noises: FloatArray, turns: FloatArray) -> FloatArray:
    """Turn covariances (N, 3, 3)."""
    return turns @ noises @ np.swapaxes(turns, -1, -2)


def _alternatives(
    tracks: Sequence[TrackState],
    measurements: Sequence[Measurement],
    distance: FloatArray,
    exchange_rate: float,
) -> list[_Alternative]:
    """List what else measurements at such a squared distance (N,) may be explained by."""
    alternatives = []
    is_surprising = (distance > _SURPRISING).tolist()
    for i, (track, measurement) in enumerate(zip(tracks, measurements, strict=True)):
        other = measurement.otherwise
        if other is not None:
            alternatives.append(_Alternative(i, 1, other, 0.0))
        if measurement.box is None or not is_surprising[i]:
            continue
        since = min(max(track.camera_age(measurement.stamp_ns), _SHORTEST_STEP), 1.0)
        chance = -math.expm1(-exchange_rate * since)
        if chance <= 0.0:
            continue
        alternatives.append(_Alternative(i, 2, measurement, math.log(chance) + _odds(measurement)))
        if other is not None:
            alternatives.append(_Alternative(i, 3, other, math.log(chance)))
    return alternatives


def _odds(measurement: Measurement) -> float:
    """Logarithm of the odds that the measurement is right and not what holds otherwise."""
    return 0.0 if measurement.otherwise is None else measurement.odds


def _weighed(
    own: _Explained, odds: FloatArray, others: Sequence[_Alternative], other: _Explained
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Merge what the explanations come to, each by its weight, and return the weights first."""
    count, columns = len(odds), len(_OWN)
    means, covariances = np.zeros((count, columns, 6)), np.zeros((count, columns, 6, 6))
    fits = np.full((count, columns), -np.inf)
    means[:, 0], covariances[:, 0], fits[:, 0] = own.means, own.covariances, own.fit + odds
    at = ([o.place for o in others], [o.column for o in others])
    means[at], covariances[at] = other.means, other.covariances
    fits[at] = other.fit + [o.odds for o in others]
    weights = np.exp(fits - fits.max(axis=1, keepdims=True))
    weights /= weights.sum(axis=1, keepdims=True)
    return (weights, *mixture(weights, means, covariances))


def _only_bearing(measurement: Measurement, start_speed: float) -> FloatArray:
    """What to add to the covariance (6, 6) of an object of which only the bearing is known."""
    offset = _UNKNOWN_RANGE * (measurement.position - measurement.origin)
    added = np.zeros((6, 6))
    added[:3, :3] = offset[:, None] * offset
    added[3, 3] = added[4, 4] = start_speed**2
    return added


def _corrected(
    means: FloatArray,
    covariances: FloatArray,
    measurements: Sequence[Measurement],
    predicted: _Prediction,
    added: FloatArray,
) -> _Explained:
    """Correct states by measurements whose noise is larger by ``added`` (N, 3, 3)."""
    positions, noises, distance, determinants = predicted
    # A box that continues the track but disagrees in range is believed less, not fully.
    doubt = np.maximum(1.0, distance / POSITION_GATE)
    # Heights of boxes may say nothing of the range; doubts about returns are weighed elsewhere.
    stray = [
        -np.inf if m.otherwise is not None or m.box is None else _LOG_STRAY for m in measurements
    ]
    fit = np.logaddexp(-0.5 * distance, stray) - 0.5 * np.log(determinants)
    noises = (noises + added) * doubt[:, None, None]
    means, covariances = update_position(means, covariances, positions, noises)
    explained = _Explained(means, covariances, fit)
    _take_velocities(explained, measurements)
    return explained


def _take_velocities(explained: _Explained, measurements: Sequence[Measurement]) -> None:
    """Correct states in place by the radial velocities that are known and within the gate."""
    known = [i for i, m in enumerate(measurements) if math.isfinite(m.radial_velocity)]
    if not known:
        return
    seen = [measurements[i] for i in known]
    means, covariances = explained.means[known], explained.covariances[known]
    variances = np.array([m.radial_variance for m in seen])
    predicted, rows = radial_velocity(means, stacked([m.origin for m in seen]))
    innovations = np.array([m.radial_velocity for m in seen]) - predicted
    spread = weighted_square(rows, covariances) + variances
    squared = innovations**2 / spread
    explained.fit[known] += (
        math.log(_DOPPLER_SPAN)
        - 0.5 * np.minimum(squared, _DOPPLER_GATE)
        - 0.5 * np.log(2.0 * math.pi * spread)
    )
    use = squared <= _DOPPLER_GATE
    if use.any():
        at = np.array(known)[use]
        explained.means[at], explained.covariances[at] = update_scalar(
            means[use], covariances[use], rows[use], innovations[use], variances[use]
        )


def _repeated(
    tracks: Sequence[TrackState], measurements: Sequence[Measurement], acceleration: float
) -> FloatArray:
    """What to add to the noises (N, 3, 3), because part of the errors is not new.

    Readings with correlated errors, taken as independent ones with (1 + r) / (1 - r) times the
    variance, average out as they do in truth, r being the correlation of one to the next. How
    long an error lasts does not matter beyond the time in which people walk as far as it is
    large: with that time the filter's deviation is as large as the error. All of the error of a
    box that was moved on from an earlier picture is that of the one detection it comes from.
    """
    added = np.zeros((len(tracks), 3, 3))
    at, elapsed, errors = [], [], []
    for i, (track, measurement) in enumerate(zip(tracks, measurements, strict=True)):
        lasts_in = measurement.lasting
        if measurement.repeated:
            lasts_in = {**lasts_in, CAMERA: measurement.covariance}
        for modality, lasting in lasts_in.items():
            last_ns = track.updated_ns.get(modality)
            if last_ns is not None:
                at.append(i)
                elapsed.append((measurement.stamp_ns - last_ns) / NS_PER_S)
                errors.append(lasting)
    if at:
        lasting = stacked(errors)
        variances = np.einsum('...ii->...', lasting)
        lasts = np.maximum(_WALKED * np.cbrt(variances / acceleration**2), 1e-6)
        since = np.maximum(elapsed, _SHORTEST_STEP)
        factors = 2.0 / np.expm1(np.minimum(since / lasts, 50.0))
        np.add.at(added, at, factors[:, None, None] * lasting)
    return added
