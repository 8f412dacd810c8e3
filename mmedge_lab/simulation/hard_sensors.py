"""What hard flights have besides: an inertial unit, and a rangefinder that looks down.

Noise depends on the seed and the instant only, as that of the odometry does.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from mmedge_lab.simulation.odometry import Odometry
from mmedge_lab.simulation.scenario import SeedStream, generator
from mmedge_lab.simulation.world import World
from mmedge_ros.core.data_types import FloatArray
from mmedge_ros.geometry.transforms import Transform

# A BMI088 behind a 100 Hz filter, by its data sheet: 0.014 deg/s and 0.2 mg per root hertz.
_GYRO_NOISE, _FORCE_NOISE = math.radians(0.14), 0.02  # rad/s, m/s^2
_GYRO_BIAS = math.radians(0.2)
_GRAVITY = np.array([0.0, 0.0, 9.81])
_BETWEEN = 1e-3  # s, for accelerations
_INERTIAL, _RANGE, _TURNED_ON = 1, 2, 3
# x is the beam, straight down.
RANGE_POSE = Transform(
    np.array([[0.0, 0.0, 1.0], [0.0, 1.0, 0.0], [-1.0, 0.0, 0.0]]), np.array([0.0, 0.0, -0.05])
)
RANGE_FIELD, RANGE_LEAST, RANGE_MOST = 0.05, 0.2, 25.0  # rad, m
_MISSING = 0.03  # of all readings


class InertialReading(NamedTuple):
    """In the base's axes: ``rotation`` (3, 3) as estimated, ``turning`` rad/s, ``force`` m/s^2."""

    rotation: FloatArray
    turning: FloatArray
    force: FloatArray


class InertialUnit:
    """Reads turn rates and specific force at any instant."""

    def __init__(self, world: World, odometry: Odometry) -> None:
        self._world, self._odometry = world, odometry
        random = generator(world.seed, SeedStream.ESTIMATOR, _TURNED_ON)
        self._bias = _GYRO_BIAS * random.normal(size=3)

    def at(self, t: float) -> InertialReading:
        """Return the reading at an instant."""
        before, now, after = (
            self._world.path.state(t + step) for step in (-_BETWEEN, 0.0, _BETWEEN)
        )
        pushed = (after.velocity - before.velocity) / (2.0 * _BETWEEN) + _GRAVITY
        gyro, force = _generator(self._world, _INERTIAL, t).normal(size=(2, 3))
        in_base = now.pose.rotation.T
        return InertialReading(
            self._odometry.at(t).pose.rotation,
            in_base @ now.angular_velocity + self._bias + _GYRO_NOISE * gyro,
            in_base @ pushed + _FORCE_NOISE * force,
        )


class Rangefinder:
    """Measures how far it is to ground, roofs and movers, down along the drone's own axis."""

    def __init__(self, world: World) -> None:
        self._world = world

    def at(self, t: float) -> float | None:
        """Return m, infinite beyond its reach as REP-117 has it; None for a missing reading."""
        random = _generator(self._world, _RANGE, t)
        if random.random() < _MISSING:
            return None
        true = self.distance(t)
        measured = true + (0.02 + 0.005 * min(true, RANGE_MOST)) * random.normal()
        return measured if measured <= RANGE_MOST else math.inf

    def distance(self, t: float) -> float:
        """Return how far (m) it truly is; the drone must not lie on its side."""
        pose = self._world.path.state(t).pose.compose(RANGE_POSE)
        beam, eye = pose.rotation[:, 0], pose.translation
        away = 0.0
        for _ in range(8):
            place = eye + away * beam
            away -= (place[2] - self._under(place[:2])) / min(float(beam[2]), -0.2)
        ends = [away]
        for mover in self._world.movers:
            body = mover.body(t)
            apart = body.centres - eye
            along = apart @ beam
            inside = body.radii**2 - (apart * apart).sum(axis=1) + along**2
            hit = (inside > 0.0) & (along > 0.0)
            ends += (along[hit] - np.sqrt(inside[hit])).tolist()
        return float(min(ends))

    def _under(self, place: FloatArray) -> float:
        """Return z (m) of ground or roof at a place (2,)."""
        z = float(self._world.terrain.heights(place)) if self._world.terrain else 0.0
        for building in self._world.buildings:
            edges = np.roll(building.footprint, -1, axis=0) - building.footprint
            apart = place - building.footprint
            if (edges[:, 0] * apart[:, 1] > edges[:, 1] * apart[:, 0]).all():
                z = max(z, building.height)
        return z


def _generator(world: World, kind: int, t: float) -> np.random.Generator:
    return generator(world.seed, SeedStream.ESTIMATOR, kind, round(t * 1e6) + 10_000_000)
