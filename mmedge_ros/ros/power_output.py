"""Publishes the state of power when it changes, and says when it becomes another one."""

from __future__ import annotations

from rclpy.node import Node

from mmedge_ros import msg
from mmedge_ros.power.power_policy import PowerState
from mmedge_ros.ros.messages import conversions, names, qos


class PowerOutput:
    """The topic `perception/power_state` of a node."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._published: PowerState | None = None
        self._publisher = node.create_publisher(msg.PowerState, names.POWER_STATE, qos.LATCHED)

    def publish(self, power: PowerState, now_ns: int) -> None:
        """Publish a state unless it is that of before."""
        before = self._published
        if power == before:
            return
        if before is None or power.mode is not before.mode:
            self._node.get_logger().info(f'power {power.mode.name}: {power.reason}')
        self._published = power
        self._publisher.publish(conversions.to_power_state(power, now_ns))
