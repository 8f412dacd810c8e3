"""What is true of simulated flights: as if they were seen perfectly, and when an answer is right.

An object is in view where a picture shows at least half of it, 14 px high or more.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mmedge_ros.data_types import FloatArray
from mmedge_ros.memory.views import LEAST_HEIGHT
from mmedge_ros.questions.observations import Observations, ObservedTrack
from mmedge_ros.questions.observed_flight import drone_path
from mmedge_ros.questions.question import Kind
from mmedge_ros.records.ground_truth import GroundTruth
from mmedge_ros.report.truth_matching import MINIMUM_VISIBILITY

# One of our tracks is of the object that is nearest to it, within this (m), most of the time.
_OF_OBJECT = 2.0


class Sort(Enum):
    """How an answer is compared with the right one."""

    SAME = 'same'
    NUMBER = 'number'
    ANGLE = 'angle'
    PLACE = 'place'
    OBJECT = 'object'
    OBJECTS = 'objects'


class Expected(NamedTuple):
    """The exact answer; ``within`` is how far a number may be off."""

    sort: Sort
    value: Any
    within: float = 0.0


class TrueQuestion(NamedTuple):
    """A question with {} for the numbers of ``objects``, asked of a span (ns)."""

    kind: Kind
    form: str
    text: str
    expected: Expected
    begin_ns: int
    end_ns: int
    objects: tuple[int, ...] = ()


def true_observations(truth: GroundTruth, stamps_ns: NDArray[np.int64]) -> Observations:
    """Return what was in view at instants, as if it had been tracked without a fault.

    The camera counts as blind where the truth is not known.
    """
    stamps = [int(ns) for ns in np.unique(stamps_ns)]
    known = [truth.frame_at(stamp_ns) is not None for stamp_ns in stamps]
    rows: dict[int, list[tuple[int, str, FloatArray, FloatArray]]] = {}
    for stamp_ns in stamps:
        frame = truth.frame_at(stamp_ns)
        if frame is None:
            continue
        with np.errstate(invalid='ignore'):
            in_view = (frame.visibility >= MINIMUM_VISIBILITY) & (frame.heights >= LEAST_HEIGHT)
        for place in np.flatnonzero(in_view):
            rows.setdefault(int(frame.ids[place]), []).append(
                (
                    *(stamp_ns, str(frame.labels[place])),
                    *(frame.positions[place], frame.velocities[place]),
                )
            )
    tracks = tuple(
        ObservedTrack(
            number,
            of[0][1],
            np.array([row[0] for row in of], np.int64),
            np.array([row[2] for row in of]),
            np.array([row[3] for row in of]),
            np.zeros(len(of)),
            np.ones(len(of), bool),
        )
        for number, of in rows.items()
    )
    drone = drone_path(truth.ego, stamps)
    return Observations(tracks, np.array(stamps, np.int64), np.array(known), truth.frame_id, drone)


def owners_of(ours: Observations, true: Observations) -> dict[int, int]:
    """Return the object that each of our tracks is of most of the time; others are left out."""
    owners = {}
    for track in ours.tracks:
        votes: dict[int, int] = {}
        for row, stamp_ns in enumerate(track.stamps_ns):
            gaps = {}
            for one in true.tracks:
                place = int(np.searchsorted(one.stamps_ns, stamp_ns))
                if place < len(one.stamps_ns) and one.stamps_ns[place] == stamp_ns:
                    gap = one.positions[place, :2] - track.positions[row, :2]
                    gaps[one.id] = float(np.hypot(*gap))
            best = min(gaps, key=lambda number: gaps[number], default=None)
            if best is not None and gaps[best] <= _OF_OBJECT:
                votes[best] = votes.get(best, 0) + 1
        if votes:
            owners[track.id] = max(votes, key=lambda number: votes[number])
    return owners


def known_when(ours: Observations, owners: Mapping[int, int]) -> dict[int, NDArray[np.int64]]:
    """Return when (ns) there was a track of ours of each object: it has a number then."""
    stamps: dict[int, list[NDArray[np.int64]]] = {}
    for track in ours.tracks:
        if track.id in owners:
            stamps.setdefault(owners[track.id], []).append(track.stamps_ns)
    return {number: np.unique(np.concatenate(of)) for number, of in stamps.items()}


def track_of(ours: Observations, owners: Mapping[int, int], asked: TrueQuestion, of: int) -> int:
    """Return the number of our track of an object, the one seen longest in the span that is asked.

    :raises KeyError: if there is none
    """
    best: tuple[int, int, int] | None = None
    for track in ours.tracks:
        if owners.get(track.id) != of:
            continue
        stamps = track.stamps_ns
        within = int(np.count_nonzero((stamps >= asked.begin_ns) & (stamps <= asked.end_ns)))
        best = max(best or (-1, -1, -1), (within, len(stamps), track.id))
    if best is None:
        raise KeyError(of)
    return best[2]


def is_right(expected: Expected, value: object, owners: Mapping[int, int] | None = None) -> bool:
    """Whether an answer is right.

    :param owners: the objects of tracks by their numbers; None: they are numbered alike
    """

    def owner(number: object) -> object:
        if owners is None or not isinstance(number, int):
            return number
        return owners.get(number, ('nobody', number))

    sort, right, within = expected
    if value is None:
        return False
    if sort is Sort.OBJECT:
        return bool(owner(value) == right)
    if sort is Sort.OBJECTS:
        return isinstance(value, tuple) and set(map(owner, value)) == set(right)
    if sort is Sort.PLACE:
        return isinstance(value, tuple) and float(np.hypot(*np.subtract(value, right))) <= within
    if isinstance(right, str) or isinstance(value, str) or sort is Sort.SAME:
        return bool(value == right)
    assert isinstance(value, float)
    off = value - right
    if sort is Sort.ANGLE:
        off = (off + 180.0) % 360.0 - 180.0
    return bool(abs(off) <= within)
