"""How boxes move from one picture to the next, by the motion of the image inside them.

Pyramidal Lucas-Kanade (Bouguet, 2001) follows a grid of points in each box. A point counts as
followed if it comes back to where it began when it is followed backwards (Kalal, Mikolajczyk and
Matas, "Forward-backward error", ICPR 2010); the box moves by the medians of what is left.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from mmedge_ros.core.data_types import FloatArray
from mmedge_ros.geometry import GeometryError

Grey = NDArray[np.uint8]

# Points of a box lie on a grid of so many columns and rows. Bodies are taller than wide, and
# their boxes hold background at the rim: a quarter of the box at each side is left out.
_COLUMNS, _ROWS = 3, 5
_POINTS = _COLUMNS * _ROWS
_RIM = 0.25
_SHARES = np.stack(
    np.meshgrid(np.linspace(_RIM, 1.0 - _RIM, _COLUMNS), np.linspace(_RIM, 1.0 - _RIM, _ROWS)), -1
).reshape(_POINTS, 2)
# The size follows from points far apart: neighbours say little of it.
_ONE, _OTHER = (
    np.array(pair)
    for pair in zip(
        *(
            (i, j)
            for i in range(_POINTS)
            for j in range(i + 2 * _COLUMNS, _POINTS)
            if abs(i % _COLUMNS - j % _COLUMNS) != 1
        ),
        strict=True,
    )
)
# Three points have a median shift that one wrong point cannot move far.
_ENOUGH = 3
# A box narrower than this (px) holds no image to follow.
_SMALLEST = 2.0
_WINDOW = (9, 9)
_LEVELS = 3
# px around the points that are looked at: half a window of the coarsest of four levels, and more.
_AROUND = 48
_CRITERIA = (cv2.TERM_CRITERIA_EPS | cv2.TERM_CRITERIA_COUNT, 10, 0.03)
# px; how near a point must come back to its beginning.
_RETURN = 1.0
# A body that comes nearer at 10 m/s from 10 m grows by 3 % in a picture of 30 Hz; what changes
# faster is the spread of points that slid along an edge.
_SCALE = 0.03


@dataclass(frozen=True, slots=True, eq=False)
class ImageMotion:
    """The motion of N boxes between two pictures.

    ``shift`` (N, 2) px of the centres and ``scale`` (N,) of the sides, 0 and 1 where too few
    points were followed; `moved_boxes` applies them. ``followed`` (N,) is the share 0..1 of points
    that were followed.
    """

    shift: FloatArray
    scale: FloatArray
    followed: FloatArray


def box_motion(before: Grey, after: Grey, boxes: FloatArray) -> ImageMotion:
    """Follow boxes (N, 4; x0, y0, x1, y1 px) from one picture to another of the same size.

    Boxes that are not finite, inside out, too small or outside the picture are not followed.

    :param before: grey picture (H, W)
    :param after: grey picture (H, W)
    :raises GeometryError: if these are no grey pictures, or differ in size
    """
    size = _common_size(before, after)
    boxes = np.asarray(boxes, float).reshape(-1, 4)
    count = len(boxes)
    shift, scale, followed = np.zeros((count, 2)), np.ones(count), np.zeros(count)
    usable = _usable(boxes, size)
    if usable:
        points = _points_in(boxes[usable])
        ends, kept = _followed(before, after, points.reshape(-1, 2))
        ends = ends.reshape(points.shape)
        kept = kept.reshape(points.shape[:2])
        followed[usable] = kept.mean(axis=1)
        enough = kept.sum(axis=1) >= _ENOUGH
        if enough.any():
            at = np.array(usable)[enough]
            shift[at], scale[at] = _median_motions(points[enough], ends[enough], kept[enough])
    return ImageMotion(shift, scale, followed)


def moved_boxes(boxes: FloatArray, shift: FloatArray, scale: FloatArray) -> FloatArray:
    """Return boxes (N, 4) whose centres moved by ``shift`` (N, 2) and sides by ``scale`` (N,)."""
    still = (shift == 0.0).all(axis=1) & (scale == 1.0)
    with np.errstate(invalid='ignore', over='ignore'):
        centre = (boxes[:, :2] + boxes[:, 2:]) / 2.0 + shift
        half = (boxes[:, 2:] - boxes[:, :2]) / 2.0 * scale[:, None]
        moved = np.hstack([centre - half, centre + half])
    return np.where(still[:, None], boxes, moved)


def _common_size(before: Grey, after: Grey) -> tuple[int, int]:
    """Return (width, height) of both pictures."""
    for picture in (before, after):
        if picture.ndim != 2 or picture.dtype != np.uint8 or not picture.size:
            raise GeometryError(
                f'a picture of shape {picture.shape} and type {picture.dtype} has no image '
                'motion; pass a grey picture (H, W) of uint8'
            )
    if before.shape != after.shape:
        raise GeometryError(
            f'pictures of shape {before.shape} and {after.shape} have no image motion in common; '
            'begin anew when the size of pictures changes'
        )
    return before.shape[1], before.shape[0]


def _usable(boxes: FloatArray, size: tuple[int, int]) -> list[int]:
    """Return the places of boxes that are finite, large enough, and overlap the picture."""
    width, height = size
    # Comparisons with NaN are false. For a few boxes a loop is faster than array operations.
    return [
        place
        for place, (x0, y0, x1, y1) in enumerate(boxes.tolist())
        if -math.inf < x0 < width
        and -math.inf < y0 < height
        and 0.0 < x1 < math.inf
        and 0.0 < y1 < math.inf
        and x1 - x0 >= _SMALLEST
        and y1 - y0 >= _SMALLEST
    ]


def _points_in(boxes: FloatArray) -> NDArray[np.float32]:
    """Return the grids of points of boxes, (N, points, 2)."""
    sides = boxes[:, None, 2:] - boxes[:, None, :2]
    return (boxes[:, None, :2] + _SHARES * sides).astype(np.float32)


def _followed(
    before: Grey, after: Grey, points: NDArray[np.float32]
) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
    """Return where points (N, 2) went, and which of them came back and lie in both pictures."""
    size = (before.shape[1], before.shape[0])
    ends, kept = points.copy(), _within(points, size)
    begin = points[kept]
    if len(begin):
        # Most of the work is on the pictures, not on the points: only the part around them.
        corner = np.maximum(begin.min(axis=0).astype(int) - _AROUND, 0)
        right, down = begin.max(axis=0).astype(int) + _AROUND
        part = slice(corner[1], down), slice(corner[0], right)
        before, after, begin = before[part], after[part], begin - corner.astype(np.float32)
        there, found = _flow(before, after, begin)
        back, returned = _flow(after, before, there)
        near = _lengths(back - begin) <= _RETURN
        there += corner.astype(np.float32)
        ends[kept] = there
        kept[kept] = found & returned & near & _within(there, size)
    return ends, kept


def _flow(
    before: Grey, after: Grey, points: NDArray[np.float32]
) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
    ends, status, _ = cv2.calcOpticalFlowPyrLK(
        before, after, points, points.copy(), winSize=_WINDOW, maxLevel=_LEVELS, criteria=_CRITERIA
    )
    return np.asarray(ends, np.float32), np.asarray(status, bool).ravel()


def _within(points: NDArray[np.float32], size: tuple[int, int]) -> NDArray[np.bool_]:
    right, down = points[:, 0], points[:, 1]
    width, height = size
    inside = (right >= 0.0) & (right <= width - 1) & (down >= 0.0) & (down <= height - 1)
    return np.asarray(inside, bool)


def _median_motions(
    begins: NDArray[np.float32], ends: NDArray[np.float32], kept: NDArray[np.bool_]
) -> tuple[FloatArray, FloatArray]:
    """Return the median shifts (N, 2) of points (N, K, 2), and those of changes of distances (N,).

    :param kept: (N, K) which points count; at least one of each row
    """
    both = np.stack([begins, ends])
    first, last = _lengths(both.take(_ONE, axis=2) - both.take(_OTHER, axis=2))
    apart = kept.take(_ONE, axis=1) & kept.take(_OTHER, axis=1) & (first > 0.0)
    # Both coordinates and the ratios in one go: most of the time would be that of the calls.
    values = np.empty((len(begins), 3, _ONE.size), np.float32)
    counts = np.zeros(values.shape, bool)
    values[:, :2, :_POINTS] = (ends - begins).transpose(0, 2, 1)
    counts[:, :2, :_POINTS] = kept[:, None]
    values[:, 2] = last / np.where(apart, first, 1.0)
    counts[:, 2] = apart
    # Where no two points are apart nothing is known of the size.
    lost = ~apart.any(axis=1)
    values[lost, 2, 0], counts[lost, 2, 0] = 1.0, True
    medians = _medians(values, counts)
    return medians[:, :2], np.clip(medians[:, 2], 1.0 - _SCALE, 1.0 + _SCALE)


def _lengths(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the lengths of vectors (..., 2), as `np.linalg.norm` does in more steps."""
    right, down = vectors[..., 0], vectors[..., 1]
    return np.asarray(np.sqrt(right * right + down * down), np.float32)


def _medians(values: NDArray[np.float32], kept: NDArray[np.bool_]) -> FloatArray:
    """Return the medians along the last axis of those values that are kept, of one or more."""
    size = values.shape[-1]
    ordered = np.sort(np.where(kept, values, np.float32(np.inf)), axis=-1).reshape(-1, size)
    counts = kept.sum(axis=-1).ravel()
    rows = np.arange(len(counts))
    medians = (ordered[rows, (counts - 1) // 2] + ordered[rows, counts // 2]) / 2.0
    return np.asarray(medians.reshape(values.shape[:-1]), float)
