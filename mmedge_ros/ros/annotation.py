"""Tracks drawn into the picture they belong to."""

from __future__ import annotations

import array

import cv2
import numpy as np
from numpy.typing import NDArray
from sensor_msgs.msg import Image

from mmedge_ros import data_types as core
from mmedge_ros.ros.conversions import header
from mmedge_ros.ros.markers import colour_of


def annotate(picture: NDArray[np.uint8], decision: core.Decision) -> NDArray[np.uint8]:
    """Return a copy (H, W, 3) BGR with boxes, ids, ranges and speeds."""
    drawn = picture.copy()
    for track in decision.tracks:
        if track.box is None:
            continue
        red, green, blue = (int(255 * c) for c in colour_of(track.id))
        colour = (blue, green, red)
        x0, y0, x1, y1 = (round(v) for v in track.box)
        cv2.rectangle(drawn, (x0, y0), (x1, y1), colour, 2)
        distance = float(np.linalg.norm(track.position))
        speed = float(np.linalg.norm(track.velocity))
        text = f'{track.id}  {distance:.1f} m  {speed:.1f} m/s'
        cv2.putText(drawn, text, (x0, max(y0 - 6, 12)), cv2.FONT_HERSHEY_SIMPLEX, 0.45, colour, 1)
    return drawn


def to_image(picture: NDArray[np.uint8], stamp_ns: int, frame_id: str) -> Image:
    """Make a bgr8 message; the bytes are copied once."""
    data = array.array('B')
    data.frombytes(np.ascontiguousarray(picture).tobytes())
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
