"""Pictures and calibrations of a driver as messages.

Raw pictures go through a ring to encoders on this machine, and as Image to everybody else.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import numpy as np
from rclpy.node import Node
from rclpy.publisher import Publisher
from sensor_msgs.msg import CameraInfo, CompressedImage, Image
from std_msgs.msg import Header

from mmedge_ros import msg
from mmedge_ros.geometry.projection import CameraModel
from mmedge_ros.replay import BagError
from mmedge_ros.replay.wire_formats import picture_from_bytes
from mmedge_ros.ros.messages import names, qos
from mmedge_ros.ros.messages.conversions import header
from mmedge_ros.ros.messages.sensor_input import doorbell_topic
from mmedge_ros.ros.messages.sensor_output import to_camera_info, to_compressed_image, to_image
from mmedge_ros.sensing.camera.device import CameraFrame, CameraParameters
from mmedge_ros.transport import TransportError
from mmedge_ros.transport.picture_ring import RingWriter, WriterCounts
from mmedge_ros.transport.ring_layout import Bytes, SlotHeader


class PictureOutput:
    """Writes each picture once into a ring and rings; an Image is only made where one is taken.

    Used by one thread. Where the ring cannot be had, the publisher of its messages goes, and
    encoders take the Image.

    :param images: the publisher of Image
    :param patience: how long a picture waits for a free slot before an unread one is dropped, s
    """

    def __init__(self, node: Node, images: Publisher, patience: float = 0.0) -> None:
        self._node = node
        self._images = images
        self._patience = patience
        self._writer: RingWriter | None = None
        self._doorbell: Publisher | None = node.create_publisher(
            msg.PictureSlot, doorbell_topic(images.topic_name), qos.SENSOR
        )

    def publish(
        self, data: Bytes, about: SlotHeader, frame_id: str, image: Callable[[], Any]
    ) -> None:
        """Publish a picture.

        :param data: its bytes (N,)
        :param image: makes the Image, or its bytes
        """
        if self._doorbell is not None and self._doorbell.get_subscription_count():
            try:
                self._ring(data, about, header(about.stamp_ns, frame_id))
            except TransportError as err:
                self._give_up(str(err))
        if self._images.get_subscription_count():
            self._images.publish(image())

    def publish_serialised(self, raw: bytes) -> None:
        """Publish an Image as it was recorded."""
        try:
            picture = picture_from_bytes(raw)
        except BagError as err:
            self._give_up(str(err))
            self._images.publish(raw)
            return
        about = SlotHeader(*picture.about)
        self.publish(picture.data, about, picture.frame_id, lambda: raw)

    def figures(self) -> dict[str, object]:
        """Return counts for the node's diagnostics."""
        counts = self._writer.counts if self._writer is not None else WriterCounts()
        return {f'ring_{name}': count for name, count in asdict(counts).items()}

    def close(self) -> None:
        """Let go of the shared memory."""
        if self._writer is not None:
            self._writer.close()
            self._writer = None

    def _ring(self, data: Bytes, about: SlotHeader, top: Header) -> None:
        if self._writer is None or self._writer.slot_bytes < data.size:
            counts = self._writer.counts if self._writer is not None else None
            self.close()
            self._writer = RingWriter(data.size, counts=counts)
        written = self._writer.write(data, about, self._patience)
        if written is None or self._doorbell is None:
            return
        self._doorbell.publish(
            msg.PictureSlot(
                header=top,
                ring=self._writer.name,
                slot=written.slot,
                sequence=written.sequence,
                width=about.width,
                height=about.height,
                encoding=about.encoding,
            )
        )

    def _give_up(self, reason: str) -> None:
        if self._doorbell is None:
            return
        self._node.get_logger().warning(f'pictures go as Image, which costs more: {reason}')
        self._node.destroy_publisher(self._doorbell)
        self._doorbell = None
        self.close()


class CameraOutputs:
    """The publishers of a camera: raw or compressed pictures, and camera_info beside them."""

    def __init__(self, node: Node, parameters: CameraParameters) -> None:
        self._frame_id = parameters.frame_id
        kind, topic = (
            (CompressedImage, names.CAMERA_IMAGE_COMPRESSED)
            if parameters.compressed
            else (Image, names.CAMERA_IMAGE)
        )
        self._pictures = node.create_publisher(kind, topic, **qos.overridable(qos.SENSOR))
        self._raw = None if parameters.compressed else PictureOutput(node, self._pictures)
        self._calibration = node.create_publisher(
            CameraInfo, names.CAMERA_INFO, **qos.overridable(qos.SENSOR)
        )

    def publish(self, frame: CameraFrame, calibration: CameraModel | None) -> None:
        """Publish a picture, and its calibration where there is one."""
        if calibration is not None:
            self._calibration.publish(to_camera_info(calibration, frame.stamp_ns, self._frame_id))
        if isinstance(frame.image, bytes):
            self._pictures.publish(to_compressed_image(frame, self._frame_id))
        elif self._raw is not None:
            picture = np.ascontiguousarray(frame.image)
            height, width = picture.shape[:2]
            self._raw.publish(
                picture.reshape(-1),
                SlotHeader(frame.stamp_ns, width, height, 'bgr8', 3 * width),
                self._frame_id,
                lambda: to_image(picture, frame.stamp_ns, self._frame_id),
            )

    def figures(self) -> dict[str, object]:
        """Return counts of the ring, where pictures are raw."""
        return self._raw.figures() if self._raw is not None else {}

    def close(self) -> None:
        """Let go of the shared memory."""
        if self._raw is not None:
            self._raw.close()
