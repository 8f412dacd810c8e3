"""Whether people are placed: who is in reach, GOSPA, false tracks, and the worth of a run.

Every 10 ms the tracks published last, of people and of what the radar alone sees move, are
predicted to that moment and compared on the ground with the people *in reach* then: at least half
visible, 20 px tall and in a camera that is up and clear, or returned by every second scan.

GOSPA (Rahmathullah, Garcia-Fernandez, Svensson, FUSION 2017) with p = 1, c = 4 m and alpha = 2 is
the least sum of the distances of pairs, of 2 m for each person missed and of 2 m for each track
invented. A track on a person out of reach, or on whatever else moves, is not judged unless a
person in reach is its own. *Worth* is 1 - (GOSPA + 1 m for each change of a person's id) / (2 m
for each person in reach), all summed over instants: 1 is perfect, 0 is to publish nothing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from mmedge_ros.core.data_types import NS_PER_S, FloatArray, Track
from mmedge_ros.core.run_record import RunRecord
from mmedge_ros.replay.ground_truth import PERSON, GroundTruth, TrueFrame
from mmedge_ros.report.accuracy_samples import STREAM_STEP_NS, nees, published_results
from mmedge_ros.report.truth_matching import (
    MINIMUM_VISIBILITY,
    POSITION_GATE,
    Alignment,
    Mask,
    Places,
    ground_distances,
    mover_reaches,
)
from mmedge_ros.tracking.decision_fusion import RADAR_ONLY_LABEL

# Half of c: what a miss and an invention cost, m. A change of id costs less than either.
MISS, SWITCH = 2.0, 1.0
_TALL, _DETECTED = 20.0, 0.5
# Of the chi-squared distribution with 2 degrees of freedom.
_WITHIN_90 = -2.0 * math.log(0.1)
# Whoever is not seen for longer has left.
_LONGEST_GAP_NS = 10 * NS_PER_S
_GROUND = np.ix_([0, 1, 3, 4], [0, 1, 3, 4])


def camera_reach(frame: TrueFrame) -> Mask:
    """Mark (N,) those that a camera without faults could show, well enough to be found."""
    mask: Mask = (frame.visibility >= MINIMUM_VISIBILITY) & (frame.heights >= _TALL)
    return mask


def people_in_reach(frame: TrueFrame) -> Mask:
    """Mark (N,) the people whom a sensor could find."""
    seen = (camera_reach(frame) & frame.clear) | (frame.radar >= _DETECTED)
    return np.asarray((frame.labels == PERSON) & seen)


def pair_tracks(distances: FloatArray, ignored: Mask) -> tuple[Places, Places]:
    """Pair people with tracks (P, M) m, one to one, so that GOSPA is least; return their places.

    :param ignored: (M,) tracks that cost nothing without a person of their own
    """
    gains = np.minimum(distances - MISS - np.where(ignored, 0.0, MISS), 0.0)
    people, tracks = linear_sum_assignment(gains)
    paired = gains[people, tracks] < 0.0
    return people[paired], tracks[paired]


@dataclass
class PlacementSums:
    """Sums over ``instants``: ``people`` in reach, of whom ``placed`` within 2 m.

    ``placed_by_range`` within 1 m, beyond 10 m within 10 % of their range; ``covered`` placed
    inside the 90 % ellipse of the track. GOSPA is ``localisation`` m and 2 m for each of
    ``missed`` and ``invented``. ``switches`` are changes of a person's id. ``false_tracks`` counts
    tracks that were more than 2 m (3.5 m of a car) from everything that moves. ``kept`` of
    ``gap``: instants at which a sensor no longer saw a person who was placed before, and those
    at which the same track was still there. ``waits`` are the times (s) from the first instant in
    reach to the first at which somebody was placed, of all who ever were; ``never`` counts the
    others.
    """

    instants: int = 0
    people: int = 0
    placed: int = 0
    placed_by_range: int = 0
    covered: int = 0
    localisation: float = 0.0
    missed: int = 0
    invented: int = 0
    switches: int = 0
    false_tracks: int = 0
    gap: int = 0
    kept: int = 0
    never: int = 0
    waits: list[float] = field(default_factory=list)

    @property
    def gospa(self) -> float:
        """GOSPA in m, summed over instants."""
        return self.localisation + MISS * (self.missed + self.invented)

    @property
    def cost(self) -> float:
        """What worth is lost by, in m: GOSPA and changes of ids."""
        return self.gospa + SWITCH * self.switches

    def report(self) -> dict[str, Any]:
        """Return what report.json adds to ``accuracy``; NaN where nothing was judged."""
        minutes = self.instants * STREAM_STEP_NS / (60 * NS_PER_S)
        return {
            'placed': _share(self.placed, self.people),
            'placed_by_range': _share(self.placed_by_range, self.people),
            'gospa': _share(self.gospa, self.instants),
            'worth': 1.0 - _share(self.cost, MISS * self.people),
            'false_per_minute': _share(self.false_tracks, minutes),
            'kept': _share(self.kept, self.gap),
            'coverage': _share(self.covered, self.placed),
            'wait_s_p95': float(np.quantile(self.waits, 0.95)) if self.waits else math.nan,
            'placement': asdict(self),
        }


def _share(above: float, below: float) -> float:
    return above / below if below else math.nan


def placement_of(record: RunRecord, truth: GroundTruth) -> PlacementSums:
    """Judge what a run published by the truth of its recording.

    Instants are left out at which it is not known where the frame of the tracks is.
    """
    judge, alignment = _Judge(), Alignment(record, truth)
    for now_ns, frame, latest in published_results(record, truth):
        if latest is None:
            judge.take(now_ns, frame, frame.positions, _TracksThen.of((), 0.0))
            continue
        aligned = alignment.carry(frame, now_ns, latest.frame_id)
        if aligned is not None:
            elapsed = (now_ns - latest.state_ns) / NS_PER_S
            tracks = _TracksThen.of(latest.tracks, elapsed)
            judge.take(now_ns, frame, aligned.positions, tracks)
    return judge.sums


class _TracksThen(NamedTuple):
    """The M tracks that count, predicted: ``places`` (M, 2) and ``covariances`` (M, 2, 2)."""

    ids: NDArray[np.int64]
    places: FloatArray
    covariances: FloatArray

    @staticmethod
    def of(tracks: Sequence[Track], elapsed: float) -> _TracksThen:
        counted = [t for t in tracks if t.label in (PERSON, RADAR_ONLY_LABEL)]
        states = np.array([[*t.position[:2], *t.velocity[:2]] for t in counted]).reshape(-1, 2, 2)
        spreads = np.array([t.covariance[_GROUND] for t in counted]).reshape(-1, 2, 2, 2, 2)
        weights = np.array([1.0, elapsed])
        with np.errstate(over='ignore', invalid='ignore'):  # of a track that diverged
            return _TracksThen(
                np.array([t.id for t in counted], np.int64),
                np.einsum('d,mdi->mi', weights, states),
                np.einsum('d,e,mdiej->mij', weights, weights, spreads),
            )


class _Judge:
    """Takes instants in order."""

    def __init__(self) -> None:
        self.sums = PlacementSums()
        self._last: dict[int, int] = {}  # the track that placed a person last
        # By sensor and person: when it was last seen, and the track that placed it then.
        self._seen: dict[tuple[str, int], tuple[int, int | None]] = {}
        self._false: set[int] = set()
        self._since: dict[int, int] = {}  # when a person was first in reach

    def take(
        self, now_ns: int, frame: TrueFrame, positions: FloatArray, tracks: _TracksThen
    ) -> None:
        sums, reached = self.sums, np.flatnonzero(people_in_reach(frame))
        distances = ground_distances(positions[:, :2], tracks.places)
        near = distances <= mover_reaches(frame)[:, None]
        self._false.update(tracks.ids[~near.any(axis=0)].tolist())
        ignored = np.asarray(np.delete(near, reached, axis=0).any(axis=0))
        people, owners = pair_tracks(distances[reached], ignored)
        people = reached[people]
        apart = distances[people, owners]
        sums.instants += 1
        sums.people += len(reached)
        sums.localisation += float(apart.sum())
        sums.missed += len(reached) - len(people)
        sums.invented += int((~ignored).sum() - (~ignored[owners]).sum())
        sums.false_tracks = len(self._false)
        sums.placed_by_range += int((apart <= np.fmax(1.0, 0.1 * frame.ranges[people])).sum())
        people, owners = people[apart <= POSITION_GATE], owners[apart <= POSITION_GATE]
        sums.placed += len(people)
        errors = nees(positions[people, :2] - tracks.places[owners], tracks.covariances[owners])
        sums.covered += int((errors <= _WITHIN_90).sum())
        placed = dict(zip(frame.ids[people].tolist(), tracks.ids[owners].tolist(), strict=True))
        sums.switches += sum(self._last.get(one, of) != of for one, of in placed.items())
        for one in frame.ids[reached].tolist():
            self._since.setdefault(one, now_ns)
        new = [one for one in placed if one not in self._last]
        sums.waits += [(now_ns - self._since[one]) / NS_PER_S for one in new]
        self._last |= placed
        sums.never = len(self._since) - len(sums.waits)
        on = {(tracks.ids[m], n) for n, m in np.argwhere(distances <= POSITION_GATE)}
        self._keep(now_ns, frame, placed, on)

    def _keep(
        self, now_ns: int, frame: TrueFrame, placed: dict[int, int], on: set[tuple[int, int]]
    ) -> None:
        """Count who is kept while a sensor does not see them; ``on`` are tracks and places."""
        returned, ids = frame.radar >= _DETECTED, frame.ids.tolist()
        for sensor, sees, blind in (
            ('camera', camera_reach(frame) & frame.clear, ~frame.clear),
            ('radar', returned, ~returned),
        ):
            for place in np.flatnonzero(frame.labels == PERSON).tolist():
                key = sensor, ids[place]
                if sees[place] or not blind[place]:
                    self._seen[key] = now_ns, placed.get(ids[place]) if sees[place] else None
                    continue
                seen_ns, track = self._seen.get(key, (0, None))
                if track is not None and now_ns - seen_ns < _LONGEST_GAP_NS:
                    self.sums.gap += 1
                    self.sums.kept += (track, place) in on
