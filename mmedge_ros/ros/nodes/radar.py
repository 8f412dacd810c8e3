"""Publishes the scans of a TI mmWave radar; obeys configurations and skip leases at the source."""

from __future__ import annotations

import array
import tempfile
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from rclpy.node import Node
from sensor_msgs.msg import PointCloud2, PointField

from mmedge_ros.core.parameter import parameter
from mmedge_ros.geometry.sensor_poses import RADAR_FRAME
from mmedge_ros.ros.configuration_input import ConfigurationInput
from mmedge_ros.ros.diagnostics import Diagnostics
from mmedge_ros.ros.messages import names, qos
from mmedge_ros.ros.messages.conversions import header
from mmedge_ros.ros.node_main import program
from mmedge_ros.ros.parameters import declare
from mmedge_ros.ros.ros_clock import RosClock
from mmedge_ros.sensing.radar.scan import SCAN_FIELDS, RadarScan
from mmedge_ros.sensing.radar.source import RadarParameters, RadarSource, serial_connection
from mmedge_ros.sensing.simulated_board import PERSON
from mmedge_ros.sensing.simulated_board.board import SimulatedBoard
from mmedge_ros.sensing.simulated_board.frames import board_frames

# How long the publishing thread waits for a scan before it looks whether it is to end.
_LOOK = 0.5
# In place of a recording: a walking person.


@dataclass(frozen=True)
class RadarNodeParameters(RadarParameters):
    """The radar node: which radar, and how its scans are published."""

    frame_id: str = parameter(RADAR_FRAME, 'frame of the points: x forward, y left, z up')
    simulated: str = parameter(
        '',
        "recording of a data port that a simulated board plays in place of a real one; 'person' "
        'simulates a walking person',
    )


@contextmanager
def radar_ports(p: RadarNodeParameters) -> Iterator[RadarNodeParameters]:
    """Bring up the simulated board, if one is wanted, and yield parameters with its ports.

    :raises SensingError: if the recording cannot be played
    """
    if not p.simulated:
        yield p
        return
    frames = board_frames(None if p.simulated == PERSON else p.simulated)
    with (
        tempfile.TemporaryDirectory(prefix='mmedge_radar_') as folder,
        SimulatedBoard(frames, Path(folder)) as board,
    ):
        yield replace(p, command_port=str(board.command_path), data_port=str(board.data_path))


def to_point_cloud(scan: RadarScan, frame_id: str) -> PointCloud2:
    """Make the message of a scan: float32 x, y, z, velocity, snr, noise."""
    step = 4 * len(SCAN_FIELDS)
    count = len(scan.points)
    message = PointCloud2(
        header=header(scan.stamp_ns, frame_id),
        height=1,
        width=count,
        fields=[
            PointField(name=name, offset=4 * n, datatype=PointField.FLOAT32, count=1)
            for n, name in enumerate(SCAN_FIELDS)
        ],
        is_bigendian=False,
        point_step=step,
        row_step=step * count,
        is_dense=bool(np.isfinite(scan.points).all()),
    )
    message.data = array.array('B', np.ascontiguousarray(scan.points, '<f4').tobytes())
    return message


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
        self._configurations = ConfigurationInput(
            self, self._source.configure, lease=self._source.lease
        )
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


main = program(RadarNode)


if __name__ == '__main__':
    main()
