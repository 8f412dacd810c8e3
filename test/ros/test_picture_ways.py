"""Raw pictures reach an encoder through the ring, or as Image, each of them once."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from live_graph import wait_until
from rclpy.node import Node
from rclpy.serialization import serialize_message
from sensor_msgs.msg import Image

from mmedge_ros.replay import BagError
from mmedge_ros.replay.wire_formats import picture_from_bytes
from mmedge_ros.ros.lean_executor import LeanExecutor
from mmedge_ros.ros.messages import names, qos
from mmedge_ros.ros.messages.conversions import from_time
from mmedge_ros.ros.messages.sensor_output import to_image
from mmedge_ros.ros.picture_input import PictureInput
from mmedge_ros.ros.picture_output import CameraOutputs
from mmedge_ros.sensing.camera.device import CameraFrame, CameraParameters
from mmedge_ros.sensing.camera.image import decode_image
from mmedge_ros.transport import TransportError, picture_ring

SECOND = 1_000_000_000
PERIOD_NS = SECOND // 50


class Driver:
    """A camera in this process that takes a picture whenever it is told to."""

    def __init__(self, name: str) -> None:
        self.node = Node(name)
        self.outputs = CameraOutputs(self.node, CameraParameters())

    def shoot(self, stamp_ns: int, side: int = 32) -> None:
        picture = np.full((side, side, 3), stamp_ns // PERIOD_NS % 256, np.uint8)
        self.outputs.publish(CameraFrame(stamp_ns, stamp_ns, 'bgr8', picture, side, side), None)

    def end(self) -> None:
        self.outputs.close()
        self.node.destroy_node()


class ForeignDriver:
    """Publishes Image and knows of no ring."""

    def __init__(self) -> None:
        self.node = Node('foreign_driver')
        self._images = self.node.create_publisher(Image, names.CAMERA_IMAGE, qos.SENSOR)

    def shoot(self, stamp_ns: int) -> None:
        picture = np.full((32, 32, 3), stamp_ns // PERIOD_NS % 256, np.uint8)
        self._images.publish(to_image(picture, stamp_ns, 'lens'))

    def end(self) -> None:
        self.node.destroy_node()


class Encoder:
    """The input of an encoder, spun as its node would be."""

    def __init__(self) -> None:
        self.node = Node('listener')
        self.stamps: list[int] = []
        self.input = PictureInput(self.node, self._on_picture)
        self.executor = LeanExecutor()
        self.executor.add_node(self.node)
        self._next_ns = SECOND

    def _on_picture(self, message: Any, info: Any) -> None:
        stamp_ns = from_time(message.header.stamp)
        assert (decode_image(message) == stamp_ns // PERIOD_NS % 256).all()
        assert 'source_timestamp' in info
        self.stamps.append(stamp_ns)

    @property
    def takes_images(self) -> bool:
        return self.input.images is not None

    def figure(self, name: str) -> int:
        return int(str(self.input.figures()[f'ring_{name}']))

    def meet(self, driver: Any) -> None:
        """Let a driver take pictures until one of them has come."""
        begin = len(self.stamps)
        self.watch(driver, lambda: len(self.stamps) > begin)

    def watch(self, driver: Any, condition: Any, **options: Any) -> list[int]:
        """Let a driver take a picture every now and then until the condition holds.

        :return: the stamps of its pictures, the last of which has come
        """
        sent: list[int] = []
        shot_at = 0.0

        def shoot() -> None:
            nonlocal shot_at
            if time.monotonic() - shot_at > 0.02:
                shot_at = time.monotonic()
                self._next_ns += PERIOD_NS
                sent.append(self._next_ns)
                driver.shoot(self._next_ns, **options)

        wait_until(self.executor, condition, meanwhile=shoot)
        self.stay(lambda: not sent or sent[-1] in self.stamps)
        return sent

    def stay(self, condition: Any) -> None:
        wait_until(self.executor, condition)

    def end(self) -> None:
        self.input.close()
        self.executor.shutdown()
        self.node.destroy_node()


@pytest.fixture
def encoder(ros: None) -> Iterator[Encoder]:
    found = Encoder()
    yield found
    found.end()


@pytest.fixture
def driver(ros: None) -> Iterator[Driver]:
    found = Driver('driver')
    yield found
    found.end()


def test_pictures_move_to_the_ring_and_none_is_lost_or_doubled_on_the_way(
    encoder: Encoder, driver: Driver
) -> None:
    assert encoder.takes_images
    encoder.meet(driver)
    begin = len(encoder.stamps)
    sent = encoder.watch(driver, lambda: not encoder.takes_images)
    read = encoder.figure('read')
    sent += encoder.watch(driver, lambda: encoder.figure('read') > read + 20)
    assert encoder.stamps[begin:] == sent
    assert driver.outputs.figures()['ring_dropped'] == 0
    assert (encoder.figure('missed'), encoder.figure('torn')) == (0, 0)


def test_when_the_driver_goes_a_foreign_one_is_heard_and_back_again(
    encoder: Encoder, driver: Driver
) -> None:
    encoder.watch(driver, lambda: not encoder.takes_images)
    driver.end()
    foreign = ForeignDriver()
    try:
        encoder.stay(lambda: encoder.takes_images)
        encoder.meet(foreign)
        begin = len(encoder.stamps)
        sent = encoder.watch(foreign, lambda: len(encoder.stamps) > begin + 10)
        assert encoder.stamps[begin:] == sent
    finally:
        foreign.end()
    other = Driver('other_driver')
    try:
        encoder.watch(other, lambda: not encoder.takes_images)
    finally:
        other.end()
    assert len(set(encoder.stamps)) == len(encoder.stamps)


def test_a_ring_that_may_not_be_entered_is_no_loss(
    encoder: Encoder, driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(picture_ring, 'SharedSegment', _refuse_guests(picture_ring.SharedSegment))
    encoder.meet(driver)
    begin = len(encoder.stamps)
    sent = encoder.watch(driver, lambda: len(encoder.stamps) > begin + 15)
    assert encoder.stamps[begin:] == sent
    assert encoder.takes_images
    assert encoder.figure('read') == 0


def _refuse_guests(kind: Any) -> Any:
    def make(name: str = '', size: int = 0) -> Any:
        if name:
            raise TransportError("another user's")
        return kind(name, size)

    return make


def test_without_room_for_a_ring_pictures_go_as_image(
    encoder: Encoder, driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any, **__: Any) -> Any:
        raise TransportError('no room')

    monkeypatch.setattr(picture_ring.RingWriter, '__init__', refuse)
    encoder.watch(driver, lambda: len(encoder.stamps) > 5)
    assert encoder.takes_images
    assert driver.node.count_publishers('/camera/image/slot') == 0


@pytest.mark.parametrize(
    ('frame_id', 'encoding'), [('', 'mono8'), ('lens', 'bgr8'), ('optical_frame', 'yuv422_yuy2')]
)
def test_a_serialised_picture_is_read_without_making_a_message(
    frame_id: str, encoding: str
) -> None:
    message = Image(height=2, width=3, step=12, encoding=encoding, is_bigendian=1)
    message.header.frame_id = frame_id
    message.header.stamp.sec, message.header.stamp.nanosec = 7, 9
    message.data = list(range(24))
    raw = serialize_message(message)
    picture = picture_from_bytes(raw)
    assert picture.about == (7 * SECOND + 9, 3, 2, encoding, 12, True)
    assert picture.frame_id == frame_id
    assert picture.data.tolist() == list(range(24))
    for length in range(len(raw) - 4):
        with pytest.raises(BagError):
            picture_from_bytes(raw[:length])
