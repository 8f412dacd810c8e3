"""What a candidate can be refined from: a stored activation, its thumbnail, or the picture."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray

from mmedge_lab.rivals.reminisce.crop_encoder import CropEncoder
from mmedge_lab.training.crop_set import CropSet, box_of_object
from mmedge_ros.encoding.detector import Image
from mmedge_ros.memory import int4
from mmedge_ros.memory.moment import Vectors
from mmedge_ros.memory.views import object_thumbnail, picture_of

INT4, FLOAT16, PICTURE = 'activation in int4', 'activation in float16', 'picture'
THUMBNAIL, WIDER = 'thumbnail', 'thumbnail as wide as the input'
_TIMED = 200
# How much larger than an object its thumbnail is on each side, as `object_thumbnail` cuts it.
_SHOWN = 0.1


class Refined(NamedTuple):
    """Vectors (N, D) of every deeper exit, and what an item takes: bytes, and ms to refine it."""

    vectors: dict[int, Vectors]
    bytes: float
    ms: float


def refinements(encoder: CropEncoder, crops: CropSet, exit_: int) -> dict[str, Refined]:
    """Return what crops that left at an exit become, by what they are refined from.

    :raises EncodingError: if a stage fails
    """
    blobs = encoder.blobs(crops)
    held = encoder.activations(blobs, exit_)
    shape, rows = held.shape[1:], held.reshape(len(held), -1)
    codes, halves = int4.packed(rows), held.astype(np.float16)

    def from_int4(some: NDArray[np.uint8]) -> NDArray[np.float32]:
        return int4.unpacked(some, rows.shape[1]).reshape(-1, *shape)

    def from_float16(some: NDArray[np.float16]) -> NDArray[np.float32]:
        return some.astype(np.float32)

    margin = max(encoder.description.form.margin, _SHOWN)
    return {
        THUMBNAIL: _from_thumbnails(encoder, crops, _SHOWN),
        WIDER: _from_thumbnails(encoder, crops, margin),
        INT4: _refined(encoder, exit_, codes, from_int4, codes.shape[1]),
        FLOAT16: _refined(encoder, exit_, halves, from_float16, halves[0].nbytes),
        PICTURE: _refined(encoder, 0, blobs, lambda some: some, 0),
    }


def _from_thumbnails(encoder: CropEncoder, crops: CropSet, shown: float) -> Refined:
    """Refine from thumbnails that show so much more than the object on each side."""
    # The margin of a thumbnail is on top of that of the box it is given.
    box = box_of_object((shown - _SHOWN) / (1.0 + 2.0 * _SHOWN))
    thumbnails = [object_thumbnail(crop, box) for crop in crops.crops]
    missing = max(encoder.description.form.margin - shown, 0.0) / (1.0 + 2.0 * shown)

    def inputs(some: Sequence[bytes]) -> NDArray[np.float32]:
        pictures = [picture_of(one) for one in some]
        return encoder.inputs([_widened(p, missing) for p in pictures if p is not None])

    return _refined(encoder, 0, thumbnails, inputs, float(np.mean(list(map(len, thumbnails)))))


def _widened(thumbnail: Image, missing: float) -> Image:
    """Return a thumbnail with a share of its size more on each side, as its border is."""
    y, x = (round(missing * side) for side in thumbnail.shape[:2])
    around = cv2.copyMakeBorder(thumbnail, y, y, x, x, cv2.BORDER_REPLICATE)
    return np.asarray(around, np.uint8)


def _refined(
    encoder: CropEncoder,
    exit_: int,
    stored: Any,
    as_held: Callable[[Any], NDArray[np.float32]],
    size: float,
) -> Refined:
    """Resume from what is stored of N items; the time is that of one, to the last head."""
    vectors = encoder.resumed(as_held(stored), exit_)
    seconds = []
    for place in range(min(_TIMED, len(stored))):
        begun = time.thread_time()
        encoder.resumed(as_held(stored[place : place + 1]), exit_, encoder.exits - 1)
        seconds.append(time.thread_time() - begun)
    return Refined(vectors, size, 1e3 * float(np.median(seconds)))
