"""Annotated pictures as messages."""

from __future__ import annotations

import array

import numpy as np
from numpy.typing import NDArray
from sensor_msgs.msg import Image

from mmedge_ros.ros.messages.conversions import header


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
