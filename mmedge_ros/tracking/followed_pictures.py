"""What feature fusion says of pictures that were followed in place of encoded.

Such a picture has no grid for the networks. The fused detections of the picture that it was
followed from are moved as the encoder's own detections of that picture moved.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from mmedge_ros.core.data_types import NS_PER_S, Box, Detection, UnitFeatures
from mmedge_ros.geometry.box_overlap import overlap

# Encoded pictures of the last second at 30 Hz: what is followed is at most 0.35 s newer.
_MOST_BASES = 30
# A fused box overlaps the encoder's box of the same object more than this (IoU).
_SAME_OBJECT = 0.3
# How far (m/s) people come nearer or go away unseen by the change of a box's size.
_RANGE_SPEED = 1.0


class _Motion(NamedTuple):
    """How the box of an object moved: its middle by px, its sides by a factor."""

    before: Box
    right: float
    down: float
    scale: float


class _Base(NamedTuple):
    """An encoded picture: what its encoder detected, and what fusion made of it."""

    stamp_ns: int
    items: dict[int, Box]
    fused: tuple[Detection, ...]


class FollowedPictures:
    """Remembers the last fused pictures, and moves what was fused there."""

    def __init__(self) -> None:
        self._bases: deque[_Base] = deque(maxlen=_MOST_BASES)

    def reset(self) -> None:
        """Forget all pictures."""
        self._bases.clear()

    def add(self, picture: UnitFeatures, fused: tuple[Detection, ...]) -> None:
        """Remember an encoded picture, as the encoder gave it, and what was fused of it."""
        items = {d.item: d.box for d in picture.detections if d.item}
        self._bases.append(_Base(picture.stamp_ns, items, fused))

    def moved(self, picture: UnitFeatures) -> tuple[Detection, ...] | None:
        """Return the fused detections moved to a followed picture.

        None if the picture it was followed from is not known, such as one whose fusion failed.
        """
        base = self._base_of(picture)
        if base is None:
            return None
        motions = list(_motions(base, picture.detections))
        usual = _usual(motions)
        gap = (picture.stamp_ns - base.stamp_ns) / NS_PER_S
        return tuple(_moved(d, _own(d.box, motions) or usual, gap) for d in base.fused)

    def _base_of(self, picture: UnitFeatures) -> _Base | None:
        earlier = [base for base in self._bases if base.stamp_ns < picture.stamp_ns]
        base = max(earlier, key=lambda b: b.stamp_ns, default=None)
        items = {d.item for d in picture.detections}
        return base if base is not None and items == base.items.keys() else None


def _motions(base: _Base, detections: Iterable[Detection]) -> Iterable[_Motion]:
    for detection in detections:
        before, after = base.items[detection.item], detection.box
        if not all(map(math.isfinite, (*before, *after))) or before.height <= 0.0:
            continue
        yield _Motion(
            before,
            (after.x0 + after.x1 - before.x0 - before.x1) / 2.0,
            (after.y0 + after.y1 - before.y0 - before.y1) / 2.0,
            after.height / before.height,
        )


def _own(box: Box, motions: list[_Motion]) -> _Motion | None:
    """Return the motion of the object that a box lies on."""
    best = max(motions, key=lambda m: overlap(box, m.before), default=None)
    return best if best is not None and overlap(box, best.before) > _SAME_OBJECT else None


def _usual(motions: list[_Motion]) -> _Motion:
    """Return the median motion: that of the picture, as the camera turns."""
    if not motions:
        return _Motion(Box(0.0, 0.0, 0.0, 0.0), 0.0, 0.0, 1.0)
    right, down = np.median([(m.right, m.down) for m in motions], axis=0).tolist()
    return _Motion(motions[0].before, right, down, 1.0)


def _moved(detection: Detection, motion: _Motion, gap: float) -> Detection:
    """Return a detection after a motion; what is nearer is larger."""
    scale = motion.scale if motion.scale > 0.0 else 1.0
    box = detection.box
    x, y = (box.x0 + box.x1) / 2.0 + motion.right, (box.y0 + box.y1) / 2.0 + motion.down
    half_width, half_height = scale * box.width / 2.0, scale * box.height / 2.0
    return replace(
        detection,
        box=Box(x - half_width, y - half_height, x + half_width, y + half_height),
        distance=detection.distance / scale,
        distance_deviation=math.hypot(detection.distance_deviation, _RANGE_SPEED * gap),
    )
