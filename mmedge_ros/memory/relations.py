"""Relations between remembered objects, from places on the map and boxes, never from looks.

Two views of different objects count together if they are of nearly the same time, or the other
object stood still not long before or after.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mmedge_ros.core.data_types import NS_PER_S, FloatArray
from mmedge_ros.memory.moment import STILL_BELOW
from mmedge_ros.memory.query import RelationKind
from mmedge_ros.memory.store import Integers, ItemTable

# Distances over ground, m. Left and right are said of what stands side by side.
NEAR, SIDE_BY_SIDE = 5.0, 15.0
_SAME_TIME_NS, _STILL_FOR_NS = NS_PER_S, 60 * NS_PER_S
# Directions as seen from the drone that differ by less (sine) are the same.
_LEAST_SINE = 0.01
# Boxes stand beside each other if their middles are apart by this share of their mean width.
_LEAST_GAP = 0.5
# So many subjects are looked at at once: in a crowd each has thousands of neighbours.
_AT_ONCE = 500


class _Pairs(NamedTuple):
    """Rows (P,) of subjects and of others in the table."""

    subjects: Integers
    others: Integers

    def where(self, holds: NDArray[np.bool_]) -> _Pairs:
        return _Pairs(self.subjects[holds], self.others[holds])


def limits() -> dict[str, float]:
    """Return the limits of relations as plain data (m, ns), for a page that judges them."""
    return {
        'near': NEAR,
        'side_by_side': SIDE_BY_SIDE,
        'same_time': _SAME_TIME_NS,
        'still_for': _STILL_FOR_NS,
        'least_sine': _LEAST_SINE,
        'least_gap': _LEAST_GAP,
    }


def best_partners(
    kind: RelationKind,
    table: ItemTable,
    subjects: Integers,
    others: Integers,
    scores: FloatArray,
) -> Integers:
    """Return for each subject the best other object in this relation to it, -1 if there is none.

    :param subjects: rows (N,) of the table
    :param others: rows (M,)
    :param scores: how well each of the others fits (M,)
    :returns: places (N,) in the others
    """
    score_of, place_of = np.zeros(len(table)), np.zeros(len(table), np.int64)
    score_of[others], place_of[others] = scores, np.arange(len(others))
    found = np.full(len(table), -1, np.int64)
    for begin in range(0, len(subjects), _AT_ONCE):
        for pairs in _holding(kind, table, subjects[begin : begin + _AT_ONCE], others):
            # Of several values for one row the last one stays, so the best one comes last.
            order = np.argsort(score_of[pairs.others], kind='stable')
            chosen, before = pairs.others[order], found[pairs.subjects[order]]
            better = (before < 0) | (score_of[chosen] > score_of[before])
            found[pairs.subjects[order][better]] = chosen[better]
    rows = found[subjects]
    return np.where(rows >= 0, place_of[rows], -1)


def _holding(
    kind: RelationKind, table: ItemTable, subjects: Integers, others: Integers
) -> Iterator[_Pairs]:
    """Yield the pairs in this relation; objects at unknown places are in none."""
    if kind == RelationKind.NEAR:
        yield _together(table, _neighbours(table, subjects, others, NEAR))
        return
    sign = 1.0 if kind == RelationKind.LEFT_OF else -1.0
    on_map = _together(table, _neighbours(table, subjects, others, SIDE_BY_SIDE))
    # One picture says more than places do.
    stamps = table.integers['stamp']
    on_map = on_map.where(stamps[on_map.subjects] != stamps[on_map.others])
    yield on_map.where(sign * _sines(table, on_map) > _LEAST_SINE)
    in_picture = _together(table, _of_one_picture(table, subjects, others))
    yield in_picture.where(sign * _gaps(table, in_picture) > _LEAST_GAP)


def _neighbours(table: ItemTable, subjects: Integers, others: Integers, radius: float) -> _Pairs:
    """Return the pairs that are within a distance (m) of each other."""
    from scipy.spatial import cKDTree  # half a second, which few questions need

    places = table.positions[:, :2]
    here, there = (rows[np.isfinite(places[rows]).all(axis=1)] for rows in (subjects, others))
    near = cKDTree(places[here]).sparse_distance_matrix(
        cKDTree(places[there]), radius, output_type='ndarray'
    )
    return _Pairs(here[near['i']], there[near['j']])


def _of_one_picture(table: ItemTable, subjects: Integers, others: Integers) -> _Pairs:
    stamps = table.integers['stamp']
    sorted_others = others[np.argsort(stamps[others], kind='stable')]
    known = stamps[sorted_others]
    begins = np.searchsorted(known, stamps[subjects], 'left')
    counts = np.searchsorted(known, stamps[subjects], 'right') - begins
    # 0, 1, ... within each subject.
    steps = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    return _Pairs(np.repeat(subjects, counts), sorted_others[np.repeat(begins, counts) + steps])


def _together(table: ItemTable, pairs: _Pairs) -> _Pairs:
    """Return the pairs of different objects that were there at one time."""
    stamps, runs, tracks = (table.integers[name] for name in ('stamp', 'run', 'track'))
    speeds = np.hypot(*table.velocities[pairs.others, :2].T)
    reach = np.where(speeds < STILL_BELOW, _STILL_FOR_NS, _SAME_TIME_NS)
    return pairs.where(
        (runs[pairs.subjects] == runs[pairs.others])
        & (tracks[pairs.subjects] != tracks[pairs.others])
        & (np.abs(stamps[pairs.subjects] - stamps[pairs.others]) <= reach)
    )


def _sines(table: ItemTable, pairs: _Pairs) -> FloatArray:
    """Return the sines (P,) of the turn from the other to the subject, positive: to the left.

    Both are seen from where the drone was when it saw the subject.
    """
    places, drones = table.positions[:, :2], table.drones[pairs.subjects, :2]
    one, other = (places[rows] - drones for rows in pairs)
    cross = other[:, 0] * one[:, 1] - other[:, 1] * one[:, 0]
    return np.asarray(cross / np.maximum(np.hypot(*one.T) * np.hypot(*other.T), 1e-9))


def _gaps(table: ItemTable, pairs: _Pairs) -> FloatArray:
    """Return how far right of the subject the other is in the picture, in mean widths (P,)."""
    one, other = (table.reals('x0', 'x1')[rows] for rows in pairs)
    widths = 0.5 * (one[:, 1] - one[:, 0] + other[:, 1] - other[:, 0])
    return np.asarray((other - one).mean(axis=1) / np.maximum(widths, 1e-9))
