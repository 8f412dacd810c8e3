"""What a drone's state estimator reports of its motion: the truth with small white noise.

In hard flights it errs besides: slowly, by a lean that stays, and by a reset.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.spatial.transform import Rotation

from mmedge_lab.simulation.flight_path import smooth_step
from mmedge_lab.simulation.hardships import EstimatorErrors
from mmedge_lab.simulation.scenario import SeedStream, generator
from mmedge_lab.simulation.world import DroneState, World
from mmedge_ros.core.data_types import NS_PER_S
from mmedge_ros.geometry.ego_motion import EgoState
from mmedge_ros.geometry.transforms import Transform

# Standard deviations on each axis: what visual-inertial odometry does over a short flight.
POSITION_NOISE = 0.02  # m
ATTITUDE_NOISE = np.radians(0.1)  # rad
VELOCITY_NOISE = 0.03  # m/s
ANGULAR_VELOCITY_NOISE = 0.01  # rad/s


# A compass holds yaw in the end: its drift grows for about so long, s.
_YAW_HOLDS = 20.0


class EstimatorDrift:
    """How far an estimator is off at any instant; at 0 s it leans, and is off by nothing else."""

    def __init__(self, errors: EstimatorErrors, seed: int) -> None:
        random = generator(seed, SeedStream.ESTIMATOR)
        self._errors = errors
        self._warms = random.uniform(3.0, 8.0)  # s that a barometer drifts fastest in
        self._rate = 2.0 * math.pi * random.uniform(0.03, 0.15, (2, 3))
        self._phase = random.uniform(-math.pi, math.pi, (2, 3))
        self._lean = Rotation.from_euler('YX', [errors.pitch, errors.roll])

    def reported(self, true: DroneState, t: float) -> DroneState:
        """Return how the estimator has a true state; the twist in the base's axes is true."""
        errors, has_reset = self._errors, t >= self._errors.reset
        wave = np.sin(self._rate * t + self._phase)
        # GNSS strays: two tones on each of two axes, no farther than ``position`` in all.
        stray = (wave - np.sin(self._phase))[:, :2].sum(axis=0) / math.sqrt(32.0)
        drift = float(smooth_step(np.array(t / self._warms))) * (0.8 + 0.2 * wave[0, 2])
        off = np.array([*errors.position * stray, errors.altitude * drift])
        off += has_reset * np.array(errors.jump)
        yaw = errors.yaw_rate * _YAW_HOLDS * math.tanh(t / _YAW_HOLDS) + has_reset * errors.turn
        turned = Rotation.from_euler('z', yaw) * Rotation.from_matrix(true.pose.rotation)
        rotation = (turned * self._lean).as_matrix()
        err = rotation @ true.pose.rotation.T
        pose = Transform(rotation, true.pose.translation + off)
        return DroneState(pose, err @ true.velocity, err @ true.angular_velocity)


class Odometry:
    """Readings of the drone's pose and twist at any instant, unbiased but in hard flights.

    The noise depends on the seed and the instant (in microseconds) only, so an
    instant is always read the same, in whatever order.
    """

    def __init__(self, world: World) -> None:
        self._path = world.path
        self._seed = world.seed
        self._drift = EstimatorDrift(world.hard.estimator, world.seed) if world.hard else None

    def at(self, t: float) -> EgoState:
        """Return the reading at an instant; its stamp counts from the flight's begin.

        Pose of base_link in odom, velocities in the odom frame, as `EgoState` has them.
        """
        true = self._path.state(t)
        if self._drift is not None:
            true = self._drift.reported(true, t)
        # Instants before the flight count from a bias, because a seed is not negative.
        random = generator(self._seed, SeedStream.ODOMETRY, round(t * 1e6) + 10_000_000)
        place, turn, speed, spin = random.normal(size=(4, 3))
        turned = Rotation.from_rotvec(ATTITUDE_NOISE * turn).as_matrix()
        pose = Transform(
            turned @ true.pose.rotation, true.pose.translation + POSITION_NOISE * place
        )
        return EgoState(
            round(t * NS_PER_S),
            pose,
            true.velocity + VELOCITY_NOISE * speed,
            true.angular_velocity + ANGULAR_VELOCITY_NOISE * spin,
        )
