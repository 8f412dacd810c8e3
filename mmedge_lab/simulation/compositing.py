"""Lays pictures with transparency over a canvas."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import cv2
import numpy as np

from mmedge_lab.simulation.textures import Image
from mmedge_ros.core.data_types import FloatArray

# Farther out than any canvas, and safely whole numbers.
_FAR = 1e6


class CanvasArea(NamedTuple):
    """A rectangle of whole pixels; x1 and y1 are outside."""

    x0: int
    y0: int
    x1: int
    y1: int

    @property
    def width(self) -> int:
        return self.x1 - self.x0

    @property
    def height(self) -> int:
        return self.y1 - self.y0

    @property
    def empty(self) -> bool:
        return self.x1 <= self.x0 or self.y1 <= self.y0

    def of(self, canvas: Image) -> Image:
        """Return the part of a canvas, not a copy."""
        return canvas[self.y0 : self.y1, self.x0 : self.x1]


def area_within(
    bounds: Sequence[float], shape: tuple[int, ...], margin: float = 1.0
) -> CanvasArea:
    """Return what of a canvas of ``shape`` x0, y0, x1, y1 with a margin cover."""
    x0, y0, x1, y1 = (min(max(v, -_FAR), _FAR) for v in bounds)
    return CanvasArea(
        max(math.floor(x0 - margin), 0),
        max(math.floor(y0 - margin), 0),
        min(math.ceil(x1 + margin) + 1, shape[1]),
        min(math.ceil(y1 + margin) + 1, shape[0]),
    )


def area_of(points: FloatArray, shape: tuple[int, ...], margin: float = 1.0) -> CanvasArea:
    """Return what of a canvas of ``shape`` points (N, 2) with a margin cover."""
    low, high = points.min(axis=0).tolist(), points.max(axis=0).tolist()
    return area_within((*low, *high), shape, margin)


def lay_over(part: Image, colours: Image, alpha: Image) -> None:
    """Lay a picture (H, W, 3) over a part of a canvas, in place.

    Its colours have been multiplied by ``alpha`` (H, W).
    """
    through = cv2.bitwise_not(alpha)
    kept = cv2.multiply(part, cv2.merge([through] * 3), scale=1.0 / 255.0)
    cv2.add(kept, colours, dst=part)


def tinted(premultiplied: Image, factors: FloatArray, clear: float, air: FloatArray) -> Image:
    """Return a premultiplied picture (H, W, 4) as BGR under another light and behind air.

    :param factors: (3,) BGR on its colours
    :param clear: share of it that comes through; the rest is ``air`` (3,) BGR
    """
    matrix = np.zeros((3, 4))
    matrix[:, :3] = np.diag(factors * clear)
    matrix[:, 3] = air * ((1.0 - clear) / 255.0)
    return np.asarray(cv2.transform(premultiplied, matrix), np.uint8)


def mix_colour(colour: FloatArray, clear: float, air: FloatArray) -> tuple[float, float, float]:
    """Return a BGR colour behind air, as OpenCV's drawing functions take it."""
    mixed = colour * clear + air * (1.0 - clear)
    blue, green, red = np.minimum(np.maximum(mixed, 0.0), 255.0).tolist()
    return blue, green, red
