"""The pictures of a recording, read again after a run: a run keeps none."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import cv2
import numpy as np

from mmedge_ros.core.data_types import CAMERA, Unit
from mmedge_ros.pipeline.unit_intake import plausible_stamp
from mmedge_ros.replay.recording import Recording
from mmedge_ros.sensing import SensingError
from mmedge_ros.sensing.camera.image import decode_image
from mmedge_ros.viewing.drawing import Picture


class TimedPicture(NamedTuple):
    """A picture (H, W, 3) uint8 BGR, when it was measured and when it was there to be used."""

    stamp_ns: int
    available_ns: int
    picture: Picture


def recorded_pictures(recording: Recording) -> Iterator[TimedPicture]:
    """Return the pictures by the time they were available; damaged ones are left out."""
    for unit in recording.units():
        shot = _decoded(unit) if unit.modality == CAMERA else None
        if shot is not None:
            yield shot


def pictures_from(
    recording: Recording, instants_ns: Sequence[int]
) -> Iterator[tuple[list[int], TimedPicture]]:
    """Return for each instant the first picture of then or later that can be decoded.

    Only those are decoded, and only one is held at a time.

    :return: pictures, each with the instants it belongs to
    """
    ahead = sorted(instants_ns)
    for unit in recording.units():
        if not ahead:
            return
        if unit.modality != CAMERA or _stamp_ns(unit) < ahead[0]:
            continue
        shot = _decoded(unit)
        if shot is not None:
            reached = [instant for instant in ahead if instant <= shot.stamp_ns]
            ahead = ahead[len(reached) :]
            yield reached, shot


def fitted(picture: Picture, width: int, height: int) -> tuple[Picture, float, tuple[int, int]]:
    """Scale a copy of a picture until it just fits into a size.

    :return: the picture, its scale, and where its upper left corner lies to be in the middle
    """
    tall, wide = picture.shape[:2]
    scale = min(width / wide, height / tall)
    size = (max(1, round(wide * scale)), max(1, round(tall * scale)))
    method = cv2.INTER_AREA if scale < 1.0 else cv2.INTER_LINEAR
    scaled = picture.copy()
    if size != (wide, tall):
        scaled = np.asarray(cv2.resize(picture, size, interpolation=method), np.uint8)
    return scaled, scale, ((width - size[0]) // 2, (height - size[1]) // 2)


def _decoded(unit: Unit) -> TimedPicture | None:
    try:
        picture = decode_image(unit.payload)
    except SensingError:
        return None
    return TimedPicture(_stamp_ns(unit), unit.available_ns, picture)


def _stamp_ns(unit: Unit) -> int:
    is_true = plausible_stamp(unit.stamp_ns, unit.available_ns)
    return unit.stamp_ns if is_true else unit.available_ns
