"""Corrects the states of many tracks at once, one measurement each."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import expit

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


class Correction(NamedTuple):
    """States after their measurements: ``means`` (N, 6), ``covariances`` (N, 6, 6).

    ``shares`` (N,) are the probabilities that the measurement itself was right and not what it
    says to be ``otherwise``; 1 where there is no such doubt.
    """

    means: FloatArray
    covariances: FloatArray
    shares: FloatArray


def corrected_states(
    tracks: Sequence[TrackState], measurements: Sequence[Measurement], acceleration: float
) -> Correction:
    """Correct the states of tracks, one measurement each.

    Where a measurement says what holds otherwise, both are taken in and weighed by how well
    they were foreseen (probabilistic data association).

    :param acceleration: how briskly the tracked move, m/s^2
    """
    means, covariances, fit = _corrected(tracks, measurements, acceleration)
    shares = np.ones(len(tracks))
    places = [i for i, m in enumerate(measurements) if m.otherwise is not None]
    if places:
        others = [m for i in places if (m := measurements[i].otherwise) is not None]
        other_means, other_covariances, other_fit = _corrected(
            [tracks[i] for i in places], others, acceleration
        )
        odds = np.array([measurements[i].odds for i in places])
        shares[places] = expit(fit[places] - other_fit + odds)
        means[places], covariances[places] = mixture(
            shares[places], (means[places], covariances[places]), (other_means, other_covariances)
        )
    return Correction(means, covariances, shares)


def _corrected(
    tracks: Sequence[TrackState], measurements: Sequence[Measurement], acceleration: float
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return means, covariances and log likelihoods (N,) of the measurements."""
    means = stacked([t.mean for t in tracks])
    covariances = stacked([t.covariance for t in tracks])
    positions = stacked([m.position for m in measurements])
    noises = stacked([m.covariance for m in measurements])
    spreads = covariances[:, :3, :3] + noises
    distance = mahalanobis_squared(positions - means[:, :3], spreads)
    # A box that continues the track but disagrees in range is believed less, not fully.
    doubt = np.maximum(1.0, distance / POSITION_GATE)
    fit = -0.5 * (distance + np.log(np.linalg.det(spreads)))
    noises = noises + _repeated(tracks, measurements, acceleration)
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
    return means, covariances, fit


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
