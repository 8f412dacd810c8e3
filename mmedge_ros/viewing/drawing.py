"""Decisions and radar returns drawn into the pictures they belong to.

Pictures are (H, W, 3) uint8, BGR. The live annotated picture and the video of a replay are
drawn here, so that both look the same.
"""

from __future__ import annotations

import colorsys
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray

from mmedge_ros.data_types import NS_PER_S, Decision, FloatArray, Track

Picture = NDArray[np.uint8]
Colour = tuple[int, int, int]

WHITE: Colour = (235, 235, 235)
WARNING: Colour = (60, 160, 255)
BACKGROUND: Colour = (32, 32, 32)
_MOVING: Colour = (80, 220, 255)
_STILL: Colour = (150, 150, 150)
_BLACK: Colour = (0, 0, 0)

_FONT = cv2.FONT_HERSHEY_SIMPLEX
# Height of capital letters at scale 1, in pixels.
_FONT_HEIGHT = 22.0
_GOLDEN_ANGLE = 0.381966
# Tracks this much older or newer than a picture, in seconds, say nothing about it.
_LONGEST_PREDICTION = 1.0


class _Area(NamedTuple):
    """Where a label lies, in whole pixels; x1 and y1 are outside."""

    x0: int
    y0: int
    x1: int
    y1: int

    def overlaps(self, other: _Area) -> bool:
        return (
            self.x0 < other.x1 and other.x0 < self.x1 and self.y0 < other.y1 and other.y0 < self.y1
        )


def colour_of(number: int) -> tuple[float, float, float]:
    """Return red, green, blue in 0..1 for a track; consecutive ids look different."""
    return colorsys.hsv_to_rgb((number * _GOLDEN_ANGLE) % 1.0, 0.75, 1.0)


def annotate(
    picture: Picture,
    stamp_ns: int,
    decision: Decision,
    origin: FloatArray | None = None,
    scale: float = 1.0,
) -> Picture:
    """Return a copy of a picture with boxes, ids, ranges and speeds.

    Boxes are moved from the state time of the tracks to the picture's ``stamp_ns``. Labels
    stay inside the picture and do not cover each other; one without room is shortened, and
    in the end left out.

    :param origin: (3,) where ranges are measured from, in the frame of the tracks; their
        origin if None
    :param scale: size of the picture relative to the one the boxes refer to
    """
    drawn = picture.copy()
    elapsed = (stamp_ns - decision.state_ns) / NS_PER_S
    if abs(elapsed) > _LONGEST_PREDICTION:
        return drawn
    height, width = drawn.shape[:2]
    thickness = max(1, round(height / 240))
    shown: list[tuple[Track, _Area, Colour]] = []
    for track in decision.tracks:
        box = track.box_at(elapsed)
        if box is None or not np.isfinite(box).all():
            continue
        # Beyond this OpenCV cannot reckon with coordinates.
        corners = np.clip(np.multiply(box, scale), -max(width, height), 2 * max(width, height))
        area = _Area(*(int(v) for v in np.rint(corners)))
        red, green, blue = (int(255 * c) for c in colour_of(track.id))
        shown.append((track, area, (blue, green, red)))
        cv2.rectangle(drawn, area[:2], area[2:], (blue, green, red), thickness)
    taken: list[_Area] = []
    for track, area, colour in shown:
        _label(drawn, area, _words(track, origin), colour, taken)
    return drawn


def draw_returns(picture: Picture, pixels: FloatArray, moving: NDArray[np.bool_]) -> None:
    """Draw radar returns into a picture: dots, those that move larger and in yellow.

    :param pixels: (N, 2)
    :param moving: (N,)
    """
    radius = max(1, round(picture.shape[0] / 200))
    for (x, y), moves in zip(np.rint(pixels).astype(int).tolist(), moving.tolist(), strict=True):
        size = radius + 1 if moves else radius
        cv2.circle(picture, (x, y), size + 1, _BLACK, -1, cv2.LINE_AA)
        cv2.circle(picture, (x, y), size, _MOVING if moves else _STILL, -1, cv2.LINE_AA)


def status_bar(width: int, height: int, words: Sequence[tuple[str, Colour]]) -> Picture:
    """Return a bar (height, width, 3) with words in a row; those that do not fit are left out."""
    bar = np.full((height, width, 3), BACKGROUND, np.uint8)
    scale, gap = 0.42 * height / _FONT_HEIGHT, round(0.7 * height)
    x = gap // 2
    for text, colour in words:
        (length, _), _ = cv2.getTextSize(text, _FONT, scale, 1)
        if x + length > width:
            return bar
        baseline = round((height + scale * _FONT_HEIGHT) / 2)
        cv2.putText(bar, text, (x, baseline), _FONT, scale, colour, 1, cv2.LINE_AA)
        x += length + gap
    return bar


def _words(track: Track, origin: FloatArray | None) -> list[str]:
    """What is said of a track, from all of it to the least."""
    seen_from = np.zeros(3) if origin is None else origin
    distance = float(np.linalg.norm(track.position - seen_from))
    speed = float(np.linalg.norm(track.velocity))
    where = f'{track.id}  {distance:.1f} m'
    return [f'{where}  {speed:.1f} m/s', where, str(track.id)]


def _label(
    picture: Picture, box: _Area, words: Sequence[str], colour: Colour, taken: list[_Area]
) -> None:
    """Write the longest of ``words`` that has room at the box, and enter its area."""
    height, width = picture.shape[:2]
    scale = max(0.35, 0.45 * height / 480)
    pad, gap = max(1, round(4 * scale)), max(1, round(2 * scale))
    for text in words:
        (length, up), down = cv2.getTextSize(text, _FONT, scale, 1)
        size = (length + 2 * pad, up + down + 2 * gap)
        for x0, y0 in _places(box, *size):
            x0 = min(max(x0, 0), width - size[0])
            area = _Area(x0, y0, x0 + size[0], y0 + size[1])
            if area.x0 < 0 or area.y0 < 0 or area.y1 > height:
                continue
            if not any(area.overlaps(other) for other in taken):
                taken.append(area)
                cv2.rectangle(picture, area[:2], (area.x1 - 1, area.y1 - 1), colour, -1)
                baseline = (area.x0 + pad, area.y0 + gap + up)
                cv2.putText(picture, text, baseline, _FONT, scale, _BLACK, 1, cv2.LINE_AA)
                return


def _places(box: _Area, width: int, height: int) -> Iterator[tuple[int, int]]:
    """Upper left corners a label of that size may have, best first."""
    yield box.x0, box.y0 - height
    yield box.x1 - width, box.y0 - height
    yield box.x0, box.y1
    for row in range(6):  # inside, below each other from the upper edge of the box
        yield box.x0, max(box.y0, 0) + row * height
