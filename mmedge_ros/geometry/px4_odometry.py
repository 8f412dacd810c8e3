"""Odometry as PX4 sends it: north, east, down; the body looks ahead, to the right, down.

ROS has east, north, up, and a body that looks ahead, to the left, up (REP-103). Field by field as
px4_msgs/VehicleOdometry of PX4 1.14 and later says; variances are not used, as with nav_msgs.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mmedge_ros.core.data_types import NS_PER_S, FloatArray
from mmedge_ros.geometry import GeometryError
from mmedge_ros.geometry.ego_motion import (
    FASTEST,
    ODOMETRY_FRAME,
    EgoReport,
    EgoState,
    finite_vector,
)
from mmedge_ros.geometry.sensor_poses import BASE_FRAME
from mmedge_ros.geometry.transforms import Transform, rotation_from_quaternion

# A world that does not know where north is: x lies where PX4 set it. It has a name of its own,
# so that poses before and after a change are never mixed.
LOCAL_FRAME = 'odom_local'

_NED, _FRD = 1, 2
_BODY = 3
_NS_PER_US = 1_000
# A link takes milliseconds; a clock that counts from the start is off by years.
_FURTHEST_NS = NS_PER_S
_BODY_TO_ROS = np.diag([1.0, -1.0, -1.0])
# From each frame of a pose: its name in ROS, and what turns its vectors.
_WORLDS: dict[int, tuple[str, FloatArray]] = {
    _NED: (ODOMETRY_FRAME, np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, -1.0]])),
    _FRD: (LOCAL_FRAME, _BODY_TO_ROS),
}


def px4_stamp_ns(message: Any) -> int:
    """Return when the pose of a (duck-typed) px4_msgs/VehicleOdometry was measured."""
    return int(message.timestamp_sample or message.timestamp) * _NS_PER_US


def ego_report_from_px4(message: Any, now_ns: int) -> EgoReport:
    """Read a (duck-typed) px4_msgs/VehicleOdometry; velocities that are not known are None.

    :param now_ns: by the clock of the graph; PX4's has to agree with it
    :raises GeometryError: where the pose is not known, for numbers that are no pose or velocity,
        and where the clocks differ
    """
    if message.pose_frame not in _WORLDS:
        raise GeometryError(f'PX4 names no frame of its pose (pose_frame {message.pose_frame})')
    if math.isnan(message.q[0]) or np.isnan(message.position).any():
        raise GeometryError(
            'PX4 does not know its pose (yet): position or attitude is not a number'
        )
    stamp_ns = px4_stamp_ns(message)
    apart_ns = abs(now_ns - stamp_ns)
    if apart_ns > _FURTHEST_NS:
        raise GeometryError(
            f"PX4's clock and this computer's are {apart_ns / NS_PER_S:.1f} s apart: set PX4's "
            'parameter UXRCE_DDS_SYNCT to 1, or use_sim_time here if PX4 is simulated'
        )
    frame_id, world = _WORLDS[message.pose_frame]
    w, x, y, z = (float(number) for number in message.q)
    from_body = world @ rotation_from_quaternion(x, y, z, w)
    pose = Transform(from_body @ _BODY_TO_ROS, world @ finite_vector(message.position))
    state = EgoState(stamp_ns, pose, *_velocities(message, world, from_body))
    return EgoReport(now_ns, state, frame_id, BASE_FRAME)


def _velocities(
    message: Any, world: FloatArray, from_body: FloatArray
) -> tuple[FloatArray | None, FloatArray | None]:
    """Return linear and angular velocity in the world of ROS: both, or none of them."""
    turns = {message.pose_frame: world, _BODY: from_body}
    turn = turns.get(message.velocity_frame)
    unknown = np.isnan(message.velocity).any() or np.isnan(message.angular_velocity).any()
    if turn is None or unknown:
        return None, None
    return (
        turn @ finite_vector(message.velocity, FASTEST),
        from_body @ finite_vector(message.angular_velocity, FASTEST),
    )
