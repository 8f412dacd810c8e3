"""What a candidate can be refined from: a stored activation, or its thumbnail."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray

from mmedge_lab.rivals.reminisce.crop_encoder import Blobs, CropEncoder
from mmedge_lab.training.crop_set import CropSet, box_of_object
from mmedge_ros.encoding.crops import as_input
from mmedge_ros.memory import int4
from mmedge_ros.memory.moment import Vectors
from mmedge_ros.memory.views import MARGIN, object_thumbnail, picture_of

THUMBNAIL, ACTIVATION = 'thumbnail', 'activation in int4'
_TIMED = 200


class Refined(NamedTuple):
    """Vectors (N, D) of the deeper exit, and what an item takes: bytes, and ms to refine it."""

    vectors: Vectors
    bytes: float
    ms: float


def refinements(
    encoder: CropEncoder, crops: CropSet, exit_: int, until: int
) -> dict[str, Refined]:
    """Return what crops that left at an exit become, by what they are refined from.

    :raises EncodingError: if a stage fails
    """
    held = encoder.activations(encoder.blobs(crops), exit_)
    shape, rows = held.shape[1:], held.reshape(len(held), -1)
    codes = int4.packed(rows)
    thumbnails = [object_thumbnail(crop, box_of_object(0.0)) for crop in crops.crops]

    def from_codes(some: NDArray[np.uint8]) -> Blobs:
        return int4.unpacked(some, rows.shape[1]).reshape(-1, *shape)

    def from_thumbnails(some: Sequence[bytes]) -> Blobs:
        return np.concatenate([_input(encoder, one) for one in some])

    size = float(np.mean(list(map(len, thumbnails))))
    return {
        THUMBNAIL: _refined(encoder, (0, until), thumbnails, from_thumbnails, size),
        ACTIVATION: _refined(encoder, (exit_, until), codes, from_codes, codes.shape[1]),
    }


def _input(encoder: CropEncoder, thumbnail: bytes) -> Blobs:
    """Return a thumbnail as an input, its border continued as far as the input's margin."""
    picture = picture_of(thumbnail)
    assert picture is not None
    form = encoder.description.form
    missing = max(form.margin - MARGIN, 0.0) / (1.0 + 2.0 * MARGIN)
    y, x = (round(missing * side) for side in picture.shape[:2])
    around = cv2.copyMakeBorder(picture, y, y, x, x, cv2.BORDER_REPLICATE)
    return as_input(np.asarray(around, np.uint8), form)


def _refined(
    encoder: CropEncoder,
    way: tuple[int, int],
    stored: Any,
    as_held: Callable[[Any], Blobs],
    size: float,
) -> Refined:
    """Resume from what is stored of N items; the time is that of one."""
    vectors = encoder.resumed(as_held(stored), *way)
    seconds = []
    for place in range(min(_TIMED, len(stored))):
        begun = time.thread_time()
        encoder.resumed(as_held(stored[place : place + 1]), *way)
        seconds.append(time.thread_time() - begun)
    return Refined(vectors, size, 1e3 * float(np.median(seconds)))
