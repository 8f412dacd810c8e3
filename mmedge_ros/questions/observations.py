"""What was perceived of a flight, in the form in which questions are answered from it.

Tracks come from decisions, live or replayed; what is known of their looks comes from a flight
memory or a recogniser. Places are in the frame of the tracks (m), stamps in ns.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mmedge_ros.data_types import CAMERA, Decision, FloatArray, Track
from mmedge_ros.flight_memory.moment import Vectors

Stamps = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class ObservedTrack:
    """A track over time.

    ``stamps_ns`` (N,) ascending, ``positions`` (N, 3) m, ``velocities`` (N, 3) m/s, ``deviations``
    (N,) m: one standard deviation of the position over ground along its worst direction. ``seen``
    (N,) says whether the camera saw it then. ``looks`` (V, T) are the taps of its remembered views
    and ``view_ids`` (V,) their numbers in the memory; empty without one.
    """

    id: int
    label: str
    stamps_ns: Stamps
    positions: FloatArray
    velocities: FloatArray
    deviations: FloatArray
    seen: NDArray[np.bool_]
    looks: Vectors = field(default_factory=lambda: np.zeros((0, 0), np.float32))
    view_ids: tuple[int, ...] = ()

    @property
    def begin_ns(self) -> int:
        return int(self.stamps_ns[0])

    @property
    def end_ns(self) -> int:
        return int(self.stamps_ns[-1])


class DronePath(NamedTuple):
    """Where the drone was: stamps (N,), positions (N, 3) m, headings (N,) rad."""

    stamps_ns: Stamps
    positions: FloatArray
    headings: FloatArray


@dataclass(frozen=True, eq=False)
class Observations:
    """All that questions are answered from.

    ``stamps_ns`` (N,) are those of the decisions: at these instants was perceived. ``camera``
    (N,) says whether the camera had sent something for them. ``drone`` is None where nothing is
    known of its way; distances to it are refused then. Times of questions count from
    ``begin_ns``.
    """

    tracks: tuple[ObservedTrack, ...]
    stamps_ns: Stamps
    camera: NDArray[np.bool_]
    frame_id: str
    drone: DronePath | None = None

    @property
    def begin_ns(self) -> int:
        return int(self.stamps_ns[0]) if len(self.stamps_ns) else 0

    @property
    def end_ns(self) -> int:
        return int(self.stamps_ns[-1]) if len(self.stamps_ns) else 0

    def track(self, number: int) -> ObservedTrack | None:
        """Return a track by its id; None if there is none."""
        return next((one for one in self.tracks if one.id == number), None)


def observations_of(
    decisions: Iterable[Decision],
    drone: DronePath | None = None,
    looks: Mapping[int, tuple[Vectors, tuple[int, ...]]] | None = None,
) -> Observations:
    """Collect the tracks of decisions, in the order of their stamps.

    :param looks: taps and numbers of the remembered views, by track
    """
    ordered = sorted(decisions, key=lambda decision: decision.state_ns)
    found: dict[int, list[tuple[int, Track]]] = defaultdict(list)
    for decision in ordered:
        for track in decision.tracks:
            found[track.id].append((decision.state_ns, track))
    return Observations(
        tuple(_observed(rows, (looks or {}).get(number)) for number, rows in found.items()),
        np.array([decision.state_ns for decision in ordered], np.int64),
        np.array([CAMERA in decision.newest_ns for decision in ordered], bool),
        ordered[-1].frame_id if ordered else '',
        drone,
    )


def _observed(
    rows: list[tuple[int, Track]], looks: tuple[Vectors, tuple[int, ...]] | None
) -> ObservedTrack:
    newest = rows[-1][1]
    taps, numbers = looks or (np.zeros((0, 0), np.float32), ())
    return ObservedTrack(
        newest.id,
        newest.label,
        np.array([stamp_ns for stamp_ns, _ in rows], np.int64),
        np.array([track.position for _, track in rows]),
        np.array([track.velocity for _, track in rows]),
        np.array([_deviation(track) for _, track in rows]),
        np.array([track.box is not None for _, track in rows], bool),
        taps,
        numbers,
    )


def _deviation(track: Track) -> float:
    """Return one standard deviation of a position over ground, along its worst direction, m."""
    return float(np.sqrt(np.linalg.eigvalsh(track.covariance[:2, :2])[-1]))
