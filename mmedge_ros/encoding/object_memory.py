"""Remembers the objects of the last encoded picture and follows them in the next ones.

The same few objects stay in view for seconds, and image motion costs a fraction of an encoder.
With ``reuse`` n about every n-th picture is encoded; in the others the remembered detections move
with the image.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from mmedge_ros.core.data_types import (
    Box,
    Detection,
    FloatArray,
    ModalityConfiguration,
    Unit,
)
from mmedge_ros.geometry.image_motion import Grey, box_motion, moved_boxes
from mmedge_ros.sensing.rate_control import RateControl, nominal_rate

# Image motion is lost over a longer gap between two pictures.
LONGEST_GAP_NS = 150_000_000
# What was detected longer ago is not followed: people turn and hide each other meanwhile, and an
# object that comes into view is not seen before the next encoded picture. Ten pictures at 30 Hz.
LONGEST_FOLLOWED_NS = 350_000_000
# Below this share of followed points in all boxes together the memory is no longer trusted.
_LEAST_FOLLOWED = 0.5
_LAST_ITEM = 2**32 - 1
# Pictures are followed at half their size: it costs half, and boxes move by the same to a median
# of 0.05 px, 0.16 px in nine of ten.
_HALF = 2.0


class ReuseGrid:
    """Says by the stamp alone which pictures are encoded: live and in replays the same ones.

    Slots of a global grid of integer nanoseconds, ``reuse`` pictures long, take their first
    picture (`RateControl`): where slots end with windows, most of the slot is left to encode it,
    and the last picture of a window is followed. Until the period of the stream is known all are
    encoded.
    """

    def __init__(self) -> None:
        self._control = RateControl(takes_first=True)

    def takes(self, stamp_ns: int, rate: float, reuse: int) -> bool:
        """Say whether the picture is encoded, at the rate (Hz, 0 = native) it was taken under."""
        pictures = nominal_rate(self._control.period_ns)
        if rate > 0.0:
            pictures = min(pictures, rate)
        slots = pictures / reuse if reuse > 1 and pictures < np.inf else 0.0
        return self._control.admits(stamp_ns, slots) or stamp_ns <= 0


class ObjectMemory:
    """The detections of the last encoded picture, where they are by now; one thread's.

    Boxes move from picture to picture, step by step: motion between neighbours is small, and what
    is lost in one step would be lost over all of them.
    """

    def __init__(self) -> None:
        self._grid = ReuseGrid()
        self._last_item = 0
        self.forget()

    def forget(self) -> None:
        """Make the next picture a full one."""
        self._picture: Grey | None = None
        self._under: tuple[str, str, float, int] | None = None
        self._encoded_ns = self._picture_ns = 0
        self._detections: tuple[Detection, ...] = ()

    def due(self, unit: Unit, configuration: ModalityConfiguration) -> bool:
        """Say whether this picture must be encoded; call it once for each picture, in order."""
        takes = self._grid.takes(unit.stamp_ns, configuration.rate, configuration.reuse)
        return (
            takes
            or configuration.reuse <= 1
            or self._under != _key(configuration)
            or not 0 < unit.stamp_ns - self._picture_ns <= LONGEST_GAP_NS
            or unit.stamp_ns - self._encoded_ns > LONGEST_FOLLOWED_NS
        )

    def follow(self, unit: Unit, grey: Grey) -> tuple[Detection, ...] | None:
        """Return the remembered detections moved to this picture, in pixels of the full one.

        :param grey: the picture at half its size

        None if the memory is empty, the picture has another size, or most points were lost: the
        picture must be encoded then. A box that was lost alone moves by the median of the others.
        """
        boxes = None if self._picture is None else self._boxes_in(self._picture, grey)
        if boxes is None:
            return None
        self._picture, self._picture_ns = grey, unit.stamp_ns
        self._detections = tuple(
            replace(d, box=box) for d, box in zip(self._detections, boxes, strict=True)
        )
        return self._detections

    def _boxes_in(self, before: Grey, grey: Grey) -> Sequence[Box] | None:
        """Return where the remembered boxes are in the next picture; None if they were lost."""
        if before.shape != grey.shape:
            return None
        boxes = _boxes_of(self._detections)
        motion = box_motion(before, grey, boxes / _HALF)
        if len(boxes) and motion.followed.mean() < _LEAST_FOLLOWED:
            return None
        found = motion.followed > 0.0
        shift = motion.shift * _HALF
        if found.any():
            shift[~found] = np.median(shift[found], axis=0)
        return [Box(*box) for box in moved_boxes(boxes, shift, motion.scale).tolist()]

    def remember(
        self,
        unit: Unit,
        configuration: ModalityConfiguration,
        grey: Grey,
        detections: Sequence[Detection],
    ) -> tuple[Detection, ...]:
        """Keep what was detected in an encoded picture; return it with item numbers.

        :param grey: the picture at half its size
        """
        self._picture = grey
        self._under = _key(configuration)
        self._encoded_ns = self._picture_ns = unit.stamp_ns
        self._detections = tuple(replace(d, item=self._next_item()) for d in detections)
        return self._detections

    def _next_item(self) -> int:
        # 0 says that the object is not known.
        self._last_item = self._last_item % _LAST_ITEM + 1
        return self._last_item


def _key(configuration: ModalityConfiguration) -> tuple[str, str, float, int]:
    """Return what a memory is kept under: of another level boxes would jump."""
    return configuration.level, configuration.device, configuration.rate, configuration.reuse


def _boxes_of(detections: Sequence[Detection]) -> FloatArray:
    return np.array([d.box for d in detections], float).reshape(-1, 4)
