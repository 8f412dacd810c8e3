"""Matches the boxes of one result with the true scene of the same instant.

Visible people count: at least 8 px tall, and at least half of their outline in the picture and
not hidden. An unmatched box is *ignored*, neither right nor wrong, where at least half of it lies
on the box of an uncounted person: a smaller or more hidden one, or a cyclist, whom detectors call
a person. On a dog, a car or nothing it is wrong.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from mmedge_ros.core.data_types import Box, FloatArray, Track
from mmedge_ros.replay.ground_truth import CYCLIST, PERSON, TrueFrame
from mmedge_ros.tracking.data_association import intersection_over_union

MINIMUM_HEIGHT = 8.0
MINIMUM_VISIBILITY = 0.5
MINIMUM_IOU = 0.5
_IGNORED_SHARE = 0.5

Mask = NDArray[np.bool_]
Places = NDArray[np.intp]


class Match(NamedTuple):
    """Matches of the P counted people and the M boxes of a result.

    ``overlaps`` (P,) are the IoU of the one-to-one assignment with the greatest sum, 0 for
    those missed. ``partners`` (P,) are the places of the boxes that meet them with an IoU of
    at least 0.5, -1 where none does. ``ignored`` (M,) marks boxes that are not judged.
    """

    overlaps: FloatArray
    partners: Places
    ignored: Mask

    @property
    def hits(self) -> int:
        """How many people were met by a box."""
        return int(np.count_nonzero(self.partners >= 0))

    @property
    def false(self) -> int:
        """How many boxes are wrong."""
        return len(self.ignored) - self.hits - int(np.count_nonzero(self.ignored))


def counted_people(frame: TrueFrame) -> Mask:
    """Mark (N,) the visible people."""
    mask: Mask = (
        (frame.labels == PERSON)
        & (frame.visibility >= MINIMUM_VISIBILITY)
        & (frame.heights >= MINIMUM_HEIGHT)
    )
    return mask


def uncounted_people(frame: TrueFrame) -> Mask:
    """Mark (N,) the people whose boxes are ignored."""
    mask: Mask = np.isin(frame.labels, (PERSON, CYCLIST)) & ~counted_people(frame)
    return mask


def person_boxes(
    tracks: Sequence[Track], elapsed: float, size: tuple[int, int] = (0, 0)
) -> tuple[list[Track], FloatArray]:
    """Return the tracks that show the box of a person, and those boxes (M, 4) some time later.

    :param elapsed: seconds since the state time of the tracks
    :param size: width and height of the picture, to which boxes are cut as the true ones are
    """
    shown: list[Track] = []
    boxes: list[Box] = []
    for track in tracks:
        box = track.box_at(elapsed) if track.label == PERSON else None
        if box is not None and np.isfinite(box).all():
            shown.append(track)
            boxes.append(box)
    corners = np.array(boxes, np.float64).reshape(-1, 4)
    width, height = size
    if width and height:
        corners = np.clip(corners, 0.0, (width, height, width, height))
    return shown, corners


def best_overlaps(people: FloatArray, boxes: FloatArray) -> FloatArray:
    """Return the IoU (P,) of people (P, 4) with the boxes (M, 4) assigned to them.

    One box to one person, so that the sum is as great as it can be; 0 for those left alone.
    """
    overlaps = np.zeros(len(people))
    iou = intersection_over_union(people, boxes)
    rows, columns = linear_sum_assignment(iou, maximize=True)
    overlaps[rows] = iou[rows, columns]
    return overlaps


def met_pairs(people: FloatArray, boxes: FloatArray) -> tuple[Places, Places]:
    """Return the places of people (P, 4) and of the boxes (M, 4) that meet them, one to one."""
    iou = intersection_over_union(people, boxes)
    # Pairs below the limit are worth nothing, so that they never break up one above it.
    worth = np.where(iou >= MINIMUM_IOU, iou, 0.0)
    rows, columns = linear_sum_assignment(worth, maximize=True)
    met = worth[rows, columns] > 0.0
    return rows[met], columns[met]


def match_boxes(frame: TrueFrame, boxes: FloatArray) -> Match:
    """Compare the boxes (M, 4) of a result with everything that is true at its state time."""
    people = frame.boxes[counted_people(frame)]
    partners = np.full(len(people), -1, np.intp)
    rows, columns = met_pairs(people, boxes)
    partners[rows] = columns
    ignored = covered_boxes(boxes, frame.boxes[uncounted_people(frame)])
    ignored[partners[partners >= 0]] = False
    return Match(best_overlaps(people, boxes), partners, ignored)


def covered_boxes(boxes: FloatArray, regions: FloatArray) -> Mask:
    """Mark boxes (M,) of which at least half lies inside one of the regions (R, 4)."""
    regions = regions[np.isfinite(regions).all(axis=1)]
    if not len(regions) or not len(boxes):
        return np.zeros(len(boxes), np.bool_)
    low = np.maximum(boxes[:, None, :2], regions[None, :, :2])
    high = np.minimum(boxes[:, None, 2:], regions[None, :, 2:])
    inside = np.prod(np.clip(high - low, 0.0, None), axis=2).max(axis=1)
    area = np.prod(np.clip(boxes[:, 2:] - boxes[:, :2], 0.0, None), axis=1)
    covered: Mask = (area > 0.0) & (inside >= _IGNORED_SHARE * area)
    return covered
