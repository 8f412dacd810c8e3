"""Batched Kalman filter: constant velocity in three dimensions, and boxes in the picture.

States are x, y, z, vx, vy, vz (m, m/s) in the tracking frame. Functions take and return
arrays; nothing is kept.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mmedge_ros.data_types import Box, FloatArray

_I3 = np.eye(3)
_I6 = np.eye(6)


def predict(
    mean: FloatArray, covariance: FloatArray, dt: float, acceleration: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Advance N states by ``dt`` seconds (negative goes back without adding noise).

    :param mean: (N, 6)
    :param covariance: (N, 6, 6)
    :param acceleration: (3,) standard deviation of white acceleration noise per axis, m/s^2;
        spectral density such that one second adds that standard deviation to the velocity
    """
    transition = _I6.copy()
    transition[:3, 3:] = dt * _I3
    moved = mean @ transition.T
    spread = transition @ covariance @ transition.T
    if dt > 0.0:
        density = np.diag(np.square(acceleration))
        noise = np.empty((6, 6))
        noise[:3, :3] = density * (dt**3 / 3.0)
        noise[:3, 3:] = noise[3:, :3] = density * (dt**2 / 2.0)
        noise[3:, 3:] = density * dt
        spread = spread + noise
    return moved, spread


def update_position(
    mean: FloatArray, covariance: FloatArray, position: FloatArray, noise: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Correct one state (6,) by a measured position (3,) with covariance (3, 3)."""
    innovation_covariance = covariance[:3, :3] + noise
    gain = np.asarray(np.linalg.solve(innovation_covariance, covariance[:3, :]).T, np.float64)
    corrected = mean + gain @ (position - mean[:3])
    return corrected, _joseph(covariance, gain, _I6[:3], noise)


def update_radial_velocity(
    mean: FloatArray,
    covariance: FloatArray,
    origin: FloatArray,
    velocity: float,
    variance: float,
) -> tuple[FloatArray, FloatArray]:
    """Correct one state (6,) by a Doppler velocity seen from ``origin`` (3,).

    Linearised about the prior: velocity along the line of sight plus its change with the
    direction (extended Kalman filter).
    """
    predicted, jacobian = radial_velocity(mean, origin)
    row = jacobian[None, :]
    innovation_variance = float((row @ covariance @ row.T)[0, 0]) + variance
    gain = covariance @ row.T / innovation_variance
    corrected = mean + gain[:, 0] * (velocity - predicted)
    return corrected, _joseph(covariance, gain, row, np.array([[variance]]))


def radial_velocity(mean: FloatArray, origin: FloatArray) -> tuple[float, FloatArray]:
    """Return the Doppler velocity of a state (m/s, positive = receding) and its Jacobian (6,)."""
    offset = mean[:3] - origin
    distance = max(float(np.linalg.norm(offset)), 1e-6)
    direction = offset / distance
    speed = float(direction @ mean[3:])
    across = (mean[3:] - speed * direction) / distance
    return speed, np.concatenate([across, direction])


def mahalanobis_squared(offsets: FloatArray, covariances: FloatArray) -> FloatArray:
    """Squared Mahalanobis distance of offsets (..., D) under covariances (..., D, D)."""
    solved = np.linalg.solve(covariances, offsets[..., None])[..., 0]
    distances: FloatArray = np.einsum('...i,...i->...', offsets, solved)
    return distances


def _joseph(
    covariance: FloatArray, gain: FloatArray, rows: FloatArray, noise: FloatArray
) -> FloatArray:
    """Joseph form: stays symmetric and positive definite whatever the rounding."""
    kept = _I6 - gain @ rows
    corrected: FloatArray = kept @ covariance @ kept.T + gain @ noise @ gain.T
    return corrected


class BoxNoise(NamedTuple):
    """Noise of the box filter relative to the box height: measurement (1), motion (1/s^1.5)."""

    measurement: float
    motion: float


class BoxState(NamedTuple):
    """A box moving and growing at constant rates.

    ``values`` (4,) are centre x, centre y, width, height in px, ``rates`` (4,) px/s. The four
    share one 2x2 covariance (value and rate) in units of the box height, because their noise
    is proportional to it.
    """

    values: FloatArray
    rates: FloatArray
    p_value: float
    p_cross: float
    p_rate: float

    def box(self) -> Box:
        """Return the corners; sizes never fall below one pixel."""
        x, y, width, height = (float(v) for v in self.values)
        width, height = max(width, 1.0), max(height, 1.0)
        return Box(x - width / 2, y - height / 2, x + width / 2, y + height / 2)


def box_values(box: Box) -> FloatArray:
    """Return centre x, centre y, width, height (px)."""
    return np.array(
        [(box.x0 + box.x1) / 2, (box.y0 + box.y1) / 2, box.x1 - box.x0, box.y1 - box.y0]
    )


def start_box(box: Box, noise: BoxNoise) -> BoxState:
    """Begin a box at rest, with a rate uncertain by half its height per second."""
    return BoxState(box_values(box), np.zeros(4), noise.measurement**2, 0.0, 0.5**2)


def predict_box(state: BoxState, dt: float, noise: BoxNoise) -> BoxState:
    """Advance by ``dt`` seconds; a negative ``dt`` goes back without adding noise."""
    density = noise.motion**2 if dt > 0.0 else 0.0
    return BoxState(
        state.values + dt * state.rates,
        state.rates,
        state.p_value + dt * (2 * state.p_cross + dt * state.p_rate) + density * dt**3 / 3,
        state.p_cross + dt * state.p_rate + density * dt**2 / 2,
        state.p_rate + density * dt,
    )


def update_box(state: BoxState, box: Box, noise: BoxNoise) -> BoxState:
    """Correct by a measured box."""
    innovation = box_values(box) - state.values
    total = state.p_value + noise.measurement**2
    gain, gain_rate = state.p_value / total, state.p_cross / total
    return BoxState(
        state.values + gain * innovation,
        state.rates + gain_rate * innovation,
        (1 - gain) * state.p_value,
        (1 - gain) * state.p_cross,
        state.p_rate - gain_rate * state.p_cross,
    )
