"""One status per node on /diagnostics, once a second."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from rclpy.node import Node

from mmedge_ros.ros.input_watch import InputWatch


class Diagnostics:
    """Publishes counts of a node, and what it is missing.

    :param values: called once a second for the figures to show
    """

    def __init__(
        self, node: Node, watch: InputWatch, values: Callable[[], Mapping[str, object]]
    ) -> None:
        self._node = node
        self._watch = watch
        self._values = values
        self._publisher = node.create_publisher(DiagnosticArray, '/diagnostics', 10)
        self._timer = node.create_timer(1.0, self.publish)

    def publish(self) -> None:
        """Publish the present state."""
        missing = self._watch.missing()
        status = DiagnosticStatus(
            level=DiagnosticStatus.WARN if missing else DiagnosticStatus.OK,
            name=f'mmedge_ros: {self._node.get_name()}',
            message='; '.join(missing) or 'running',
            hardware_id='',
            values=[KeyValue(key=k, value=str(v)) for k, v in self._values().items()],
        )
        message = DiagnosticArray(status=[status])
        message.header.stamp = self._node.get_clock().now().to_msg()
        self._publisher.publish(message)
