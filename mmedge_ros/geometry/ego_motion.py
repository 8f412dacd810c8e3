"""How the drone itself moves: poses and velocities by time, from odometry or transforms."""

from __future__ import annotations

import bisect
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from mmedge_ros.core.data_types import NS_PER_S, FloatArray
from mmedge_ros.geometry import GeometryError
from mmedge_ros.geometry.rotations import cross, rotation_by, rotation_vector
from mmedge_ros.geometry.sensor_poses import BASE_FRAME, SensorGeometry
from mmedge_ros.geometry.transforms import (
    Transform,
    prefixed,
    rotation_from_quaternion,
    transform_from_message,
)

ODOMETRY_FRAME = 'odom'

# Odometry comes at 30 Hz and more; beyond this a pose would be a guess.
_LONGEST_GUESS_NS = 150_000_000
_KEPT = 5.0
FASTEST = 200.0


@dataclass(frozen=True, eq=False)
class EgoState:
    """Pose of the base in the odometry frame at one instant, and how it moves.

    ``pose`` maps base to odometry coordinates; ``velocity`` (3,) m/s and
    ``angular_velocity`` (3,) rad/s are in the odometry frame, None where only poses are known.
    """

    stamp_ns: int
    pose: Transform
    velocity: FloatArray | None = None
    angular_velocity: FloatArray | None = None


class EgoReport(NamedTuple):
    """An ego state as it was received: the pose of ``base_frame`` in ``frame_id``."""

    available_ns: int
    state: EgoState
    frame_id: str
    base_frame: str


class EgoMotion:
    """Remembers the last seconds of ego states and answers for any instant in them.

    Poses are those of ``base_frame`` in ``frame_id``; both are empty where nothing is known.

    :param kept: how many seconds are remembered; None keeps a flight as a whole
    """

    def __init__(
        self, frame_id: str = '', base_frame: str = '', kept: float | None = _KEPT
    ) -> None:
        self.frame_id = frame_id
        self.base_frame = base_frame
        self._kept_ns = None if kept is None else round(kept * NS_PER_S)
        self._states: list[EgoState] = []
        self._stamps: list[int] = []

    def __len__(self) -> int:
        return len(self._states)

    def add(self, state: EgoState) -> None:
        """Enter a state; order does not matter, a repeated stamp replaces the earlier one."""
        place = bisect.bisect_left(self._stamps, state.stamp_ns)
        if place < len(self._stamps) and self._stamps[place] == state.stamp_ns:
            self._states[place] = state
            return
        kept_ns = self._kept_ns
        if kept_ns is not None and self._stamps and state.stamp_ns < self._stamps[-1] - kept_ns:
            self._states, self._stamps = [], []  # the clock was set back
            place = 0
        self._stamps.insert(place, state.stamp_ns)
        self._states.insert(place, state)
        if kept_ns is not None:
            old = bisect.bisect_left(self._stamps, self._stamps[-1] - kept_ns)
            del self._stamps[:old], self._states[:old]

    def at(self, stamp_ns: int) -> EgoState | None:
        """Return the state at an instant: interpolated, or carried on for at most 0.15 s.

        None where nothing near enough is known.
        """
        if not self._states:
            return None
        place = bisect.bisect_left(self._stamps, stamp_ns)
        if place == 0 or place == len(self._stamps):
            return self._beyond(min(place, len(self._stamps) - 1), stamp_ns)
        before, after = self._states[place - 1], self._states[place]
        if after.stamp_ns - before.stamp_ns > NS_PER_S:
            near = before if stamp_ns - before.stamp_ns < after.stamp_ns - stamp_ns else after
            return self._beyond(place - (near is before), stamp_ns)
        return _between(before, after, stamp_ns)

    def nearest(self, stamp_ns: int) -> EgoState | None:
        """Return the state at an instant, or the nearest one known; None without any.

        Where odometry has stopped, the last pose is held: a guess that gets worse, but better
        than to throw away what the sensors still see.
        """
        state = self.at(stamp_ns)
        if state is not None or not self._states:
            return state
        place = bisect.bisect_left(self._stamps, stamp_ns)
        around = self._states[max(place - 1, 0) : place + 1]
        return min(around, key=lambda known: abs(known.stamp_ns - stamp_ns))

    def _beyond(self, place: int, stamp_ns: int) -> EgoState | None:
        nearest = self._with_velocity(place)
        dt_ns = stamp_ns - nearest.stamp_ns
        if abs(dt_ns) > _LONGEST_GUESS_NS or nearest.velocity is None:
            return nearest if dt_ns == 0 else None
        assert nearest.angular_velocity is not None  # goes with the velocity
        dt = dt_ns / NS_PER_S
        turned = rotation_by(nearest.angular_velocity * dt)
        pose = Transform(
            turned @ nearest.pose.rotation, nearest.pose.translation + dt * nearest.velocity
        )
        return replace(nearest, stamp_ns=stamp_ns, pose=pose)

    def _with_velocity(self, place: int) -> EgoState:
        """Return a state with its velocity, from its neighbour where only poses are known."""
        state = self._states[place]
        if state.velocity is not None or len(self._states) < 2:
            return state
        before, after = sorted((place, place - 1 if place else 1))
        filled = _between(self._states[before], self._states[after], state.stamp_ns)
        return replace(state, velocity=filled.velocity, angular_velocity=filled.angular_velocity)


# Most instants are looked up several times: a scan's alone, and with its picture. States are
# distinguished by identity, so that what replaces one is never taken for it.
@lru_cache(maxsize=64)
def _between(before: EgoState, after: EgoState, stamp_ns: int) -> EgoState:
    span = (after.stamp_ns - before.stamp_ns) / NS_PER_S
    share = (stamp_ns - before.stamp_ns) / NS_PER_S / span
    turn = rotation_vector(after.pose.rotation @ before.pose.rotation.T)
    move = after.pose.translation - before.pose.translation
    pose = Transform(
        rotation_by(share * turn) @ before.pose.rotation,
        before.pose.translation + share * move,
    )
    velocity, angular = move / span, turn / span
    if before.velocity is not None and after.velocity is not None:
        velocity = (1 - share) * before.velocity + share * after.velocity
    if before.angular_velocity is not None and after.angular_velocity is not None:
        angular = (1 - share) * before.angular_velocity + share * after.angular_velocity
    return EgoState(stamp_ns, pose, velocity, angular)


@lru_cache(maxsize=64)
def carried(geometry: SensorGeometry, state: EgoState, frame_id: str) -> SensorGeometry:
    """Return the sensors' poses and the radar's velocity in the odometry frame."""
    radar_pose = state.pose.compose(geometry.radar_pose)
    velocity = np.zeros(3)
    if state.velocity is not None and state.angular_velocity is not None:
        arm = radar_pose.translation - state.pose.translation
        velocity = state.velocity + cross(state.angular_velocity, arm)
    return SensorGeometry(
        frame_id,
        geometry.camera,
        state.pose.compose(geometry.camera_pose),
        radar_pose,
        geometry.degraded,
        velocity,
    )


def ego_state(
    stamp_ns: int,
    position: Sequence[float],
    orientation: Sequence[float],
    linear: Sequence[float],
    angular: Sequence[float],
) -> EgoState:
    """Make a state of a position (m), a quaternion (x, y, z, w), and velocities in the base.

    :param linear: m/s
    :param angular: rad/s
    :raises GeometryError: for numbers that are no pose or velocity
    """
    x, y, z, w = orientation
    pose = Transform(rotation_from_quaternion(x, y, z, w), finite_vector(position))
    return EgoState(
        stamp_ns,
        pose,
        pose.rotate(finite_vector(linear, FASTEST)),
        pose.rotate(finite_vector(angular, FASTEST)),
    )


def ego_states_from_transforms(
    message: Any, available_ns: int, prefix: str = ''
) -> list[EgoReport]:
    """Read the poses of ``base_link`` in ``odom`` from a (duck-typed) tf2_msgs/TFMessage.

    :param prefix: before the names of both
    :raises GeometryError: for numbers that are no pose
    """
    reports = []
    wanted = prefixed(prefix, ODOMETRY_FRAME), prefixed(prefix, BASE_FRAME)
    for transform in message.transforms:
        parent, child = transform.header.frame_id.lstrip('/'), transform.child_frame_id.lstrip('/')
        if (parent, child) == wanted:
            stamp = transform.header.stamp
            pose = transform_from_message(transform).transform
            state = EgoState(stamp.sec * NS_PER_S + stamp.nanosec, pose)
            reports.append(EgoReport(available_ns, state, parent, child))
    return reports


def finite_vector(values: Sequence[float], limit: float = 1e7) -> FloatArray:
    """Return numbers of the outside as an array.

    :raises GeometryError: for one that is not finite or beyond the limit
    """
    for value in values:
        if not -limit <= value <= limit:  # nor is NaN
            raise GeometryError(f'odometry with {tuple(values)}: not finite or beyond {limit:g}')
    return np.array(values, np.float64)
