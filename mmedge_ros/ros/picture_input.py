"""The input of an encoder: one topic; raw pictures from the ring of a driver on this machine."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from rclpy.node import Node
from sensor_msgs.msg import Image

from mmedge_ros import msg
from mmedge_ros.ros.input_watch import InputWatch
from mmedge_ros.ros.messages import names, qos
from mmedge_ros.ros.messages.conversions import from_time
from mmedge_ros.ros.messages.sensor_input import doorbell_topic, input_topic
from mmedge_ros.ros.ros_clock import steady_clock
from mmedge_ros.ros.sensor_subscription import SensorSubscription
from mmedge_ros.transport import TransportError
from mmedge_ros.transport.picture_ring import ReaderCounts, RingReader

_LOOK = 0.5
# Stamps that are remembered for when pictures come both ways: seconds of them.
_REMEMBERED = 64


class PictureInput:
    """Hands on each picture once, whichever way it comes.

    It begins with both ways open. When a picture has come both ways, every earlier Image has
    come as well, and the subscription to Image ends; so the driver makes none any more. It is
    opened again when the driver or its ring has gone, or cannot be read.

    :param on_picture: called with an Image, and with when its message was sent and received
    """

    def __init__(self, node: Node, on_picture: Callable[[Any, Any], None]) -> None:
        self._node = node
        self._on_picture = on_picture
        self._reader: RingReader | None = None
        self._counts = ReaderCounts()
        self._refused = ''
        self._is_both = False
        # Newest stamps that came as Image, and through the ring.
        self._image_stamps: deque[int] = deque(maxlen=_REMEMBERED)
        self._ring_stamps: deque[int] = deque(maxlen=_REMEMBERED)
        self._bell = doorbell_topic(node.resolve_topic_name(names.CAMERA_IMAGE))
        node.create_subscription(msg.PictureSlot, self._bell, self._on_slot, qos.SENSOR)
        self._timer = node.create_timer(_LOOK, self._follow, clock=steady_clock())
        self.images: SensorSubscription | None = self._subscribe()
        self.profile = self.images.profile

    def figures(self) -> dict[str, object]:
        """Return counts for the node's diagnostics."""
        counts = self._reader.counts if self._reader is not None else self._counts
        return {f'ring_{name}': count for name, count in asdict(counts).items()}

    def loss(self) -> str:
        """Say how much of what comes as Image is lost on the way; '' where little is."""
        return self.images.loss() if self.images is not None else ''

    def close(self) -> None:
        """Let go of the ring."""
        if self._reader is not None:
            self._counts = self._reader.counts
            self._reader.close()
            self._reader = None

    def _subscribe(self) -> SensorSubscription:
        self._is_both = False
        # A recording that is played again has the same stamps.
        self._image_stamps.clear()
        self._ring_stamps.clear()
        return SensorSubscription(self._node, Image, names.CAMERA_IMAGE, self._on_image)

    def _on_image(self, message: Any, info: Any) -> None:
        stamp_ns = from_time(message.header.stamp)
        if stamp_ns in self._ring_stamps:
            self._is_both = True
            return
        self._image_stamps.append(stamp_ns)
        self._on_picture(message, info)

    def _on_slot(self, message: Any, info: Any) -> None:
        if message.ring == self._refused:
            return
        try:
            picture = self._read(message)
        except TransportError as err:
            self._node.get_logger().warning(
                f'picture not taken from the ring: {err}', throttle_duration_sec=30.0
            )
            self._fall_back()
            return
        if picture is None:
            return
        stamp_ns = from_time(message.header.stamp)
        if stamp_ns in self._image_stamps:
            self._is_both = True
            return
        self._ring_stamps.append(stamp_ns)
        self._on_picture(picture, info)

    def _read(self, message: Any) -> Image | None:
        """Copy a picture from its slot; None if the slot has a newer one."""
        if self._reader is None or self._reader.name != message.ring:
            self.close()
            try:
                self._reader = RingReader(message.ring, self._counts)
            except TransportError:
                # Of another machine, or closed to us: it will not open by trying.
                self._refused = message.ring
                raise
        copied = self._reader.copy(message.slot, message.sequence)
        if copied is None:
            return None
        about, data = copied
        picture = Image(
            header=message.header,
            height=about.height,
            width=about.width,
            encoding=about.encoding,
            is_bigendian=int(about.is_bigendian),
            step=about.step,
        )
        picture.data = data
        return picture

    def _follow(self) -> None:
        """Close the way of Image when both are open, and open it when the ring has gone."""
        has_ring = (
            self._reader is not None
            and self._reader.is_alive
            and self._node.count_publishers(self._bell) > 0
        )
        if not has_ring:
            self._fall_back()
        elif self._is_both and self.images is not None:
            self.images.close()
            self.images = None

    def _fall_back(self) -> None:
        self.close()
        if self.images is None:
            self.images = self._subscribe()


def unit_input(
    node: Node,
    modality: str,
    transport: str,
    on_unit: Callable[[Any, Any], None],
    watch: InputWatch,
) -> PictureInput | SensorSubscription:
    """Subscribe to a sensor, and have it said when it is silent.

    :param on_unit: called with a message, and with when it was sent and received
    :raises EncodingError: for a modality that is not registered, or a type that is not installed
    """
    topic, kind = input_topic(modality, transport)
    made: PictureInput | SensorSubscription = (
        PictureInput(node, on_unit)
        if kind is Image
        else SensorSubscription(node, kind, topic, on_unit)
    )
    watch.expect(modality, topic, made.profile, kind, made.loss)
    return made
