"""Suppression against its textbook definition."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from mmedge_ros.encoding.detection_heads import Candidates
from mmedge_ros.encoding.non_maximum_suppression import best_boxes

boxes = hnp.arrays(
    np.float32,
    st.tuples(st.integers(0, 30), st.just(4)),
    elements=st.floats(0, 400, width=32),
).map(lambda a: np.concatenate((a[:, :2], a[:, :2] + a[:, 2:] + 1), axis=1))


def iou(a: np.ndarray, b: np.ndarray) -> float:
    sides = np.minimum(a[2:], b[2:]) - np.maximum(a[:2], b[:2])
    common = float(np.prod(np.clip(sides, 0, None)))
    return common / float(np.prod(a[2:] - a[:2]) + np.prod(b[2:] - b[:2]) - common)


@settings(deadline=None)
@given(boxes=boxes, seed=st.integers(0, 1000))
def test_suppression_agrees_with_its_textbook_definition(boxes: np.ndarray, seed: int) -> None:
    rng = np.random.default_rng(seed)
    scores = rng.permutation(len(boxes)).astype(np.float32) / 100 + 0.1
    classes = rng.integers(0, 2, len(boxes))
    wide = boxes.astype(np.float64)
    expected: list[int] = []
    for i in np.argsort(-scores):
        rivals = [j for j in expected if classes[j] == classes[i]]
        overlaps = [iou(wide[i], wide[j]) for j in rivals]
        if any(abs(overlap - 0.45) < 1e-6 for overlap in overlaps):
            return  # on the threshold rounding decides
        if all(overlap <= 0.45 for overlap in overlaps):
            expected.append(int(i))
    assert best_boxes(Candidates(boxes, scores, classes), 0.45).tolist() == expected


def test_more_candidates_than_can_be_compared_keep_the_best() -> None:
    count = 3000
    corners = np.array([(i % 60 * 10, i // 60 * 10) for i in range(count)], np.float32)
    found = Candidates(
        np.concatenate((corners, corners + 8), axis=1),
        np.linspace(0.1, 0.9, count, dtype=np.float32),
        np.zeros(count, np.intp),
    )
    best = best_boxes(found, 0.45)
    assert best[0] == count - 1
    assert len(best) == 1000
