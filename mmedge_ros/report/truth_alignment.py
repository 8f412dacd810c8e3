"""The ground truth carried into the frame of the tracks.

Odometry drifts (REP-105), and with it the frame of the tracks. So the truth is carried into the
frame of the body by the true pose of the drone, and on into the frame of the tracks by the pose
that odometry gave.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mmedge_ros.core.data_types import FloatArray
from mmedge_ros.core.run_record import RunRecord
from mmedge_ros.geometry.ego_motion import EgoState
from mmedge_ros.geometry.sensor_poses import BASE_FRAME
from mmedge_ros.replay.ground_truth import BODY_MIDDLE, GroundTruth, TrueFrame


class Aligned(NamedTuple):
    """True positions and velocities (N, 3) in the frame of the tracks, and the sensor (3,)."""

    positions: FloatArray
    velocities: FloatArray
    sensor: FloatArray

    @property
    def ranges(self) -> FloatArray:
        """Distances (N,) in m from the sensor to the middles of bodies."""
        return np.asarray(np.linalg.norm(self.positions + BODY_MIDDLE - self.sensor, axis=1))

    def select(self, places: NDArray[np.intp]) -> Aligned:
        """Return the objects at these places."""
        return Aligned(self.positions[places], self.velocities[places], self.sensor)


class Alignment:
    """Carries the truth into the frame of a run's tracks, where that can be done.

    ``problems`` lists where it cannot.
    """

    def __init__(self, record: RunRecord, truth: GroundTruth) -> None:
        self._truth = truth
        self._odometry = record.ego
        pose = record.camera_pose or record.radar_pose
        self._mount = np.zeros(3) if pose is None else np.asarray(pose.translation)
        self._refused: dict[str, int] = {}

    @property
    def problems(self) -> list[str]:
        return [
            f'ground truth: positions are in {self._truth.frame_id!r}, the tracks of {count} '
            f'decisions in {frame!r}: where people are was not compared there'
            for frame, count in self._refused.items()
        ]

    def carry(self, frame: TrueFrame, stamp_ns: int, frame_id: str) -> Aligned | None:
        """Return what is true at an instant in the frame of the tracks."""
        drone = self._truth.ego.at(stamp_ns)
        reckoned = None
        if self._odometry is not None and self._odometry.frame_id == frame_id:
            reckoned = self._odometry.at(stamp_ns)
        if drone is not None and (reckoned is not None or frame_id == BASE_FRAME):
            return self._carried(frame, drone, reckoned)
        if frame_id != self._truth.frame_id:
            self._refused[frame_id] = self._refused.get(frame_id, 0) + 1
            return None
        sensor = self._mount if drone is None else drone.pose.apply(self._mount)
        return Aligned(frame.positions, frame.velocities, sensor)

    def _carried(self, frame: TrueFrame, drone: EgoState, reckoned: EgoState | None) -> Aligned:
        inverse = drone.pose.inverse()
        positions = inverse.apply(frame.positions)
        if reckoned is not None:
            velocities = inverse.rotate(frame.velocities)
            pose = reckoned.pose
            return Aligned(pose.apply(positions), pose.rotate(velocities), pose.apply(self._mount))
        # In the frame of the body everything moves as the drone does not.
        arms = frame.positions - drone.pose.translation
        own = np.zeros(3) if drone.velocity is None else drone.velocity
        turning = np.zeros(3) if drone.angular_velocity is None else drone.angular_velocity
        relative = frame.velocities - own - np.cross(turning, arms)
        return Aligned(positions, inverse.rotate(relative), self._mount)
