"""The ground near the drone: a plane whose height and tilt are learned in flight.

People stand where the foot of their box meets the ground. How far that is depends on the height
above the ground, on its slope and on the camera's attitude, and an error of these moves everybody
at once. So they are one state, common to all: height and tilt of a plane in the tracking frame
(a wrong attitude and a slope are the same to a camera). It begins at the height 0 of odometry,
forgets with time and way, and learns from a rangefinder, from people whom the radar ranges, and
from how tall people are in the picture.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mmedge_ros.core.data_types import NS_PER_S, FloatArray

# Deviations of what is not learned: of the height (m), of barometers and of where they were
# zeroed; and of the tilt, of slopes and of attitudes.
_HEIGHT, _TILT = 0.5, 0.04
# What was learned is forgotten within so long (s).
_FORGOTTEN = 30.0
# A reading beyond five deviations is not of the ground; readings that go on like that widen what
# is believed, up to this variance (m^2) of the height.
_GATE, _WIDER, _WIDEST = 25.0, 1.05, 100.0
# From lower than this (m), and along flatter rays, nothing can be said.
_LOWEST, _FLATTEST = 0.5, 0.02
# Deviations of a rangefinder: m, of what grows there, and share of the distance.
_BEAM, _BEAM_SHARE = 0.15, 0.02
_PRIOR = np.diag([_HEIGHT**2, _TILT**2, _TILT**2])


class GroundView(NamedTuple):
    """The plane at one instant.

    It goes through ``place`` (3,) m and rises by ``tilt`` (2,) along x and y; ``covariance``
    (3, 3) is that of the height there and of the tilt.
    """

    place: FloatArray
    tilt: FloatArray
    covariance: FloatArray

    def heights(self, points: FloatArray) -> FloatArray:
        """Return the heights (N,) of the ground at points (N, 2 or 3)."""
        rises: FloatArray = self.place[2] + (points[:, :2] - self.place[:2]) @ self.tilt
        return rises

    def rows(self, points: FloatArray) -> FloatArray:
        """Return how these heights change (N, 3) with height and tilt of the plane."""
        return np.column_stack([np.ones(len(points)), points[:, :2] - self.place[:2]])

    def variances(self, rows: FloatArray) -> FloatArray:
        """Return the variances (N,) of what changes by ``rows`` (N, 3)."""
        squares: FloatArray = np.einsum('ni,ij,nj->n', rows, self.covariance, rows)
        return squares

    def met_by(
        self, eye: FloatArray, rays: FloatArray, over: float | FloatArray = 0.0
    ) -> tuple[FloatArray, FloatArray]:
        """Return how far along rays (N, 3) from ``eye`` (3,) the ground is, and its changes.

        :param over: how high over the ground it is met, m or (N,)
        :return: (N,) m, NaN where a ray does not meet it, and (N, 3) by height and tilt
        """
        above = float(eye[2] - self.heights(eye[None])[0]) - over
        falls = rays[:, :2] @ self.tilt - rays[:, 2]
        falls = np.where((falls > _FLATTEST) & (above >= _LOWEST), falls, np.nan)
        distances = above / falls
        changes = -self.rows(eye + rays * distances[:, None]) / falls[:, None]
        return distances, changes

    def pinned(
        self, eye: FloatArray, points: FloatArray, height: float
    ) -> tuple[FloatArray, NDArray[np.bool_]]:
        """Move points (N, 3) to a ``height`` (m) above the ground; mark those that can be there.

        Their distances from ``eye`` (3,) and directions seen from above stay: radars measure
        these well, and hardly how high something is.
        """
        offsets = points - eye
        distances = np.linalg.norm(offsets, axis=1)
        level = np.maximum(np.hypot(offsets[:, 0], offsets[:, 1]), 1e-6)
        directions, away = offsets[:, :2] / level[:, None], level
        for _ in range(2):
            falls = self.heights(eye[:2] + directions * away[:, None]) + height - eye[2]
            away = np.sqrt(np.maximum(distances**2 - falls**2, 0.0))
        moved = np.column_stack([eye[:2] + directions * away[:, None], eye[2] + falls])
        # Right below, a small error of the height is a large one on the ground.
        return moved, np.asarray(away > np.abs(falls) / 4.0)


class GroundPlane:
    """What is known of the ground, in the tracking frame, z up; a copy goes on by itself."""

    def __init__(self) -> None:
        self._mean, self._covariance = np.zeros(3), _PRIOR
        self._at_ns: int | None = None
        self._place = np.zeros(2)

    @property
    def learned_ns(self) -> int:
        """Stamp of the newest reading; less than any other before the first."""
        return -(1 << 62) if self._at_ns is None else self._at_ns

    def view(self, stamp_ns: int, drone: FloatArray) -> GroundView:
        """Return the plane at an instant.

        :param drone: where it is, (3,) m
        """
        mean, covariance = self._advanced(stamp_ns, drone)
        return GroundView(np.array([*drone[:2], mean[0]]), mean[1:], covariance)

    def learn(
        self,
        stamp_ns: int,
        drone: FloatArray,
        rows: FloatArray,
        innovations: FloatArray,
        variances: FloatArray,
        repeats: FloatArray | float = 1.0,
    ) -> None:
        """Take in readings (N,) of one instant.

        :param rows: (N, 3) how they change with height and tilt of the plane of `view`
        :param innovations: (N,) how far they are from what that plane says
        :param variances: (N,) of their own errors
        :param repeats: (N,) how many of them count as one, as they repeat their errors
        """
        mean, covariance = self._advanced(stamp_ns, drone)
        believed, beyond = mean, 0
        inflated = variances * repeats
        for row, innovation, variance, counted in zip(
            rows, innovations, variances, inflated, strict=True
        ):
            column = covariance @ row
            spread = float(row @ column)
            apart = float(innovation) - float(row @ (mean - believed))
            if not apart * apart <= _GATE * (spread + float(variance)):  # nor NaN
                beyond += 1
                continue
            gain = column / (spread + float(counted))
            mean = mean + gain * apart
            covariance = covariance - np.outer(gain, column)
        if 2 * beyond > len(innovations) and covariance[0, 0] < _WIDEST:
            covariance = covariance * _WIDER**beyond
        self._mean, self._covariance = mean, covariance
        self._at_ns, self._place = stamp_ns, np.array(drone[:2])

    def learn_points(self, stamp_ns: int, drone: FloatArray, points: FloatArray) -> None:
        """Take in points (N, 3) that a rangefinder has measured on the ground."""
        if len(points):
            now = self.view(stamp_ns, drone)
            distances = np.linalg.norm(points - drone, axis=1)
            variances = _BEAM**2 + (_BEAM_SHARE * distances) ** 2
            apart = points[:, 2] - now.heights(points)
            self.learn(stamp_ns, drone, now.rows(points), apart, variances)

    def _advanced(self, stamp_ns: int, drone: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return mean and covariance of height and tilt by then and there."""
        if self._at_ns is None:
            return self._mean, self._covariance
        kept = math.exp(-max(stamp_ns - self._at_ns, 0) / NS_PER_S / _FORGOTTEN)
        moved = np.eye(3)
        moved[0, 1:] = drone[:2] - self._place
        mean = kept * (moved @ self._mean)
        return mean, kept**2 * (moved @ self._covariance @ moved.T) + (1.0 - kept**2) * _PRIOR
