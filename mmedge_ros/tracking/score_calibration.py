"""Learns in flight what the scores of a detector mean that nobody has calibrated.

Networks are trained to rank boxes, and each puts its scores where it likes: 0.5 may be sure or a
guess. What is there is detected again in the next picture, and what is not mostly is not. So
the share detected again, by score, says how likely a box is a real object: of boxes that are new,
and of those that were there in the picture before. The tracker gets that chance, on the scale of
scores that it was made for, where it is less than the score itself: a weak box on the same statue
in picture after picture stays weak.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from mmedge_ros.core.data_types import NS_PER_S, Detection, FloatArray
from mmedge_ros.tracking.existence import score_of

# Boxes that are remembered, the fewest that say something, and after how many new ones again.
_MOST, _FEWEST, _RENEWED = 1000, 20, 10
_BINS = 4
# The next picture within this time, s; how near, in heights, and how alike in height what is
# found again lies in it.
_NEXT, _NEAR, _ALIKE = 0.2, 0.25, 0.8
# Share of boxes on nobody that are found again by chance, and the least share of what is known.
_BY_CHANCE, _LEAST_FOUND = 0.1, 0.5
_UNSURE = 0.02


# Scores, and the chances that boxes with them are real objects.
_Table = tuple[FloatArray, FloatArray]


class ScoreCalibration:
    """Takes the pictures of one camera in the order of their arrival."""

    def __init__(self) -> None:
        self._last_ns = 0
        self._last: FloatArray = np.zeros((0, 4))
        self._last_scores: list[float] = []
        self._there_before: NDArray[np.bool_] = np.zeros(0, np.bool_)
        # Score, whether it was found again, and whether it had been there before.
        self._known: deque[tuple[float, bool, bool]] = deque(maxlen=_MOST)
        self._new = 0
        self._turns = False
        # Of boxes that are new, and of those that were there before: scores and chances.
        self._tables: tuple[_Table, _Table] | None = None

    def take(
        self, stamp_ns: int, detections: Sequence[Detection], followed: bool = False
    ) -> tuple[Detection, ...]:
        """Learn from a picture, and return its detections with scores as the tracker reads them.

        Until enough is known they are left as they are.

        :param followed: it was not encoded, and its boxes are those of the one before
        """
        boxes = np.array([one.box for one in detections], np.float64).reshape(-1, 4)
        same = _same_places(self._last, boxes)
        if followed or stamp_ns <= self._last_ns:
            before = np.asarray(same[self._there_before].any(axis=0))
        else:
            before = self._compared(same, stamp_ns - self._last_ns <= _NEXT * NS_PER_S)
            self._last_ns, self._last, self._there_before = stamp_ns, boxes, before
            self._last_scores = [one.score for one in detections]
        if self._tables is None or self._turns:
            return tuple(detections)
        return tuple(
            replace(
                one,
                score=min(one.score, score_of(np.interp(one.score, *self._tables[was_there]))),
            )
            for one, was_there in zip(detections, before.tolist(), strict=True)
        )

    def restart(self) -> None:
        """Take what comes next for newer, whatever its stamp: time has begun anew."""
        self._last_ns = 0

    def _compared(self, same: NDArray[np.bool_], is_next: bool) -> NDArray[np.bool_]:
        """Learn which boxes of the last picture are found again; return those there before.

        Where most known ones are not detected again, the camera turns too fast to tell them
        apart: then nothing is learned, and all may have been there.
        """
        found: NDArray[np.bool_] = np.asarray(same.any(axis=1))
        known = found[self._there_before]
        self._turns = is_next and len(known) > 0 and bool(known.mean() < _LEAST_FOUND)
        if is_next and len(known) and not self._turns:
            self._known.extend(
                zip(self._last_scores, found.tolist(), self._there_before.tolist(), strict=True)
            )
            self._new += len(found)
        if self._new >= _RENEWED and len(self._known) >= _FEWEST:
            self._new = 0
            self._fit()
        return np.asarray((same.any(axis=0) & is_next) | self._turns, np.bool_)

    def _fit(self) -> None:
        scores, found, before = np.array(self._known, np.float64).T
        was_there = before > 0.0
        # A box in two pictures is hardly a mistake: so often real objects are detected again.
        most = float(found[was_there].mean())
        tables = []
        for kind in (~was_there, was_there):
            chosen = kind if np.count_nonzero(kind) >= _FEWEST else np.ones(len(kind), np.bool_)
            tables.append(_table(scores[chosen], found[chosen], most))
        self._tables = tables[0], tables[1]


def _same_places(before: FloatArray, now: FloatArray) -> NDArray[np.bool_]:
    """Tell which boxes (N, 4) and (M, 4) may be of one body: (N, M).

    Narrow ones need not overlap: cameras turn and people walk.
    """
    sizes = [of[:, 3] - of[:, 1] for of in (before, now)]
    middles = [(of[:, :2] + of[:, 2:]) / 2 for of in (before, now)]
    taller = np.maximum(sizes[0][:, None], sizes[1])
    apart = np.linalg.norm(middles[0][:, None] - middles[1], axis=-1)
    alike = np.minimum(sizes[0][:, None], sizes[1]) >= _ALIKE * taller
    return np.asarray(alike & (apart <= _NEAR * taller), np.bool_)


def _table(scores: FloatArray, found: FloatArray, most: float) -> _Table:
    """Read the share found again off equally full bins; it never falls as scores rise.

    :param most: share of real objects that are detected again
    """
    edges = np.unique(np.quantile(scores, np.arange(1, _BINS) / _BINS))
    bins = np.digitize(scores, edges)
    known = np.unique(bins)
    weights = np.array([np.count_nonzero(bins == n) for n in known], np.float64)
    shares = _rising(np.array([found[bins == n].mean() for n in known]), weights)
    chances = np.clip((shares - _BY_CHANCE) / (most - _BY_CHANCE), _UNSURE, 1.0 - _UNSURE)
    return np.array([scores[bins == n].mean() for n in known]), chances


def _rising(values: FloatArray, weights: FloatArray) -> FloatArray:
    """Return the nearest values that never fall (pool adjacent violators; Ayer et al. 1955)."""
    pools: list[tuple[float, float, int]] = []
    for value, weight in zip(values.tolist(), weights.tolist(), strict=True):
        pools.append((value, weight, 1))
        while len(pools) > 1 and pools[-2][0] > pools[-1][0]:
            (a, m, i), (b, n, j) = pools[-2:]
            pools[-2:] = [((a * m + b * n) / (m + n), m + n, i + j)]
    return np.repeat([value for value, _, _ in pools], [count for _, _, count in pools])
