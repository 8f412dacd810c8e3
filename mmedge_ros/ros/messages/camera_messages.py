"""Pictures and calibrations of a camera as messages."""

from __future__ import annotations

import array

import numpy as np
from numpy.typing import NDArray
from rclpy.node import Node
from sensor_msgs.msg import CameraInfo, CompressedImage, Image

from mmedge_ros.geometry.projection import CameraModel
from mmedge_ros.ros.messages import names, qos
from mmedge_ros.ros.messages.conversions import header
from mmedge_ros.ros.picture_output import PictureOutput
from mmedge_ros.sensing.camera.device import CameraFrame, CameraParameters
from mmedge_ros.transport.ring_layout import SlotHeader


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


def to_compressed_image(frame: CameraFrame, frame_id: str) -> CompressedImage:
    """Make a message of a compressed picture."""
    message = CompressedImage(header=header(frame.stamp_ns, frame_id), format=frame.encoding)
    message.data = array.array('B', frame.image)
    return message


def to_camera_info(camera: CameraModel, stamp_ns: int, frame_id: str) -> CameraInfo:
    """Make a message of a calibration; CameraModel.from_camera_info reads it back."""
    k = np.asarray(camera.k, np.float64)
    # camera_info has no name for a lens without distortion.
    model = 'plumb_bob' if camera.model == 'none' else camera.model
    return CameraInfo(
        header=header(stamp_ns, frame_id),
        height=camera.height,
        width=camera.width,
        distortion_model=model,
        d=[float(d) for d in camera.d] or [0.0] * 5,
        k=k.reshape(-1),
        r=np.eye(3).reshape(-1),
        p=np.hstack([k, np.zeros((3, 1))]).reshape(-1),
    )


def to_image(picture: NDArray[np.uint8], stamp_ns: int, frame_id: str) -> Image:
    """Make a bgr8 message; the bytes are copied once."""
    data = array.array('B')
    data.frombytes(np.ascontiguousarray(picture).data)
    height, width = picture.shape[:2]
    message = Image(
        header=header(stamp_ns, frame_id),
        height=height,
        width=width,
        encoding='bgr8',
        is_bigendian=0,
        step=3 * width,
    )
    message.data = data
    return message
