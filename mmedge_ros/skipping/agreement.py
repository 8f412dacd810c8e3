"""When two decisions are the same: the same people, their boxes where they are expected."""

from __future__ import annotations

import numpy as np

from mmedge_ros.data_types import NS_PER_S, Decision, FloatArray
from mmedge_ros.tracking.data_association import assign, intersection_over_union

# Below this two boxes are not taken to mean the same (MMEDGE, label of the gate).
EQUAL_IOU = 0.7


def decisions_agree(one: Decision, other: Decision, size: tuple[int, int] = (0, 0)) -> bool:
    """Whether two decisions for one window end show the same people at the same places.

    Both are predicted to the window end, so that an early one is not excused by its age.

    :param size: width and height of the picture, to which boxes are cut
    """
    at_ns = one.window_end_ns
    return boxes_agree(boxes_at(one, at_ns, size), boxes_at(other, at_ns, size))


def boxes_agree(one: FloatArray, other: FloatArray) -> bool:
    """Whether boxes (N, 4) and (M, 4) can be matched one to one, each pair closely enough."""
    if len(one) != len(other):
        return False
    if not len(one):
        return True
    overlap = intersection_over_union(one, other)
    cost = np.where(overlap >= EQUAL_IOU, 1.0 - overlap, np.inf)
    return len(assign(cost).pairs) == len(one)


def boxes_at(decision: Decision, at_ns: int, size: tuple[int, int] = (0, 0)) -> FloatArray:
    """Return the boxes (N, 4) a decision shows, moved to an instant and cut to the picture."""
    elapsed = (at_ns - decision.state_ns) / NS_PER_S
    boxes = [box for track in decision.tracks if (box := track.box_at(elapsed)) is not None]
    corners = np.array(boxes, np.float64).reshape(-1, 4)
    width, height = size
    if width and height:
        corners = np.clip(corners, 0.0, (width, height, width, height))
        # What has left the picture by then is not shown.
        corners = corners[(corners[:, 2:] - corners[:, :2]).min(axis=1, initial=np.inf) >= 1.0]
    return corners
