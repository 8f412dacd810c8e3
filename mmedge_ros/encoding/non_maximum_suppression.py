"""Non-maximum suppression: of overlapping boxes of one class the best stays."""

from __future__ import annotations

import cv2
import numpy as np
from numpy.typing import NDArray

from mmedge_ros.encoding.detection_heads import Candidates

# Suppression compares all pairs: this bounds it to about 2 ms when a broken network or a
# threshold of zero lets every cell fire. A crowd of 50 people makes some 500 candidates.
_MOST_CANDIDATES = 1000


def best_boxes(found: Candidates, iou_threshold: float) -> NDArray[np.intp]:
    """Return the indices of the boxes that no better box of their class overlaps, best first."""
    if len(found.scores) == 0:
        return np.zeros(0, np.intp)
    candidates = np.argsort(-found.scores, kind='stable')[:_MOST_CANDIDATES]
    boxes = found.boxes[candidates].astype(np.float64)
    # Classes are moved apart, so that one call serves all; double keeps the pixels exact.
    span = 2.0 * float(np.abs(boxes).max()) + 1.0
    boxes[:, 2:] -= boxes[:, :2]
    boxes[:, 0] += found.classes[candidates] * span
    # Lists: 3 times faster than arrays here (0.05 ms against 0.14 ms for 300 boxes), and
    # 5 times faster than the same in numpy.
    best = cv2.dnn.NMSBoxes(boxes.tolist(), found.scores[candidates].tolist(), 0.0, iou_threshold)
    return candidates[np.asarray(best, np.intp).reshape(-1)]
