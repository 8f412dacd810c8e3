"""Publishes the pictures of a camera; obeys configurations and skip leases at the source."""

from __future__ import annotations

import threading
from dataclasses import asdict
from typing import Any

from rclpy.node import Node

from mmedge_ros.core.data_types import CAMERA
from mmedge_ros.ros.configuration_input import ConfigurationInput
from mmedge_ros.ros.diagnostics import Diagnostics
from mmedge_ros.ros.node_main import program
from mmedge_ros.ros.parameters import declare
from mmedge_ros.ros.picture_output import CameraOutputs
from mmedge_ros.ros.ros_clock import RosClock
from mmedge_ros.sensing.camera.device import CameraParameters
from mmedge_ros.sensing.camera.reader import CameraReader
from mmedge_ros.sensing.camera.source import CameraStream, camera_opener, given_calibration
from mmedge_ros.sensing.capture_control import CaptureControl

# How long the publishing thread waits for a picture before it looks whether it is to end.
_LOOK = 0.5


class CameraNode(Node):
    """Reads in one thread and publishes in another, so that neither holds up the other."""

    def __init__(self, **node_options: Any) -> None:
        super().__init__('camera', **node_options)
        p = declare(self, CameraParameters)
        clock = RosClock(self)
        self._ended = threading.Event()
        self._control = CaptureControl(CAMERA)
        self._reader = CameraReader(
            camera_opener(p, clock, self._ended.wait),
            p,
            self._control,
            clock,
            given_calibration(p),
            self._say,
        )
        self._stream = CameraStream(self._reader, self._ended)
        self._outputs = CameraOutputs(self, p)
        self._diagnostics = Diagnostics(
            self,
            self,
            self._figures,
            self._reader.is_failing,
            p.device or p.source,
        )
        self._configurations = ConfigurationInput(
            self, self._control.schedule.add, lease=self._control.lease
        )
        self._thread = threading.Thread(target=self._publish, name='publisher', daemon=True)
        self._stream.start()
        self._thread.start()

    def stop(self) -> None:
        """End both threads."""
        self._stream.stop()
        self._thread.join(2 * _LOOK)
        self._outputs.close()

    def missing(self) -> list[str]:
        """Say what is wrong with the camera."""
        return self._reader.problems()

    def _publish(self) -> None:
        while not self._ended.is_set():
            frame = self._stream.take(_LOOK)
            if frame is not None and self.context.ok():
                self._outputs.publish(frame, self._reader.calibration)

    def _say(self, text: str) -> None:
        if self._reader.is_failing():
            self.get_logger().warning(text)
        else:
            self.get_logger().info(text)

    def _figures(self) -> dict[str, object]:
        device = self._reader.device
        return {
            'device': device.name if device is not None else '',
            'format': str(device.format) if device is not None else '',
            'rate': f'{self._reader.rate:.2f}',
            'calibrated': self._reader.calibration is not None,
            **asdict(self._reader.counts),
            **self._outputs.figures(),
        }


main = program(CameraNode)


if __name__ == '__main__':
    main()
