"""How well a tracker's boxes follow the true ones: CLEAR MOT and identity figures.

CLEAR: Bernardin and Stiefelhagen, "Evaluating Multiple Object Tracking Performance", 2008.
Identity: Ristani et al., "Performance Measures and a Data Set for Multi-Target, Multi-Camera
Tracking", 2016. Both with an IoU of at least 0.5, as the MOTChallenge benchmarks do it.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import min_weight_full_bipartite_matching

from mmedge_ros.core.data_types import FloatArray
from mmedge_ros.tracking.data_association import assign

MINIMUM_IOU = 0.5
# The id of a box without an object, as detections have it.
NO_ID = -1
# Shares of its frames from which a person counts as mostly tracked, and below which mostly lost.
MOSTLY_TRACKED, MOSTLY_LOST = 0.8, 0.2


@dataclass(frozen=True)
class MotFigures:
    """Shares are 0..1 and NaN where there is nothing to divide by.

    ``motp`` is the mean IoU of matched boxes. ``covered`` is the share of true boxes that any
    box overlaps, matched or not. Where the result has no ids (detections) the figures that
    need them, ``mota`` among them, are NaN or None.
    """

    mota: float
    idf1: float
    idp: float
    idr: float
    motp: float
    recall: float
    precision: float
    covered: float
    id_switches: int | None
    fragmentations: int | None
    false_positives: int
    false_negatives: int
    mostly_tracked: int
    partially_tracked: int
    mostly_lost: int
    true_boxes: int
    result_boxes: int
    true_ids: int
    result_ids: int | None
    frames: int
    # Of the result's ids, those that were matched with a person in some frame.
    matched_ids: int | None

    @property
    def matches(self) -> int:
        """True boxes that are matched."""
        return self.true_boxes - self.false_negatives

    @property
    def idtp(self) -> int:
        """Matches under the one id that is best assigned to each person, of a result with ids."""
        return round(self.idr * self.true_boxes) if self.true_boxes else 0


class MotFrame(NamedTuple):
    """The true and the result ids of one frame.

    ``closeness`` (N, M) is 0..1; pairs that reach `MINIMUM_IOU` may be matched.
    """

    true_ids: Sequence[int]
    result_ids: Sequence[int]
    closeness: FloatArray


@dataclass
class _Person:
    """State of one true object: its matches so far, and how often it was lost."""

    ids: set[int] = field(default_factory=set)
    last_match: int = NO_ID
    present: int = 0
    matched: int = 0
    fragmentations: int = 0
    is_missed: bool = False


@dataclass
class _Tally:
    """What is counted on the way through the frames."""

    frames: int = 0
    true_boxes: int = 0
    result_boxes: int = 0
    result_ids: set[int] = field(default_factory=set)
    matched_ids: set[int] = field(default_factory=set)
    matches: int = 0
    switches: int = 0
    covered: int = 0
    overlap: float = 0.0
    people: dict[int, _Person] = field(default_factory=lambda: defaultdict(_Person))
    together: Counter[tuple[int, int]] = field(default_factory=Counter)


def evaluate_frames(frames: Iterable[MotFrame]) -> MotFigures:
    """Match true and result ids through frames, whatever closeness means.

    Without a true id in any frame their shares are NaN.
    """
    return _figures(_tallied(frames))


def ids_by_person(frames: Iterable[MotFrame]) -> dict[int, set[int]]:
    """Return the result ids that each true id was matched with, matched as for the figures."""
    return {number: person.ids for number, person in _tallied(frames).people.items()}


def _tallied(frames: Iterable[MotFrame]) -> _Tally:
    tally = _Tally()
    for frame in frames:
        _take_frame(tally, frame)
    return tally


def matching_cost(iou: FloatArray) -> FloatArray:
    """Return 1 - IoU, infinite where the overlap is too small."""
    distance = 1.0 - iou
    return np.where(distance <= 1.0 - MINIMUM_IOU, distance, np.inf)


def _take_frame(tally: _Tally, frame: MotFrame) -> None:
    """Match one frame: earlier matches are kept, the others take the least distance."""
    true_ids, result_ids, iou = frame
    cost = matching_cost(iou)
    tally.frames += 1
    tally.true_boxes += len(true_ids)
    tally.result_boxes += len(result_ids)
    tally.result_ids.update(result_ids)
    for row, column in np.argwhere(np.isfinite(cost)).tolist():
        tally.together[true_ids[row], result_ids[column]] += 1
    if result_ids:
        tally.covered += int(np.isfinite(cost).any(axis=1).sum())
    pairs = _kept_pairs(tally, true_ids, result_ids, cost)
    rows = sorted(set(range(len(true_ids))) - set(pairs))
    columns = sorted(set(range(len(result_ids))) - set(pairs.values()))
    for row, column in assign(cost[np.ix_(rows, columns)]).pairs:
        pairs[rows[row]] = columns[column]
        person = tally.people[true_ids[rows[row]]]
        tally.switches += person.last_match not in (NO_ID, result_ids[columns[column]])
    for row, column in pairs.items():
        person = tally.people[true_ids[row]]
        person.last_match = result_ids[column]
        person.ids.add(result_ids[column])
        tally.matched_ids.add(result_ids[column])
        tally.overlap += float(iou[row, column])
    tally.matches += len(pairs)
    for row, number in enumerate(true_ids):
        _note_presence(tally.people[number], row in pairs)


def _kept_pairs(
    tally: _Tally, true_ids: Sequence[int], result_ids: Sequence[int], cost: FloatArray
) -> dict[int, int]:
    """Pair true ids with their last match where they still overlap, however old it is.

    Two people may have had the same id at different times; the smaller true id goes first.
    """
    columns = {number: column for column, number in enumerate(result_ids) if number != NO_ID}
    pairs: dict[int, int] = {}
    for row in sorted(range(len(true_ids)), key=true_ids.__getitem__):
        last = tally.people[true_ids[row]].last_match
        column = columns.get(last, -1)
        if column >= 0 and np.isfinite(cost[row, column]):
            pairs[row] = column
            del columns[last]
    return pairs


def _note_presence(person: _Person, is_matched: bool) -> None:
    """Count a fragmentation when a person matched before is matched again after a miss."""
    person.present += 1
    if is_matched:
        person.fragmentations += person.is_missed and person.matched > 0
        person.matched += 1
    person.is_missed = not is_matched


def _identity_matches(together: Counter[tuple[int, int]]) -> int:
    """Count the frames in which people carry the one id that is best assigned to them.

    The assignment of true ids to result ids is global. The matrix of all pairs may be huge
    and is almost empty, so a sparse solver is used; each true id may also stay alone.
    """
    if not together:
        return 0
    true_ids = {number: row for row, number in enumerate(sorted({t for t, _ in together}))}
    result_ids = {number: column for column, number in enumerate(sorted({f for _, f in together}))}
    rows = [true_ids[t] for t, _ in together]
    columns = [result_ids[f] for _, f in together]
    most = max(together.values()) + 1
    costs = [most - count for count in together.values()]
    alone = range(len(true_ids))
    # Older solvers take 32-bit indices only.
    places = np.array(
        [[*rows, *alone], [*columns, *(len(result_ids) + row for row in alone)]], np.int32
    )
    graph = coo_array(
        (np.array([*costs, *(most for _ in alone)], np.float64), tuple(places)),
        shape=(len(true_ids), len(result_ids) + len(true_ids)),
    ).tocsr()
    chosen = zip(*min_weight_full_bipartite_matching(graph), strict=True)
    costs_chosen = sum(float(graph[int(row), int(column)]) for row, column in chosen)
    return round(most * len(true_ids) - costs_chosen)


def _figures(tally: _Tally) -> MotFigures:
    has_ids = NO_ID not in tally.result_ids
    people = tally.people.values()
    shares = [person.matched / person.present for person in people]
    tracked = sum(share >= MOSTLY_TRACKED for share in shares)
    lost = sum(share < MOSTLY_LOST for share in shares)
    true, shown = tally.true_boxes, tally.result_boxes
    missed, extra = true - tally.matches, shown - tally.matches
    same = _identity_matches(tally.together) if has_ids else 0
    unknown = math.nan
    return MotFigures(
        1.0 - share(missed + extra + tally.switches, true) if has_ids else unknown,
        share(2 * same, true + shown) if has_ids else unknown,
        share(same, shown) if has_ids else unknown,
        share(same, true) if has_ids else unknown,
        share(tally.overlap, tally.matches),
        share(tally.matches, true),
        share(tally.matches, shown),
        share(tally.covered, true),
        tally.switches if has_ids else None,
        sum(person.fragmentations for person in people) if has_ids else None,
        extra,
        missed,
        tracked,
        len(shares) - tracked - lost,
        lost,
        true,
        shown,
        len(shares),
        len(tally.result_ids) if has_ids else None,
        tally.frames,
        len(tally.matched_ids) if has_ids else None,
    )


def share(part: float, whole: float) -> float:
    """Return the quotient; NaN where there is nothing to divide by."""
    return part / whole if whole else math.nan
