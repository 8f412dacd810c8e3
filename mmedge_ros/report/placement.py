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
from dataclasses import asdict, dataclass
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
    ground_distances,
    mover_reaches,
)
from mmedge_ros.tracking.decision_fusion import RADAR_ONLY_LABEL

# Half of c: what a miss and an invention cost, m. A change of id costs less than either.
MISS, SWITCH = 2.0, 1.0
_TALL, _DETECTED = 20.0, 0.5
# Of the chi-squared distribution with 2 degrees of freedom.
_WITHIN_95 = -2.0 * math.log(0.05)
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


class Pairs(NamedTuple):
    """The pairs of least GOSPA: places (K,) of people and tracks, and their ``distances`` m."""

    people: NDArray[np.intp]
    tracks: NDArray[np.intp]
    distances: FloatArray


def pair_tracks(distances: FloatArray, ignored: Mask) -> Pairs:
    """Pair people with tracks (P, M), one to one, so that GOSPA is least.

    :param ignored: (M,) tracks that cost nothing without a person of their own
    """
    gains = np.minimum(distances - MISS - np.where(ignored, 0.0, MISS), 0.0)
    people, tracks = linear_sum_assignment(gains)
    paired = gains[people, tracks] < 0.0
    people, tracks = people[paired], tracks[paired]
    return Pairs(people, tracks, distances[people, tracks])


@dataclass
class Placement:
    """Sums over ``instants``: ``people`` in reach, of whom ``placed`` within 2 m.

    ``placed_by_range`` within 1 m, beyond 10 m within 10 % of their range; ``covered`` placed
    inside the 95 % ellipse of the track. GOSPA is ``localisation`` m and 2 m for each of
    ``missed`` and ``invented``. ``switches`` are changes of a person's id. ``false_tracks`` counts
    tracks that were more than 2 m (3.5 m of a car) from everything that moves. ``kept`` of
    ``gap``: instants at which a sensor no longer saw a person who was placed before, and those
    at which the same track was still there.
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
            'placement': asdict(self),
        }


def _share(above: float, below: float) -> float:
    return above / below if below else math.nan


def placement_of(record: RunRecord, truth: GroundTruth) -> Placement:
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
        self.sums = Placement()
        self._last: dict[int, int] = {}  # the track that placed a person last
        self._placed: dict[int, int] = {}  # the same of the instant before
        self._seen: set[tuple[str, int]] = set()  # by sensor and person, the instant before
        self._gaps: dict[tuple[str, int], tuple[int, int]] = {}  # when it began, and the track
        self._false: set[int] = set()

    def take(
        self, now_ns: int, frame: TrueFrame, positions: FloatArray, tracks: _TracksThen
    ) -> None:
        sums, reached = self.sums, people_in_reach(frame)
        distances = ground_distances(positions[:, :2], tracks.places)
        near = distances <= mover_reaches(frame)[:, None]
        self._false.update(tracks.ids[~near.any(axis=0)].tolist())
        ignored = np.asarray(near[~reached].any(axis=0))
        pairs = pair_tracks(distances[reached], ignored)
        sums.instants += 1
        sums.people += int(reached.sum())
        sums.localisation += float(pairs.distances.sum())
        sums.missed += int(reached.sum()) - len(pairs.people)
        sums.invented += int((~ignored).sum() - (~ignored[pairs.tracks]).sum())
        sums.false_tracks = len(self._false)
        limits = np.fmax(1.0, 0.1 * frame.ranges[reached][pairs.people])
        sums.placed_by_range += int((pairs.distances <= limits).sum())
        on = pairs.distances <= POSITION_GATE
        people, owners = np.flatnonzero(reached)[pairs.people[on]], pairs.tracks[on]
        sums.placed += len(people)
        offsets = positions[people, :2] - tracks.places[owners]
        sums.covered += int((nees(offsets, tracks.covariances[owners]) <= _WITHIN_95).sum())
        placed = dict(zip(frame.ids[people].tolist(), tracks.ids[owners].tolist(), strict=True))
        sums.switches += sum(self._last.get(one, of) != of for one, of in placed.items())
        self._last |= placed
        self._keep(now_ns, frame, distances, tracks.ids.tolist())
        self._placed = placed

    def _keep(
        self, now_ns: int, frame: TrueFrame, distances: FloatArray, tracks: list[int]
    ) -> None:
        """Count who is kept while a sensor does not see them."""
        seen: set[tuple[str, int]] = set()
        ids, people = frame.ids.tolist(), frame.labels == PERSON
        returned = frame.radar >= _DETECTED
        for sensor, sees, blind in (
            ('camera', camera_reach(frame) & frame.clear, ~frame.clear),
            ('radar', returned, ~returned),
        ):
            seen |= {(sensor, ids[place]) for place in np.flatnonzero(sees & people)}
            for place in np.flatnonzero(blind & people).tolist():
                key = sensor, ids[place]
                if key in self._seen and ids[place] in self._placed:
                    self._gaps[key] = now_ns, self._placed[ids[place]]
                begin_ns, track = self._gaps.get(key, (0, 0))
                if now_ns - begin_ns < _LONGEST_GAP_NS:
                    self.sums.gap += 1
                    self.sums.kept += track in tracks and bool(
                        distances[place, tracks.index(track)] <= POSITION_GATE
                    )
        self._gaps = {key: gap for key, gap in self._gaps.items() if key not in seen}
        self._seen = seen
