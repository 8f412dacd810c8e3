"""What is lost where the boxes of one result are shown in place of another's; needs no truth.

1 - IoU is a distance: where two boxes lie one on the other, the IoU of neither with the truth
falls by more than that.
"""

from __future__ import annotations

import numpy as np

from mmedge_ros.core.data_types import NS_PER_S, Decision, FloatArray
from mmedge_ros.tracking.data_association import assign, intersection_over_union


def decision_loss(one: Decision, other: Decision, size: tuple[int, int] = (0, 0)) -> float:
    """Return the loss, 0..1, of one decision against another for the same window end.

    Both are predicted to the window end, so that an early one is not excused by its age.

    :param size: width and height of the picture, to which boxes are cut
    """
    at_ns = one.window_end_ns
    return box_loss(boxes_at(one, at_ns, size), boxes_at(other, at_ns, size))


def box_loss(one: FloatArray, other: FloatArray) -> float:
    """Return 1 - the mean IoU of boxes (N, 4) with (M, 4), matched one to one.

    A box without a partner has an IoU of 0. Nothing is lost where both show nothing.
    """
    if not len(one) or not len(other):
        return float(len(one) != len(other))
    overlap = intersection_over_union(one, other)
    matched = sum(float(overlap[pair]) for pair in assign(1.0 - overlap).pairs)
    return min(max(1.0 - matched / max(len(one), len(other)), 0.0), 1.0)


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
