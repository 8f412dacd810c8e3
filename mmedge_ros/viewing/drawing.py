"""Decisions and radar returns drawn into the pictures they belong to.

Pictures are (H, W, 3) uint8, BGR. The live annotated picture and the video of a replay are
drawn here, so that both look the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import cv2
import numpy as np
from numpy.typing import NDArray

from mmedge_ros.core.data_types import NS_PER_S, Box, Decision, FloatArray, Track
from mmedge_ros.viewing.label_placement import Area, place_labels

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
# Tracks this much older or newer than a picture, in seconds, say nothing about it.
_LONGEST_PREDICTION = 1.0


# Okabe and Ito's palette, its blue lighter: apart for colour-blind people, and black is legible
# on each. Its yellow stands for radar returns that move.
_TRACK_COLOURS = (
    (230, 159, 0),
    (86, 180, 233),
    (213, 94, 0),
    (0, 158, 115),
    (204, 121, 167),
    (40, 125, 225),
)


def colour_of(number: int) -> tuple[float, float, float]:
    """Return red, green, blue in 0..1 for a track: the same id has the same colour."""
    red, green, blue = _TRACK_COLOURS[number % len(_TRACK_COLOURS)]
    return red / 255, green / 255, blue / 255


def annotate(
    picture: Picture,
    stamp_ns: int,
    decision: Decision,
    origin: FloatArray | None = None,
    scale: float = 1.0,
    truth: Sequence[Box] = (),
    *,
    ids_only: bool = False,
) -> Picture:
    """Return a copy of a picture with boxes, ids, ranges and speeds.

    Boxes are moved from the state time of the tracks to the picture's ``stamp_ns``; those of
    people whom the radar alone sees are dashed. Labels are placed by `place_labels`: one without
    room is shortened, and in the end left out.

    :param origin: (3,) where ranges are measured from, in the frame of the tracks; their
        origin if None
    :param scale: size of the picture relative to the one the boxes refer to
    :param truth: boxes of the people who are really there, drawn dashed and white
    :param ids_only: without ranges and speeds in the labels
    """
    drawn = picture.copy()
    real = [area for box in truth if (area := _area(box, scale, drawn)) is not None]
    elapsed = (stamp_ns - decision.state_ns) / NS_PER_S
    shown: list[tuple[Track, Area]] = []
    for track in decision.tracks if abs(elapsed) <= _LONGEST_PREDICTION else ():
        area = _area(track.box_at(elapsed) or track.projected, scale, drawn)
        if area is None:
            continue
        shown.append((track, area))
        if track.box is None:
            _dashed(drawn, area, _track_colour(track))
        else:
            cv2.rectangle(drawn, area[:2], area[2:], _track_colour(track), _line_width(drawn))
    for area in real:
        _dashed(drawn, area)
    texts = [_words(track, origin)[2 if ids_only else 0 :] for track, _ in shown]
    _label_tracks(drawn, shown, texts, real)
    return drawn


def legend(has_truth: bool) -> list[tuple[str, Colour]]:
    """Return what the lines in an annotated picture are, for `status_bar`."""
    words = [('coloured box: a track and its id; dashed: seen by radar alone', WHITE)]
    return [*words, ('dashed white box: a person really there', WHITE)] if has_truth else words


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


def _area(box: Box | None, scale: float, picture: Picture) -> Area | None:
    """Return a box in the pixels of a picture; None without a box that can be drawn."""
    if box is None or not np.isfinite(box).all():
        return None
    # Beyond this OpenCV cannot reckon with coordinates.
    side = max(picture.shape[:2])
    return Area(*(int(v) for v in np.rint(np.clip(np.multiply(box, scale), -side, 2 * side))))


def _track_colour(track: Track) -> Colour:
    red, green, blue = (round(255 * c) for c in colour_of(track.id))
    return blue, green, red


def _line_width(picture: Picture) -> int:
    return max(1, round(int(picture.shape[0]) / 300))


def _dashed(picture: Picture, area: Area, colour: Colour = WHITE) -> None:
    """Draw a dashed rectangle; what lies below stays visible between the dashes."""
    x0, y0, x1, y1 = area
    corners = [(x0, y0), (x1, y0), (x1, y1), (x0, y1)]
    width = _line_width(picture)
    dash = 3 * width
    for begin, end in zip(corners, [*corners[1:], corners[0]], strict=True):
        length = max(abs(end[0] - begin[0]), abs(end[1] - begin[1]))
        points = np.linspace(begin, end, max(length // dash, 1) + 1).round().astype(int).tolist()
        for first, second in list(pairwise(points))[::2]:
            cv2.line(picture, first, second, colour, width)


def _label_tracks(
    picture: Picture,
    shown: Sequence[tuple[Track, Area]],
    texts: Sequence[Sequence[str]],
    others: Sequence[Area],
) -> None:
    """Write the longest of each track's texts that has room."""
    height, width = picture.shape[:2]
    scale = max(0.35, 0.45 * height / 480)
    pad, gap = max(1, round(4 * scale)), max(1, round(2 * scale))
    (_, up), down = cv2.getTextSize('0', _FONT, scale, 1)

    def size(text: str) -> tuple[int, int]:
        (length, _), _ = cv2.getTextSize(text, _FONT, scale, 1)
        return length + 2 * pad, up + down + 2 * gap

    # The lines of a box are as wide as this on its outside.
    edge = _line_width(picture) // 2 + 1
    boxes = [Area(b.x0 - edge, b.y0 - edge, b.x1 + edge, b.y1 + edge) for _, b in shown]
    sizes = [[size(text) for text in row] for row in texts]
    labels = place_labels(width, height, boxes, sizes, others)
    for (track, _), row, label in zip(shown, texts, labels, strict=True):
        if label is None:
            continue
        area, colour = label.area, _track_colour(track)
        cv2.rectangle(picture, area[:2], (area.x1 - 1, area.y1 - 1), colour, -1)
        at = (area.x0 + pad, area.y0 + gap + up)
        cv2.putText(picture, row[label.text], at, _FONT, scale, _BLACK, 1, cv2.LINE_AA)
