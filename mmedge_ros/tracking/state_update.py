"""Corrects the states of many tracks at once, one measurement each."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mmedge_ros.data_types import FloatArray, Measurement
from mmedge_ros.tracking.association_cost import POSITION_GATE
from mmedge_ros.tracking.kalman_filter import (
    mahalanobis_squared,
    radial_velocity,
    stacked,
    update_position,
    update_radial_velocity,
)
from mmedge_ros.tracking.track import TrackState

# Four standard deviations: a Doppler reading further off belongs to a limb or to clutter.
_DOPPLER_GATE = 16.0


def corrected_states(
    tracks: Sequence[TrackState], measurements: Sequence[Measurement]
) -> tuple[FloatArray, FloatArray]:
    """Correct the means (N, 6) and covariances (N, 6, 6) of tracks, one measurement each."""
    means = stacked([t.mean for t in tracks])
    covariances = stacked([t.covariance for t in tracks])
    positions = stacked([m.position for m in measurements])
    noises = stacked([m.covariance for m in measurements])
    distance = mahalanobis_squared(positions - means[:, :3], covariances[:, :3, :3] + noises)
    # A box that continues the track but disagrees in range is believed less, not fully.
    doubt = np.maximum(1.0, distance / POSITION_GATE)
    means, covariances = update_position(
        means, covariances, positions, noises * doubt[:, None, None]
    )
    velocities = np.array([m.radial_velocity for m in measurements])
    variances = np.array([m.radial_variance for m in measurements])
    origins = stacked([m.origin for m in measurements])
    predicted, rows = radial_velocity(means, origins)
    spread = np.sum(rows * (covariances @ rows[..., None])[..., 0], axis=1) + variances
    # False for an unknown velocity, which is NaN.
    use = (velocities - predicted) ** 2 <= _DOPPLER_GATE * spread
    if use.any():
        means[use], covariances[use] = update_radial_velocity(
            means[use], covariances[use], origins[use], velocities[use], variances[use]
        )
    return means, covariances
