"""Fits pictures of any size into a network's input and brings boxes back."""

from __future__ import annotations

from typing import NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray

from mmedge_ros.encoding import EncodingError
from mmedge_ros.encoding.detector import Image

PADDING = 114  # the grey both YOLOX and ultralytics train with


class InputStyle(NamedTuple):
    """How a family of networks wants its pictures."""

    centred: bool  # padding on both sides, or right and bottom only
    rgb: bool  # order of the channels
    scale: float  # factor on values of 0..255


class LetterboxPlacement(NamedTuple):
    """Where a picture lies in the input: input = picture * scale + offset, per axis."""

    x_offset: int
    y_offset: int
    x_scale: float
    y_scale: float
    width: int
    height: int

    def to_picture(self, boxes: NDArray[np.float32]) -> NDArray[np.float32]:
        """Bring (N, 4) boxes x0, y0, x1, y1 from input to picture pixels, clipped to it."""
        offset = np.array([self.x_offset, self.y_offset] * 2, np.float32)
        scale = np.array([self.x_scale, self.y_scale] * 2, np.float32)
        limit = np.array([self.width, self.height] * 2, np.float32)
        clipped: NDArray[np.float32] = np.clip((boxes - offset) / scale, np.float32(0.0), limit)
        return clipped


class Canvas(NamedTuple):
    """An area that pictures are fitted onto first, and which fills the input as a whole.

    What lies where on the input then does not depend on the size of the picture. ``scale`` and
    ``middle``, that of the input, lead from one to the other: input = (canvas - size / 2) *
    scale + middle, px.
    """

    size: tuple[int, int]
    scale: float
    middle: tuple[float, float]

    @classmethod
    def in_input(cls, size: tuple[int, int], input_size: tuple[int, int]) -> Canvas:
        """Put a canvas of this size (width, height) into the middle of an input."""
        scale = min(input_size[0] / size[0], input_size[1] / size[1])
        return cls(size, scale, (input_size[0] / 2, input_size[1] / 2))

    def place(self, width: int, height: int) -> LetterboxPlacement:
        """Fit a picture into the input by way of the canvas."""
        on_canvas = place(width, height, self.size, centred=True)
        covered = width * on_canvas.x_scale, height * on_canvas.y_scale
        w, h = (max(1, round(side * self.scale)) for side in covered)
        x, y = round(self.middle[0] - w / 2), round(self.middle[1] - h / 2)
        return LetterboxPlacement(x, y, w / width, h / height, width, height)


def place(
    width: int, height: int, input_size: tuple[int, int], centred: bool
) -> LetterboxPlacement:
    """Fit a picture into the input, aspect kept; at least one pixel of it stays."""
    scale = min(input_size[0] / width, input_size[1] / height)
    w, h = max(1, round(width * scale)), max(1, round(height * scale))
    x, y = ((input_size[0] - w) // 2, (input_size[1] - h) // 2) if centred else (0, 0)
    # The scale is that of the rounded size, so that the way back has no systematic error.
    return LetterboxPlacement(x, y, w / width, h / height, width, height)


class Letterbox:
    """Writes pictures into one preallocated input; belongs to one thread.

    ``blob`` is (1, 3, H, W) in the network's type. Only the part the picture covers is
    written for each picture, the padding once per picture size.

    :param canvas: by way of which pictures are fitted into the input; None fits them directly
    """

    def __init__(
        self,
        input_size: tuple[int, int],
        style: InputStyle,
        dtype: type[np.floating],
        canvas: Canvas | None = None,
    ) -> None:
        self._size = input_size
        self._canvas = canvas
        self._style = style
        self.blob: NDArray[np.floating] = np.empty((1, 3, input_size[1], input_size[0]), dtype)
        self._placement: LetterboxPlacement | None = None
        self._resized: Image = np.empty((0, 0, 3), np.uint8)
        self._planes: list[Image] = []
        self._scaled: NDArray[np.float32] = np.empty((0, 0), np.float32)

    def fill(self, image: Image) -> LetterboxPlacement:
        """Write a picture (H, W, 3) uint8 BGR into ``blob`` and return where it lies.

        :raises EncodingError: for any other shape or type
        """
        placement = self._prepare(image)
        height, width = self._resized.shape[:2]
        # cv2 wants memory that runs forward; a picture that already does is not copied.
        cv2.resize(
            np.ascontiguousarray(image),
            (width, height),
            self._resized,
            interpolation=cv2.INTER_LINEAR,
        )
        # Splitting into planes first is 20 times faster than cv2.dnn.blobFromImage (0.06 ms
        # against 1.2 ms at 416 x 320), which also allocates each time.
        cv2.split(self._resized, self._planes)
        x, y = placement.x_offset, placement.y_offset
        target = self.blob[0, :, y : y + height, x : x + width]
        for channel, plane in enumerate(self._planes):
            self._write(plane, target[2 - channel if self._style.rgb else channel])
        return placement

    def _write(self, plane: Image, target: NDArray[np.floating]) -> None:
        if target.dtype == np.float32:
            np.multiply(plane, np.float32(self._style.scale), out=target)
        else:  # arithmetic in float16 is emulated on most processors, the cast is not
            np.multiply(plane, np.float32(self._style.scale), out=self._scaled)
            target[...] = self._scaled

    def _prepare(self, image: Image) -> LetterboxPlacement:
        if image.dtype != np.uint8 or image.ndim != 3 or image.shape[2] != 3 or image.size == 0:
            raise EncodingError(
                f'a picture of shape {image.shape} and type {image.dtype} cannot be encoded; '
                'it must be (height, width, 3) uint8 in BGR order and not empty'
            )
        height, width = image.shape[:2]
        previous = self._placement
        if previous is not None and (previous.width, previous.height) == (width, height):
            return previous
        if self._canvas is None:
            placement = place(width, height, self._size, self._style.centred)
        else:
            placement = self._canvas.place(width, height)
        w, h = round(width * placement.x_scale), round(height * placement.y_scale)
        self._resized = np.empty((h, w, 3), np.uint8)
        self._planes = [np.empty((h, w), np.uint8) for _ in range(3)]
        self._scaled = np.empty((h, w), np.float32)
        self.blob.fill(PADDING * self._style.scale)
        self._placement = placement
        return placement
