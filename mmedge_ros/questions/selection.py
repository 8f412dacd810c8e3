"""Which tracks a question is about, and at which instants they fit it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mmedge_ros.core.data_types import NS_PER_S, FloatArray
from mmedge_ros.memory.moment import Motion, moves
from mmedge_ros.memory.query import Phrase
from mmedge_ros.questions import QuestionError
from mmedge_ros.questions.observations import Observations, ObservedTrack, Stamps
from mmedge_ros.questions.place_words import Anchor, PlaceLimit, Side

# How probable it is that a track looks as a phrase says; None where no view of it is known.
LooksLike = Callable[[ObservedTrack, Phrase], float | None]

# What is asked for one instant is taken from a decision this near to it.
AT_NS = 3 * NS_PER_S // 20
# A motion that is shorter (s) is noise.
_LEAST_MOTION = 0.5
_LIKELY = 0.5
_LONGEST_GAP_NS = NS_PER_S


def no_looks(_track: ObservedTrack, _phrase: Phrase) -> float | None:
    """Return None: no look of any track is known."""
    return None


@dataclass(frozen=True, eq=False)
class KnownFlight:
    """All that is known of a flight. ``labels`` are those its detector knows; none: any label.

    ``is_exact`` says that each track is one object, as true tracks are. ``problems`` are
    sentences about what is missing.
    """

    observations: Observations
    looks_like: LooksLike = no_looks
    labels: tuple[str, ...] = ()
    is_exact: bool = False
    problems: tuple[str, ...] = ()


class Chosen(NamedTuple):
    """A track, and the rows (N,) of it for which all holds.

    ``is_sure`` is False where it is not known whether it looks as was asked.
    """

    track: ObservedTrack
    rows: NDArray[np.bool_]
    is_sure: bool = True


@dataclass(frozen=True)
class Selector:
    """Chooses tracks of a flight."""

    observations: Observations
    looks_like: LooksLike = no_looks

    def chosen(
        self,
        phrases: Sequence[Phrase],
        places: Sequence[PlaceLimit],
        begin_ns: int,
        end_ns: int,
        tracks: Sequence[int] = (),
    ) -> list[Chosen]:
        """Return the tracks that are meant, in the order of their begin.

        :param tracks: these alone; none: all
        :raises QuestionError: if a place cannot be judged, or there is no such track
        """
        for number in tracks:
            self.track(number)
        found = []
        for track in self.observations.tracks:
            if tracks and track.id not in tracks:
                continue
            if any(place.anchor.track == track.id for place in places):
                continue
            rows = rows_between(track, begin_ns, end_ns)
            for place in places:
                rows &= self._is_at(track, place)
            one = self._fitting(track, rows, phrases) if rows.any() else None
            if one is not None:
                found.append(one)
        return sorted(found, key=lambda one: (one.track.begin_ns, one.track.id))

    def track(self, number: int) -> ObservedTrack:
        """Return a track by its number.

        :raises QuestionError: if there is none
        """
        track = self.observations.track(number)
        if track is None:
            numbers = sorted(one.id for one in self.observations.tracks)
            known = ', '.join(map(str, numbers[:20])) + (' ...' if len(numbers) > 20 else '')
            raise QuestionError(f'there is no track {number} in this flight; tracks: {known}')
        return track

    def distances(self, track: ObservedTrack, anchor: Anchor) -> FloatArray:
        """Return the distances (N,) of a track from an anchor over ground, m; NaN where not known.

        :raises QuestionError: if nothing is known of the anchor
        """
        if anchor.track == track.id:
            raise QuestionError(f'track {track.id} is measured from itself; name another one')
        if anchor.phrase is not None:
            return self._to_nearest(track, anchor.phrase)
        gaps = track.positions[:, :2] - self._places(anchor, track.stamps_ns)
        return np.asarray(np.hypot(gaps[:, 0], gaps[:, 1]))

    def deviations(self, track: ObservedTrack, anchor: Anchor) -> FloatArray:
        """Return one standard deviation (N,) of these distances, m; an object counts as exact."""
        if anchor.track is None:
            return track.deviations
        other = self.track(anchor.track)
        return np.asarray(
            np.hypot(track.deviations, _at(other.stamps_ns, other.deviations, track.stamps_ns))
        )

    def motion(self, track: ObservedTrack, motion: Motion) -> NDArray[np.bool_]:
        """Say at which instants (N,) a track moves so.

        :raises QuestionError: if it is meant of the drone, and nothing is known of its way
        """
        drones = np.full((len(track.stamps_ns), 4), np.nan)
        if motion in (Motion.APPROACHING, Motion.LEAVING):
            drones[:, :2] = self._places(Anchor(), track.stamps_ns)
        return moves(motion, track.positions, track.velocities, drones)

    def headings(self, stamps_ns: Stamps) -> FloatArray:
        """Return where the drone headed (N,), rad; NaN where it is not known."""
        drone = self.observations.drone
        if drone is None or not len(drone.stamps_ns):
            return np.full(len(stamps_ns), np.nan)
        unwrapped = np.unwrap(drone.headings)
        return _interpolated(stamps_ns, drone.stamps_ns, unwrapped[:, None])[:, 0]

    def _fitting(
        self, track: ObservedTrack, rows: NDArray[np.bool_], phrases: Sequence[Phrase]
    ) -> Chosen | None:
        """Return the rows in which a track is one of the objects; None: in none."""
        if not phrases:
            return Chosen(track, rows)
        fitting, is_sure = np.zeros(len(rows), bool), False
        for phrase in phrases:
            if phrase.labels and track.label not in phrase.labels:
                continue
            likely = self.looks_like(track, phrase) if phrase.attributes else 1.0
            if likely is not None and likely < _LIKELY:
                continue
            held = rows.copy()
            for motion in phrase.motions:
                held &= self.motion(track, motion)
            if phrase.motions and not _lasts(track.stamps_ns, held, rows):
                continue
            fitting |= held
            is_sure |= likely is not None
        return Chosen(track, fitting, is_sure) if fitting.any() else None

    def _is_at(self, track: ObservedTrack, place: PlaceLimit) -> NDArray[np.bool_]:
        if place.side is None:
            away = self.distances(track, place.anchor)
            with np.errstate(invalid='ignore'):
                held: NDArray[np.bool_] = (away >= place.least) & (away <= place.most)
            return held
        gaps = track.positions[:, :2] - self._places(Anchor(), track.stamps_ns)
        headings = self.headings(track.stamps_ns)
        ahead = np.cos(headings) * gaps[:, 0] + np.sin(headings) * gaps[:, 1]
        left = np.cos(headings) * gaps[:, 1] - np.sin(headings) * gaps[:, 0]
        signed = {
            Side.LEFT: left,
            Side.RIGHT: -left,
            Side.AHEAD: ahead,
            Side.BEHIND: -ahead,
        }[place.side]
        return np.asarray(signed > 0.0)

    def _places(self, anchor: Anchor, stamps_ns: Stamps) -> FloatArray:
        """Return where an anchor was (N, 2), m; NaN where it is not known."""
        if anchor.spot is not None:
            return np.tile(anchor.spot, (len(stamps_ns), 1))
        if anchor.track is not None:
            other = self.track(anchor.track)
            return _at(other.stamps_ns, other.positions[:, :2], stamps_ns)
        drone = self.observations.drone
        if drone is None or not len(drone.stamps_ns):
            raise QuestionError(
                'nothing is known of the way of the drone (no odometry in the recording), so '
                'nothing can be said of places seen from it; ask for places on the map or tracks'
            )
        return _interpolated(stamps_ns, drone.stamps_ns, drone.positions[:, :2])

    def _to_nearest(self, track: ObservedTrack, phrase: Phrase) -> FloatArray:
        nearest = np.full(len(track.stamps_ns), np.nan)
        whole = (self.observations.begin_ns, self.observations.end_ns)
        for other in self.chosen((phrase,), (), *whole):
            if other.track.id == track.id:
                continue
            stamps_ns, places = (
                other.track.stamps_ns[other.rows],
                other.track.positions[other.rows],
            )
            gaps = track.positions[:, :2] - _at(stamps_ns, places[:, :2], track.stamps_ns)
            nearest = np.fmin(nearest, np.hypot(gaps[:, 0], gaps[:, 1]))
        return nearest


def rows_between(
    track: ObservedTrack, begin_ns: int, end_ns: int, near_ns: int = 0
) -> NDArray[np.bool_]:
    """Say which rows (N,) of a track lie in a span; of one instant, the nearest one if near."""
    held: NDArray[np.bool_] = (track.stamps_ns >= begin_ns) & (track.stamps_ns <= end_ns)
    if begin_ns == end_ns and not held.any():
        gaps = np.abs(track.stamps_ns - begin_ns)
        held[int(np.argmin(gaps))] = gaps.min() <= near_ns
    return held


def _lasts(stamps_ns: Stamps, held: NDArray[np.bool_], rows: NDArray[np.bool_]) -> bool:
    """Whether something held for long enough, or for as long as there is anything to say."""
    step = float(np.median(np.diff(stamps_ns))) / NS_PER_S if len(stamps_ns) > 1 else 0.0
    least = _LEAST_MOTION / step if step else 1.0
    count, whole = int(np.count_nonzero(held)), int(np.count_nonzero(rows))
    return count > 0 and count >= min(least, whole)


def _at(known_ns: Stamps, values: FloatArray, stamps_ns: Stamps) -> FloatArray:
    """Return values (M, ...) of stamps (M,) at other stamps (N,); NaN where there are none."""
    found = np.full((len(stamps_ns), *values.shape[1:]), np.nan)
    if len(known_ns):
        places = np.minimum(np.searchsorted(known_ns, stamps_ns), len(known_ns) - 1)
        same = known_ns[places] == stamps_ns
        found[same] = values[places[same]]
    return found


def _interpolated(stamps_ns: Stamps, known_ns: Stamps, values: FloatArray) -> FloatArray:
    """Return values (M, K) between known stamps (N, K); NaN where none is near."""
    first = int(known_ns[0])
    found = np.stack(
        [
            np.interp(stamps_ns - first, known_ns - first, values[:, column])
            for column in range(values.shape[1])
        ],
        axis=1,
    )
    after = np.minimum(np.searchsorted(known_ns, stamps_ns), len(known_ns) - 1)
    before = np.maximum(after - 1, 0)
    gaps = np.minimum(np.abs(known_ns[after] - stamps_ns), np.abs(known_ns[before] - stamps_ns))
    found[gaps > _LONGEST_GAP_NS] = np.nan
    return found
