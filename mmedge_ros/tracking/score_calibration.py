"""Learns in flight what the scores of a detector mean that nobody has calibrated.

Networks are trained to rank boxes, and each puts its scores where it likes: 0.5 may be sure or a
guess. What is there is found again in the next picture, and what is not mostly is not. So the
share found again, by score, says how likely a box is somebody; the tracker gets that, on the scale
of scores that it was made for. Boxes that are wrong in picture after
picture, such as a statue, it takes for people: nothing here tells them apart.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from mmedge_ros.core.data_types import NS_PER_S, Detection, FloatArray
from mmedge_ros.tracking.data_association import intersection_over_union
from mmedge_ros.tracking.existence import score_of

# Boxes that are remembered, the fewest that say something, and after how many new ones again.
_MOST, _FEWEST, _RENEWED = 1000, 20, 10
_BINS = 4
# The next picture within this time, s, and the overlap of what is found again in it.
_NEXT, _FOUND = 0.2, 0.3
# Share of boxes on nobody that are found again by chance, and the least share of people.
_BY_CHANCE, _LEAST_FOUND = 0.1, 0.6
_UNSURE = 0.02


class ScoreCalibration:
    """Takes the pictures of one camera in the order of their arrival."""

    def __init__(self) -> None:
        self._last_ns = 0
        self._last: list[Detection] = []
        self._seen_before: NDArray[np.bool_] = np.zeros(0, np.bool_)
        # Score, whether it was found again, and whether it had been there before.
        self._known: deque[tuple[float, bool, bool]] = deque(maxlen=_MOST)
        self._new = 0
        self._scores: FloatArray = np.zeros(0)
        self._chances: FloatArray = np.zeros(0)

    def take(self, stamp_ns: int, detections: Sequence[Detection]) -> tuple[Detection, ...]:
        """Learn from a picture, and return its detections with scores as the tracker reads them.

        Until enough is known they are left as they are.
        """
        if stamp_ns > self._last_ns:
            is_next = stamp_ns - self._last_ns <= _NEXT * NS_PER_S
            self._learn(detections, is_next)
            self._last_ns, self._last = stamp_ns, list(detections)
        if not len(self._scores):
            return tuple(detections)
        chances = np.interp([one.score for one in detections], self._scores, self._chances)
        return tuple(
            replace(one, score=score_of(chance))
            for one, chance in zip(detections, chances.tolist(), strict=True)
        )

    def _learn(self, detections: Sequence[Detection], is_next: bool) -> None:
        before, now = (
            np.array([one.box for one in of], np.float64).reshape(-1, 4)
            for of in (self._last, detections)
        )
        same = intersection_over_union(before, now) >= _FOUND
        if is_next:
            scores = [one.score for one in self._last]
            found = [bool(row.any()) for row in same]
            self._known.extend(zip(scores, found, self._seen_before.tolist(), strict=True))
            self._new += len(scores)
        self._seen_before = np.asarray(same.any(axis=0) & is_next)
        if self._new >= _RENEWED and len(self._known) >= _FEWEST:
            self._new = 0
            self._fit()

    def _fit(self) -> None:
        """Read the share found again off equally full bins; it never falls as scores rise."""
        scores, found, before = np.array(self._known, np.float64).T
        edges = np.unique(np.quantile(scores, np.arange(1, _BINS) / _BINS))
        bins = np.digitize(scores, edges)
        known = np.unique(bins)
        weights = np.array([np.count_nonzero(bins == n) for n in known], np.float64)
        shares = _rising(np.array([found[bins == n].mean() for n in known]), weights)
        # Who was there in two pictures is hardly a mistake: so often people are found again.
        there = found[before > 0.0]
        most = max(float(there.mean()) if len(there) else 1.0, _LEAST_FOUND)
        chances = (shares - _BY_CHANCE) / (most - _BY_CHANCE)
        self._chances = np.clip(chances, _UNSURE, 1.0 - _UNSURE)
        self._scores = np.array([scores[bins == n].mean() for n in known])


def _rising(values: FloatArray, weights: FloatArray) -> FloatArray:
    """Return the nearest values that never fall (pool adjacent violators; Ayer et al. 1955)."""
    pools: list[tuple[float, float, int]] = []
    for value, weight in zip(values.tolist(), weights.tolist(), strict=True):
        pools.append((value, weight, 1))
        while len(pools) > 1 and pools[-2][0] > pools[-1][0]:
            (a, m, i), (b, n, j) = pools[-2:]
            pools[-2:] = [((a * m + b * n) / (m + n), m + n, i + j)]
    return np.repeat([value for value, _, _ in pools], [count for _, _, count in pools])
