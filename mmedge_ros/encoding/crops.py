"""Cuts objects out of pictures, in the form in which a classifier wants them."""

from __future__ import annotations

from typing import NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray

from mmedge_ros.core.data_types import Box
from mmedge_ros.encoding import EncodingError
from mmedge_ros.encoding.detector import Image

_NUMBER_OF_CHANNELS = 3


class CropForm(NamedTuple):
    """How crops are made: input = (value / 255 - mean) / deviation, for each colour channel.

    ``size`` is width and height of the input in px. The box is made larger by ``margin`` (share of
    its size) on each side, and stretched to that size; with ``square`` it is made as wide as high
    first, so that proportions are kept.
    """

    size: tuple[int, int]
    mean: tuple[float, float, float] = (0.5, 0.5, 0.5)
    deviation: tuple[float, float, float] = (0.25, 0.25, 0.25)
    rgb: bool = True
    margin: float = 0.1
    square: bool = False


def cut(picture: Image, box: Box, margin: float = 0.0, square: bool = False) -> Image:
    """Return the part of a picture (H, W, 3) that a box with its margin covers, not copied.

    :raises EncodingError: if nothing of it lies in the picture, or the box is none
    """
    height, width = picture.shape[:2]
    if not all(np.isfinite(side) for side in box) or box.width <= 0.0 or box.height <= 0.0:
        raise EncodingError(f'{box} is no box; an object needs a width and a height')
    half = [side * (0.5 + margin) for side in (box.width, box.height)]
    if square:
        half = [max(half)] * 2
    middle = (box.x0 + box.x1) / 2, (box.y0 + box.y1) / 2
    x0, x1 = _pixels(middle[0] - half[0], middle[0] + half[0], width)
    y0, y1 = _pixels(middle[1] - half[1], middle[1] + half[1], height)
    if x0 >= x1 or y0 >= y1:
        raise EncodingError(f'{box} lies outside of a picture of {width} x {height} px')
    return picture[y0:y1, x0:x1]


def crop_input(picture: Image, box: Box, form: CropForm) -> NDArray[np.float32]:
    """Return an object of a picture (H, W, 3) BGR as the input (1, 3, h, w) of a classifier.

    :raises EncodingError: if nothing of the box lies in the picture
    """
    return as_input(cut(picture, box, form.margin, form.square), form)


def as_input(crop: Image, form: CropForm) -> NDArray[np.float32]:
    """Return a crop (H, W, 3) BGR of any size as the input (1, 3, h, w) of a classifier.

    :raises EncodingError: for another shape or type
    """
    if crop.dtype != np.uint8 or crop.ndim != 3 or crop.shape[2] != _NUMBER_OF_CHANNELS:
        raise EncodingError(
            f'a crop of shape {crop.shape} and type {crop.dtype}; it must be (height, width, 3) '
            'uint8 in BGR order'
        )
    if not crop.size:
        raise EncodingError('a crop without a pixel; cut it from inside the picture')
    pixels = resized(crop, form.size)
    planes = pixels[:, :, ::-1] if form.rgb else pixels
    scale = 1.0 / (255.0 * np.array(form.deviation, np.float32))
    shift = np.array(form.mean, np.float32) / np.array(form.deviation, np.float32)
    values = planes.astype(np.float32) * scale - shift
    return np.ascontiguousarray(values.transpose(2, 0, 1)[None])


def resized(crop: Image, size: tuple[int, int]) -> Image:
    """Return a crop (H, W, 3) in another size (width and height, px)."""
    shrinks = crop.shape[1] > size[0] and crop.shape[0] > size[1]
    how = cv2.INTER_AREA if shrinks else cv2.INTER_LINEAR
    return np.asarray(cv2.resize(crop, size, interpolation=how), np.uint8)


def _pixels(low: float, high: float, size: int) -> tuple[int, int]:
    """Return the pixels between two edges that lie in a row of ``size`` of them."""
    return int(np.clip(np.floor(low), 0, size)), int(np.clip(np.ceil(high), 0, size))
