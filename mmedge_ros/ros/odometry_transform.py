"""Publishes odom -> base_link from odometry, for RViz and others that know only transforms."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from typing import Any

from geometry_msgs.msg import Quaternion, TransformStamped, Vector3
from rclpy.node import Node

from mmedge_ros.data_types import NS_PER_S
from mmedge_ros.geometry.ego_motion import ODOMETRY_FRAME, EgoReport
from mmedge_ros.geometry.sensor_poses import BASE_FRAME
from mmedge_ros.geometry.transforms import Transform, prefixed, quaternion_from_rotation
from mmedge_ros.ros.messages import names, qos
from mmedge_ros.ros.messages.conversions import from_time, header

# Other publishers are listened for before the first transform, s.
_LISTENING = 1.0
# An autopilot sends a hundred poses a second and more; who draws them interpolates.
_SHORTEST_NS = 20_000_000
# Of our own, that come back on /tf: more than its subscription holds.
_REMEMBERED = 200


def to_transform(parent: str, child: str, pose: Transform, stamp_ns: int = 0) -> TransformStamped:
    """Make the message of an edge of the transform tree."""
    edge = TransformStamped(header=header(stamp_ns, parent), child_frame_id=child)
    x, y, z = map(float, pose.translation)
    edge.transform.translation = Vector3(x=x, y=y, z=z)
    x, y, z, w = quaternion_from_rotation(pose.rotation)
    edge.transform.rotation = Quaternion(x=x, y=y, z=z, w=w)
    return edge


class OdometryTransform:
    """Begins a second after the first odometry, and ends for good where another node publishes.

    :param kind: class of tf2_msgs/TFMessage
    :param prefix: before the names of both frames
    :param monotonic: seconds on the monotonic clock
    """

    def __init__(
        self,
        node: Node,
        kind: type,
        prefix: str = '',
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self.state = 'no odometry'
        self._say = node.get_logger().info
        self._kind = kind
        self._prefix = prefix
        self._monotonic = monotonic
        self._begun_at: float | None = None
        self._is_left = False
        self._child = ''
        self._sent: deque[int] = deque(maxlen=_REMEMBERED)
        self._output: Any = node.create_publisher(kind, names.TRANSFORMS, qos.RESULT)

    def add(self, report: EgoReport) -> None:
        """Publish a pose that odometry reports, unless it is to be left to another node."""
        now = self._monotonic()
        if self._begun_at is None:
            self._begun_at = now
        self._child = prefixed(self._prefix, report.base_frame or BASE_FRAME)
        since_ns = report.state.stamp_ns - self._sent[-1] if self._sent else _SHORTEST_NS
        is_too_early = -NS_PER_S < since_ns < _SHORTEST_NS
        if self._is_left or now - self._begun_at < _LISTENING or is_too_early:
            return
        parent = prefixed(self._prefix, report.frame_id or ODOMETRY_FRAME)
        self.state = f'{parent} -> {self._child} is published'
        self._sent.append(report.state.stamp_ns)
        edge = to_transform(parent, self._child, report.state.pose, report.state.stamp_ns)
        self._output.publish(self._kind(transforms=[edge]))

    def heard(self, message: Any) -> None:
        """Look for another publisher of the same transform in a message from /tf."""
        for edge in () if self._is_left else message.transforms:
            is_same = edge.child_frame_id.lstrip('/') == self._child
            if is_same and from_time(edge.header.stamp) not in self._sent:
                self._is_left = True
                self.state = f'{edge.header.frame_id} -> {self._child} comes from another node'
                self._say(f'{self.state}: this node publishes none')
                return
