"""Publishes the scans of a TI mmWave radar; obeys configurations and skip leases at the source."""

from __future__ import annotations

import sys
import threading
from contextlib import ExitStack
from typing import Any

from rclpy.node import Node
from sensor_msgs.msg import PointCloud2

from mmedge_ros import msg
from mmedge_ros.ros.configuration_input import ConfigurationInput
from mmedge_ros.ros.diagnostics import Diagnostics
from mmedge_ros.ros.messages import conversions, names, qos
from mmedge_ros.ros.node_main import run_nodes
from mmedge_ros.ros.parameters import declare
from mmedge_ros.ros.radar_setup import RadarNodeParameters, radar_ports, to_point_cloud
from mmedge_ros.ros.ros_clock import RosClock
from mmedge_ros.sensing.radar.source import RadarSource, serial_connection

# How long the publishing thread waits for a scan before it looks whether it is to end.
_LOOK = 0.5


class RadarNode(Node):
    """Reads in one thread and publishes in another, so that neither holds up the other."""

    def __init__(self, **node_options: Any) -> None:
        super().__init__('radar', **node_options)
        self._options = declare(self, RadarNodeParameters)
        self._ended = threading.Event()
        self._opened = ExitStack()
        p = self._opened.enter_context(radar_ports(self._options))
        self._source = RadarSource(p, RosClock(self), serial_connection(p), self._say)
        self._points = self.create_publisher(
            PointCloud2, names.RADAR_POINTS, **qos.overridable(qos.SENSOR)
        )
        self._diagnostics = Diagnostics(
            self,
            self._source,
            self._source.figures,
            self._source.is_failing,
            p.command_port or p.serial_number,
        )
        self._configurations = ConfigurationInput(self, self._source.configure)
        self.create_subscription(msg.SkipDecision, names.SKIP_DECISION, self._on_skip, qos.RESULT)
        self._thread = threading.Thread(target=self._publish, name='publisher', daemon=True)
        self._source.start()
        self._thread.start()

    def stop(self) -> None:
        """Stop the sensor and end both threads."""
        self._ended.set()
        self._source.stop()
        self._thread.join(_LOOK)
        self._opened.close()

    def _publish(self) -> None:
        while not self._ended.is_set():
            scan = self._source.take(_LOOK)
            if scan is not None and self.context.ok():
                self._points.publish(to_point_cloud(scan, self._options.frame_id))

    def _say(self, text: str) -> None:
        if self._source.is_failing():
            self.get_logger().warning(text)
        else:
            self.get_logger().info(text)

    def _on_skip(self, message: msg.SkipDecision) -> None:
        self._source.lease(conversions.from_skip_decision(message))


def main(args: list[str] | None = None) -> None:
    """Run the node."""
    sys.exit(run_nodes([RadarNode], args))


if __name__ == '__main__':
    main()
