"""What crowns of trees and bushes look like: clumps of leaves, lit from one side."""

from __future__ import annotations

import functools
import math
from typing import NamedTuple

import cv2
import numpy as np

from mmedge_ros.lab.simulation.textures import Image

_SIZE = 256
_REACH = 112.0
# Grey level of a leaf in full light.
LEAF = 160.0
# Half of a texture's side that the crown's radius takes.
FILL = _REACH / (0.5 * _SIZE)


class Clump(NamedTuple):
    """A clump of leaves in the crown's unit disc, y up."""

    x: float
    y: float
    radius: float


@functools.lru_cache(maxsize=64)
def crown_textures(kind: int, slim: bool, bush: bool, light: int) -> tuple[Image, ...]:
    """Return leaves that fill a crown's bounding square: BGRA, 256 pixels a side and smaller.

    They are of one neutral colour of ``LEAF``, multiplied by their alpha, and lit from the
    upper right; ``light`` 0..4 is how much of the light comes from there. ``slim`` crowns run
    to a point, a ``bush`` stands on the ground; ``kind`` tells those of a sort apart.
    """
    random = np.random.default_rng((kind, slim, bush))
    leaves = np.zeros((_SIZE, _SIZE, 4), np.uint8)
    clumps = _clumps(random, slim, bush)
    _paint_inside(leaves, clumps)
    for depth, (x, y, radius) in enumerate(clumps):
        share = depth / len(clumps)
        middle = 0.5 * (_SIZE - 1) + _REACH * np.array([x, -y])
        count = round(430 * radius)
        turns = random.uniform(0.0, 2.0 * math.pi, count)
        away = np.sqrt(random.uniform(size=count)) * radius * _REACH
        offsets = away[:, None] * np.column_stack([np.cos(turns), np.sin(turns)])
        # What faces the light is bright, what lies deep in the crown is dark.
        height = 0.3 * (x + y) + 0.5 * (offsets[:, 0] - offsets[:, 1]) / (radius * _REACH)
        level = 0.6 + 0.4 * share + 0.11 * light * height + random.normal(0.0, 0.1, count)
        shades = LEAF * np.maximum(level, 0.2)[:, None] * random.uniform(0.9, 1.1, (count, 3))
        spots = np.rint((middle + offsets) * 4).astype(int)
        axes = random.uniform((5.0, 4.0), (14.0, 9.0), (count, 2)).astype(int)
        angles = random.uniform(0.0, 180.0, count)
        for spot, size, angle, shade in zip(
            spots.tolist(), axes.tolist(), angles.tolist(), np.minimum(shades, 255.0).tolist(),
            strict=True,
        ):  # fmt: skip
            cv2.ellipse(leaves, spot, size, angle, 0, 360, (*shade, 255), -1, cv2.LINE_8, 2)
    return _smaller(leaves)


def _paint_inside(leaves: Image, clumps: list[Clump]) -> None:
    """Fill the middle with what is seen between the outer leaves: the dark inside."""
    shade = (0.42 * LEAF,) * 3
    for x, y, radius in clumps:
        centre = np.rint(0.5 * (_SIZE - 1) + 0.93 * _REACH * np.array([x, -y])).astype(int)
        cv2.circle(leaves, centre.tolist(), round(0.8 * radius * _REACH), (*shade, 255), -1)


def _clumps(random: np.random.Generator, slim: bool, bush: bool) -> list[Clump]:
    """Return clumps of leaves in the unit disc, back to front."""
    found = []
    # Rings from the middle out, so that no part of the crown stays bare.
    for ring, count in ((0.0, 2), (0.3, 7), (0.55, 13), (0.75, 20)):
        for i in range(count):
            turn = 2.0 * math.pi * (i + random.uniform(-0.4, 0.4)) / count
            x = ring * math.cos(turn) + random.uniform(-0.08, 0.08)
            y = ring * math.sin(turn) + random.uniform(-0.08, 0.08)
            radius = random.uniform(0.17, 0.27)
            if slim:
                narrow = 0.25 + 0.5 * (1.0 - y)
                x, radius = x * narrow, radius * max(narrow, 0.5)
            elif bush and y < 0.0:
                # Bushes widen to the ground.
                x *= 1.0 + 0.35 * y * y
            away = math.hypot(x, y)
            inward = min(1.0, (1.0 - radius) / max(away, 1e-6))
            found.append(Clump(x * inward, y * inward, radius))
    # The outer ones lie behind, so that the middle comes out as what is nearest.
    return sorted(found, key=lambda c: c.x**2 + c.y**2 + random.uniform(0.0, 0.45), reverse=True)


def _smaller(leaves: Image) -> tuple[Image, ...]:
    """Return a texture, softened and its colours multiplied by alpha, and smaller ones."""
    pictures = [np.asarray(cv2.GaussianBlur(leaves, (0, 0), 0.7), np.uint8)]
    while pictures[-1].shape[0] > 8:
        side = pictures[-1].shape[0] // 2
        smaller = cv2.resize(pictures[-1], (side, side), interpolation=cv2.INTER_AREA)
        pictures.append(np.asarray(smaller, np.uint8))
    return tuple(pictures)
