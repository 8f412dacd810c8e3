"""Tracks drawn into the picture they belong to."""

from __future__ import annotations

import array

import cv2
import numpy as np
from numpy.typing import NDArray
from sensor_msgs.msg import Image

from mmedge_ros import data_types as core
from mmedge_ros.data_types import NS_PER_S
from mmedge_ros.ros.conversions import header
from mmedge_ros.ros.markers import colour_of

# Tracks this much older or newer than a picture, in seconds, say nothing about it.
_LONGEST_PREDICTION = 1.0


def annotate(
    picture: NDArray[np.uint8], stamp_ns: int, decision: core.Decision
) -> NDArray[np.uint8]:
    """Return a copy (H, W, 3) BGR with boxes, ids, ranges and speeds.

    Boxes are moved from the state time of the tracks to the picture's ``stamp_ns``.
    """
    drawn = picture.copy()
    dt = (stamp_ns - decision.state_ns) / NS_PER_S
    if abs(dt) > _LONGEST_PREDICTION:
        return drawn
    for track in decision.tracks:
        if track.box is None:
            continue
        red, green, blue = (int(255 * c) for c in colour_of(track.id))
        colour = (blue, green, red)
        x0, y0, x1, y1 = _box_at(track, dt, picture.shape)
        cv2.rectangle(drawn, (x0, y0), (x1, y1), colour, 2)
        distance = float(np.linalg.norm(track.position))
        speed = float(np.linalg.norm(track.velocity))
        text = f'{track.id}  {distance:.1f} m  {speed:.1f} m/s'
        cv2.putText(drawn, text, (x0, max(y0 - 6, 12)), cv2.FONT_HERSHEY_SIMPLEX, 0.45, colour, 1)
    return drawn


def _box_at(track: core.Track, dt: float, shape: tuple[int, ...]) -> list[int]:
    """Corners in whole pixels, kept where OpenCV can draw them."""
    corners = np.reshape(track.box or (0.0,) * 4, (2, 2)) + np.multiply(track.box_velocity, dt)
    height, width = shape[:2]
    kept = np.clip(corners, (-width, -height), (2 * width, 2 * height))
    return [int(v) for v in np.rint(kept).ravel()]


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
