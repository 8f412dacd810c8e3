"""What a drone's state estimator reports of its motion: the truth with small white noise."""

from __future__ import annotations

import numpy as np
from scipy.spatial.transform import Rotation

from mmedge_lab.simulation.scenario import SeedStream, generator
from mmedge_lab.simulation.world import World
from mmedge_ros.core.data_types import NS_PER_S
from mmedge_ros.geometry.ego_motion import EgoState
from mmedge_ros.geometry.transforms import Transform

# Standard deviations on each axis: what visual-inertial odometry does over a short flight.
POSITION_NOISE = 0.02  # m
ATTITUDE_NOISE = np.radians(0.1)  # rad
VELOCITY_NOISE = 0.03  # m/s
ANGULAR_VELOCITY_NOISE = 0.01  # rad/s


class Odometry:
    """Readings of the drone's pose and twist at any instant, unbiased.

    The noise depends on the seed and the instant (in microseconds) only, so an
    instant is always read the same, in whatever order.
    """

    def __init__(self, world: World) -> None:
        self._path = world.path
        self._seed = world.seed

    def at(self, t: float) -> EgoState:
        """Return the reading at an instant; its stamp counts from the flight's begin.

        Pose of base_link in odom, velocities in the odom frame, as `EgoState` has them.
        """
        true = self._path.state(t)
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
