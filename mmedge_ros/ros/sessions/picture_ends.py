"""A camera and the input of an encoder, to measure what a raw picture costs between them.

As a program one of the two: ``python -m mmedge_ros.ros.sessions.picture_ends ROLE JSON``. It
prints a line when pictures arrive the way they are to go; each line on its standard input ends a
measurement and begins another, and its figures are a line of JSON.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import rclpy
from rclpy.node import Node
from sensor_msgs.msg import Image

from mmedge_ros.ros.lean_executor import node_executor
from mmedge_ros.ros.messages import names, qos
from mmedge_ros.ros.messages.conversions import from_time
from mmedge_ros.ros.picture_input import PictureInput
from mmedge_ros.ros.picture_output import CameraOutputs
from mmedge_ros.sensing.camera.device import CameraFrame, CameraParameters
from mmedge_ros.sensing.camera.image import decode_image

CAMERA, ENCODER = 'camera', 'encoder'
RING, IMAGE = 'ring', 'image'
_WARM = 20


@dataclass(frozen=True)
class PictureWay:
    """Raw pictures of one size, sent one way (``ring`` or ``image``)."""

    way: str
    width: int
    height: int
    rate: float
    namespace: str


@dataclass
class _Figures:
    """What one end did since it was last queried."""

    pictures: int = 0
    latencies_ms: list[float] = field(default_factory=list)
    begun: float = field(default_factory=time.process_time)

    def report(self) -> str:
        return json.dumps({**asdict(self), 'processor_s': time.process_time() - self.begun})


class _End:
    """One end with a node, whose figures are printed for each line of standard input."""

    def __init__(self, name: str, of: PictureWay) -> None:
        self.node = Node(name, namespace=of.namespace)
        self.figures = _Figures()
        self.is_over = False
        threading.Thread(target=self._answer, daemon=True).start()

    def _answer(self) -> None:
        for _ in sys.stdin:
            figures, self.figures = self.figures, _Figures()
            print(figures.report(), flush=True)
        self.is_over = True


def _send(of: PictureWay) -> None:
    end = _End(CAMERA, of)
    outputs = CameraOutputs(end.node, CameraParameters())
    # Several, as a camera has: one alone would stay in the cache of the processor.
    shape = (of.height, of.width, 3)
    pictures = [np.full(shape, number, np.uint8) for number in range(8)]
    print('ready', flush=True)
    due = time.monotonic()
    number = 0
    while not end.is_over:
        due += 1.0 / of.rate
        time.sleep(max(due - time.monotonic(), 0.0))
        picture = pictures[number % len(pictures)]
        number += 1
        stamp_ns = time.time_ns()
        outputs.publish(
            CameraFrame(stamp_ns, stamp_ns, 'bgr8', picture, of.width, of.height), None
        )
        end.figures.pictures += 1
    outputs.close()


def _receive(of: PictureWay) -> None:
    end = _End(ENCODER, of)
    left = _WARM
    pictures: PictureInput | None = None

    def take(message: Any, _: Any) -> None:
        nonlocal left
        decode_image(message)
        late_ns = time.time_ns() - from_time(message.header.stamp)
        end.figures.latencies_ms.append(late_ns / 1e6)
        end.figures.pictures += 1
        if left and (pictures is None or pictures.images is None):
            left -= 1
            if not left:
                print('ready', flush=True)

    if of.way == RING:
        pictures = PictureInput(end.node, take)
    else:
        end.node.create_subscription(Image, names.CAMERA_IMAGE, take, qos.SENSOR)
    executor = node_executor()
    executor.add_node(end.node)
    while not end.is_over:
        executor.spin_once(timeout_sec=0.1)
    if pictures is not None:
        pictures.close()


def main() -> None:
    """Run one end until standard input ends."""
    role, given = sys.argv[1:]
    rclpy.init()
    of = PictureWay(**json.loads(given))
    (_send if role == CAMERA else _receive)(of)
    rclpy.try_shutdown()


if __name__ == '__main__':
    main()
