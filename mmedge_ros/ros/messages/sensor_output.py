"""Pictures and calibrations as messages."""

from __future__ import annotations

import array

import numpy as np
from numpy.typing import NDArray
from sensor_msgs.msg import CameraInfo, CompressedImage, Image

from mmedge_ros.geometry.projection import CameraModel
from mmedge_ros.ros.messages.conversions import header
from mmedge_ros.sensing.camera.device import CameraFrame


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
