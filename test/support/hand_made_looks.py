"""Views as the recogniser of the bundle that ships would embed them, made by hand."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import cv2
import hand_made_moments
import numpy as np

from mmedge_ros.encoding.classifier_description import ClassifierDescription, describe_classifier
from mmedge_ros.memory.encoders import MemoryEncoder
from mmedge_ros.memory.moment import MemoryItem, Vectors
from mmedge_ros.memory.spaces import AttributeSpace
from mmedge_ros.memory.views import picture_of

BUNDLE = Path(__file__).resolve().parents[2] / 'models/flight_people'
_SURE = 6.0


def _description() -> ClassifierDescription:
    description = describe_classifier(BUNDLE)
    assert description is not None
    return description


DESCRIPTION = _description()
SPACE = AttributeSpace(DESCRIPTION)
ENCODER = MemoryEncoder(BUNDLE)
HEADER = ENCODER.header
NOTHING = {
    'vector': np.zeros(HEADER.length, np.float32),
    'tap': np.zeros(HEADER.tap_length, np.float32),
}


def look(kind: str, **attributes: str) -> Vectors:
    """The vector of something that is surely this, such as look('person red', bottom='blue')."""
    logits = np.zeros(SPACE.length)
    logits[DESCRIPTION.classes.index(kind)] = _SURE
    begin = len(DESCRIPTION.classes)
    for part, values in DESCRIPTION.attributes.items():
        if part in attributes:
            logits[begin + values.index(attributes[part])] = _SURE
        begin += len(values)
    return SPACE.vectors(logits[None])[0]


def seen(kind: str, track_id: int, seconds: float = 1.0, **changes: Any) -> MemoryItem:
    """A view of something, at a time in the flight and in its recording, s."""
    thumbnail = changes.get('thumbnail', jpeg(30 * track_id))
    made = {
        'label': kind.split()[0],
        'vector': look(kind),
        'tap': tap_of(thumbnail),
        'manifest': HEADER.manifest,
        'bag_offset_ns': int(seconds * 1e9),
        'thumbnail': thumbnail,
    }
    return hand_made_moments.view(track_id, seconds, **{**made, **changes})


@cache
def tap_of(thumbnail: bytes) -> Vectors:
    """What examples are compared by; 0 of what is no picture."""
    picture = picture_of(thumbnail)
    return NOTHING['tap'] if picture is None else ENCODER.look(picture).tap


def jpeg(grey: int, size: tuple[int, int] = (24, 64)) -> bytes:
    """A small picture of one grey; ``size`` is (width, height) in px."""
    picture = np.full((size[1], size[0], 3), grey % 256, np.uint8)
    return bytes(cv2.imencode('.jpg', picture)[1])
