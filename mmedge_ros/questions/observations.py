"""Tracks of a flight, in the form from which questions are answered.

Tracks come from decisions, live or replayed; what is known of their looks comes from a flight
memory or a recogniser. Places are in the frame of the tracks (m), stamps in ns.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mmedge_ros.core.data_types import CAMERA, NS_PER_S, Decision, FloatArray, Track
from mmedge_ros.core.untrusted_files import printable
from mmedge_ros.geometry.ego_motion import EgoMotion, EgoState

Stamps = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class ObservedTrack:
    """A track over time.

    ``stamps_ns`` (N,) ascending, ``positions`` (N, 3) m, ``velocities`` (N, 3) m/s, ``deviations``
    (N,) m: one standard deviation of the position over ground along its worst direction. ``seen``
    (N,) says whether the camera saw it then. ``view_ids`` are the numbers of its views in the
    memory; empty without one.
    """

    id: int
    label: str
    stamps_ns: Stamps
    positions: FloatArray
    velocities: FloatArray
    deviations: FloatArray
    seen: NDArray[np.bool_]
    view_ids: tuple[int, ...] = ()

    @property
    def begin_ns(self) -> int:
        return int(self.stamps_ns[0])

    @property
    def end_ns(self) -> int:
        return int(self.stamps_ns[-1])


class ObservedDrone(NamedTuple):
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
    ``begin_ns``. ``now_ns`` is the present, where that is later than the newest decision.
    """

    tracks: tuple[ObservedTrack, ...]
    stamps_ns: Stamps
    camera: NDArray[np.bool_]
    frame_id: str
    drone: ObservedDrone | None = None
    now_ns: int = 0

    @property
    def begin_ns(self) -> int:
        return int(self.stamps_ns[0]) if len(self.stamps_ns) else 0

    @property
    def end_ns(self) -> int:
        return max(int(self.stamps_ns[-1]), self.now_ns) if len(self.stamps_ns) else 0

    def track(self, number: int) -> ObservedTrack | None:
        """Return a track by its id; None if there is none."""
        return next((one for one in self.tracks if one.id == number), None)


def observations_of(decisions: Iterable[Decision], ego: EgoMotion | None = None) -> Observations:
    """Collect the tracks of decisions, and where the drone was, in the order of their stamps."""
    log = ObservationLog()
    for decision in decisions:
        log.add(decision, None if ego is None else ego.at(decision.state_ns))
    return log.observations()


_UNKNOWN = (np.full(3, np.nan), np.nan)
_DECISION = np.dtype([('stamp', 'i8'), ('camera', '?'), ('position', 'f8', 3), ('heading', 'f8')])
_TRACK = np.dtype(
    [
        *(('stamp', 'i8'), ('id', 'i8'), ('label', 'u2'), ('seen', '?'), ('deviation', 'f8')),
        *(('position', 'f8', 3), ('velocity', 'f8', 3)),
    ]
)
_MOST_LABELS = _MOST_AT_ONCE = 1000
_LONGEST_LABEL = 64
# Stamps that lie farther back are those of a clock that was set back.
_SET_BACK_NS = NS_PER_S


class ObservationLog:
    """Collects decisions as they come, one thread at a time.

    Where rows become too many, the older half is thinned out where it is densest: what is long ago
    is kept more coarsely, and the flight stays whole. Begins anew where the clock was set back, or
    tracks are in another frame.

    :param most_rows: of decisions and their tracks, about 70 bytes each; None keeps them all
    """

    def __init__(self, most_rows: int | None = None) -> None:
        self._most_rows = most_rows
        self._frame_id, self._newest_ns = '', 0
        self._begin()

    def __len__(self) -> int:
        return len(self._decisions) + len(self._tracks)

    def add(self, decision: Decision, ego: EgoState | None = None) -> None:
        """Enter a decision, and where the drone was then; a place of another instant is not used.

        :raises ValueError: if that is too much to keep
        """
        if self._most_rows is not None and len(decision.tracks) > _MOST_AT_ONCE:
            raise ValueError(f'{len(decision.tracks)} tracks at once; {_MOST_AT_ONCE} are kept')
        # They come from anywhere, and stand in answers of one line.
        labels = [printable(track.label[:_LONGEST_LABEL]) for track in decision.tracks]
        if len(self._labels.keys() | labels) > _MOST_LABELS:
            raise ValueError(f'more than {_MOST_LABELS} labels of tracks')
        if self._most_rows is not None:
            is_back = decision.state_ns < self._newest_ns - _SET_BACK_NS
            if is_back or decision.frame_id != self._frame_id:
                self._begin()
        self._frame_id = decision.frame_id
        self._newest_ns = max(self._newest_ns, decision.state_ns)
        for label in labels:
            self._labels.setdefault(label, len(self._labels))
        self._decisions.append(
            [(decision.state_ns, CAMERA in decision.newest_ns, *_pose(ego, decision.state_ns))]
        )
        self._tracks.append(
            [
                (
                    *(decision.state_ns, track.id, self._labels[label]),
                    *(track.box is not None, deviation, track.position, track.velocity),
                )
                for track, label, deviation in zip(
                    decision.tracks, labels, _deviations(decision.tracks), strict=True
                )
            ]
        )
        if self._most_rows is not None and len(self) > self._most_rows:
            self._thin_out()

    def observations(self, now_ns: int = 0) -> Observations:
        """Return all that was entered, in the order of its stamps.

        :param now_ns: the present, see `Observations`
        """
        decisions, rows = _in_order(self._decisions.rows), _in_order(self._tracks.rows)
        names = list(self._labels)
        order = np.argsort(rows['id'], kind='stable')
        begins = np.flatnonzero(np.diff(rows['id'][order], prepend=-1))
        by_track = np.split(order, begins[1:]) if len(order) else []
        by_track.sort(key=lambda places: int(places[0]))
        placed = decisions[np.isfinite(decisions['heading'])]
        return Observations(
            tuple(_observed(rows[places], names) for places in by_track),
            decisions['stamp'].copy(),
            decisions['camera'].copy(),
            self._frame_id,
            ObservedDrone(
                placed['stamp'].copy(), placed['position'].copy(), placed['heading'].copy()
            )
            if len(placed)
            else None,
            now_ns,
        )

    def _begin(self) -> None:
        self._decisions, self._tracks = _Table(_DECISION), _Table(_TRACK)
        self._labels: dict[str, int] = {}
        self._newest_ns = 0

    def _thin_out(self) -> None:
        stamps = self._decisions.rows['stamp']
        stays = np.ones(len(stamps), bool)
        # Every second decision of the older half, and how large a gap each would leave.
        places = np.arange(1, len(stamps) // 2, 2)
        gaps = stamps[places + 1] - stamps[places - 1]
        enough = np.partition(gaps, len(gaps) // 2)[len(gaps) // 2]
        stays[places[gaps <= enough]] = False
        gone = np.setdiff1d(stamps[~stays], stamps[stays])
        self._decisions.keep(stays)
        self._tracks.keep(~np.isin(self._tracks.rows['stamp'], gone))


class _Table:
    """Rows of an array that grows."""

    def __init__(self, kind: np.dtype[np.void]) -> None:
        self._held, self._count = np.zeros(64, kind), 0

    def __len__(self) -> int:
        return self._count

    @property
    def rows(self) -> NDArray[np.void]:
        return self._held[: self._count]

    def append(self, rows: list[tuple[object, ...]]) -> None:
        count = self._count + len(rows)
        if count > len(self._held):
            self._held = np.resize(self._held, max(count, 2 * len(self._held)))
        self._held[self._count : count] = rows
        self._count = count

    def keep(self, stays: NDArray[np.bool_]) -> None:
        kept = self.rows[stays]
        self._held[: len(kept)], self._count = kept, len(kept)


def _observed(rows: NDArray[np.void], labels: list[str]) -> ObservedTrack:
    newest = rows[-1]
    return ObservedTrack(
        int(newest['id']),
        labels[int(newest['label'])],
        rows['stamp'].copy(),
        rows['position'].copy(),
        rows['velocity'].copy(),
        rows['deviation'].copy(),
        rows['seen'].copy(),
    )


def _in_order(rows: NDArray[np.void]) -> NDArray[np.void]:
    stamps = rows['stamp']
    is_ordered = bool((stamps[1:] >= stamps[:-1]).all())
    return rows if is_ordered else rows[np.argsort(stamps, kind='stable')]


def _pose(ego: EgoState | None, stamp_ns: int) -> tuple[FloatArray, float]:
    if ego is None or ego.stamp_ns != stamp_ns:
        return _UNKNOWN
    rotation = ego.pose.rotation
    return ego.pose.translation, float(np.arctan2(rotation[1, 0], rotation[0, 0]))


def _deviations(tracks: Sequence[Track]) -> list[float]:
    """Return one standard deviation of positions over ground, along their worst direction, m."""
    if not tracks:
        return []
    places = np.stack([track.covariance[:2, :2] for track in tracks])
    return list(np.sqrt(np.linalg.eigvalsh(places)[:, -1]))
