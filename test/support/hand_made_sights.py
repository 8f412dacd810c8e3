"""Pictures with people painted in, and the tracks that name them."""

from __future__ import annotations

import numpy as np

from mmedge_ros.core.data_types import (
    CAMERA,
    NS_PER_S,
    Box,
    Decision,
    Detection,
    DetectionKey,
    Track,
)
from mmedge_ros.encoding.recent_pictures import KeptPicture

STREET = (640, 480)


def standing(x: float = 100.0, height: float = 60.0) -> Box:
    """A box whose feet are on one line; half as wide as high."""
    return Box(x, 300.0 - height, x + height / 2, 300.0)


def painted(*boxes: Box) -> np.ndarray:
    """A picture in which each box is striped, so that it has something to be sharp about."""
    picture = np.full((STREET[1], STREET[0], 3), 90, np.uint8)
    picture[:200] = 150
    for number, box in enumerate(boxes):
        part = picture[round(box.y0) : round(box.y1), round(box.x0) : round(box.x1)]
        part[:, :] = (40, 40, 200 - 60 * (number % 3))
        part[:, ::4] = 250
    return picture


def kept(
    sequence: int, seconds: float, *boxes: Box, others: tuple[Detection, ...] = ()
) -> KeptPicture:
    """An encoded picture with people at these boxes."""
    detections = tuple(Detection(box, 0.9, 'person') for box in boxes)
    image = painted(*boxes, *(one.box for one in others))
    stamp_ns = round(seconds * NS_PER_S)
    return KeptPicture(sequence, image, detections, stamp_ns, 'medium', others)


def sighted(number: int, sequence: int, place: int, box: Box) -> Track:
    """A person whose newest detection is the one at a place in a unit."""
    return Track(
        number,
        'person',
        0.9,
        box,
        np.array([10.0, float(number), 0.0]),
        np.array([1.0, 0.0, 0.0]),
        np.eye(6),
        (CAMERA,),
        0.0,
        detection=DetectionKey(sequence, place),
    )


def decided(seconds: float, *tracks: Track) -> Decision:
    """A decision with these tracks, places in odom."""
    stamp_ns = round(seconds * NS_PER_S)
    return Decision(stamp_ns, stamp_ns, 'odom', tracks, {}, (), (), (), (), (), ())
