"""Moving returns paired with the people they may come from, and how their directions differ.

Directions are compared in the axes of the radar: the cosine to its left, which any array measures,
and the one upwards, which some do not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import uniform_filter1d
from scipy.spatial.transform import Rotation

from mmedge_ros.core.data_types import FloatArray
from mmedge_ros.geometry.sensor_poses import SensorGeometry
from mmedge_ros.geometry.transforms import Transform
from mmedge_ros.replay.extrinsics.box_tracks import BoxTrack
from mmedge_ros.replay.extrinsics.range_path import range_path
from mmedge_ros.replay.extrinsics.sightings import Sightings
from mmedge_ros.tracking.return_placement import speeds_over_ground, thinned

# Returns at least this fast over ground (m/s): with odometry the world around moves a little too,
# as odometry is not perfect.
_MOVING_BY_ODOMETRY, _MOVING = 0.4, 0.1
# Ranges by box height are right within this factor.
_RANGE_AGREEMENT = 1.8
_MOST_RETURNS = 30_000
_SAME_SCAN = 1e-6  # s
# Of a path only what lies so near (m) belongs to the body, and so near in direction.
NEAR_PATH, NEAR_DIRECTION = 0.7, np.radians(8.0)
_LEAST_SUPPORT = 0.1
# Who walks is met in most scans: at least this share of the steps of so many around.
_LASTING, _LEAST_SHARE = 15, 0.4
# Relative, of people and of their boxes.
_HEIGHT_DEVIATION = 0.15
_FEWEST_ON_PATH = 8
# Between two tracks on one axis of time (s), so that none is interpolated into the next.
_TRACK_GAP = 10.0


class MovingReturns(NamedTuple):
    """Returns (N) that move over ground: times s, points (N, 3) m, and their Doppler (N,) m/s."""

    times: FloatArray
    points: FloatArray
    velocities: FloatArray

    def of_scan(self, time: float) -> FloatArray:
        """Return the points (M, 3) of the scan at that time."""
        begin, end = np.searchsorted(self.times, [time - _SAME_SCAN, time + _SAME_SCAN])
        return self.points[begin:end]


def moving_returns(
    sightings: Sightings, geometry: SensorGeometry, radar_late: float
) -> MovingReturns:
    """Return what moves over ground, by odometry or by what most of the returns agree on.

    :param radar_late: by how much the stamps of scans are later than those of odometry, s
    """
    parts = []
    least = _MOVING if sightings.ego is None else _MOVING_BY_ODOMETRY
    for scan in sightings.scans:
        returns = thinned(scan.returns).astype(np.float64)
        at = sightings.geometry_at(scan.stamp_ns - round(radar_late * 1e9), geometry)
        speeds = np.abs(speeds_over_ground(returns[:, :3], returns[:, 3], at))
        moving = returns[speeds >= least]
        times = np.full(len(moving), sightings.seconds(scan.stamp_ns))
        parts.append(np.column_stack([times, moving[:, :4]]))
    rows = np.concatenate(parts)
    rows = rows[:: max(-(-len(rows) // _MOST_RETURNS), 1)]
    return MovingReturns(rows[:, 0], rows[:, 1:4], rows[:, 4])


def turned(angles: FloatArray) -> FloatArray:
    """Return the rotation (3, 3) by yaw (left), pitch (down) and roll (right side down), rad."""
    return np.asarray(Rotation.from_euler('ZYX', angles).as_matrix())


@dataclass(frozen=True, eq=False)
class Pairs:
    """Each of the P pairs is a return with a person it may come from.

    ``returned`` (P,) numbers the returns, ``track`` (P,) the people. ``times`` s, ``ranges`` m,
    and the cosines ``left`` and ``up`` are the return's; ``disagreement`` (P,) is the logarithm of
    its range over that by the box's height, and ``off_path`` m its distance from the range of
    that person.
    """

    people: People
    radar_in_camera: Transform
    returned: NDArray[np.intp]
    track: NDArray[np.intp]
    times: FloatArray
    ranges: FloatArray
    left: FloatArray
    up: FloatArray
    velocities: FloatArray
    disagreement: FloatArray
    off_path: FloatArray

    def __len__(self) -> int:
        return len(self.times)

    def select(self, chosen: NDArray[np.intp] | NDArray[np.bool_]) -> Pairs:
        """Return some of the pairs, their returns numbered anew."""
        columns = (f.name for f in fields(self) if f.name not in ('people', 'radar_in_camera'))
        rows = {name: getattr(self, name)[chosen] for name in columns}
        rows['returned'] = np.unique(rows['returned'], return_inverse=True)[1]
        return replace(self, **rows)

    def errors(self, parameters: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return measured less predicted cosines, to the left and upwards, each (P,).

        :param parameters: yaw, pitch, roll (rad) by which the radar is turned, and by how much
            its stamps are late (s)
        """
        rays = self.people.rays(self.track, self.times - parameters[3])
        shift = self.radar_in_camera.translation
        # Along the ray as far as the return is from the radar; both sensors are near each other.
        bodies = rays * (self.ranges + rays @ shift)[:, None] - shift
        seen = bodies @ self.radar_in_camera.rotation @ turned(parameters[:3])
        seen /= np.linalg.norm(seen, axis=1, keepdims=True)
        return self.left - seen[:, 1], self.up - seen[:, 2]


class People:
    """All box tracks one after the other on one axis of time, so that one call interpolates."""

    def __init__(self, tracks: Sequence[BoxTrack]) -> None:
        self.tracks = tracks
        lengths = [float(track.times[-1] - track.times[0]) + _TRACK_GAP for track in tracks]
        begins = np.cumsum([0.0, *lengths[:-1]])
        self._shifts = np.array(
            [begin - track.times[0] for begin, track in zip(begins, tracks, strict=True)]
        )
        self._axis = np.concatenate(
            [track.times + shift for track, shift in zip(tracks, self._shifts, strict=True)]
        )
        self._rays = np.concatenate([track.rays for track in tracks])

    def rays(self, track: NDArray[np.intp], times: FloatArray) -> FloatArray:
        """Return unit vectors (P, 3) towards people at times (P,) s."""
        at = times + self._shifts[track]
        rays = np.stack([np.interp(at, self._axis, column) for column in self._rays.T], axis=1)
        return np.asarray(rays / np.linalg.norm(rays, axis=1, keepdims=True))


def pair_by_range(
    tracks: Sequence[BoxTrack],
    returns: MovingReturns,
    radar_in_camera: Transform,
    late: float,
    spare: float,
) -> Pairs:
    """Pair returns with all people seen at their time, about as far away as they are.

    :param late: by how much radar stamps are late, s, give or take ``spare``
    """
    ranges = np.linalg.norm(returns.points, axis=1)
    chosen, track_of, disagreement = [], [], []
    when = returns.times - late
    for number, track in enumerate(tracks):
        seen = np.flatnonzero((when - spare >= track.times[0]) & (when + spare <= track.times[-1]))
        by_height = np.interp(when[seen], track.times, np.log(track.distances))
        differs = np.log(ranges[seen]) - by_height
        cut = np.interp(when[seen], track.times, track.cut.astype(float)) > 0.0
        near = (np.abs(differs) < np.log(_RANGE_AGREEMENT)) & ~cut
        chosen.append(seen[near])
        track_of.append(np.full(int(near.sum()), number, np.intp))
        disagreement.append(differs[near])
    at = np.concatenate(chosen)
    _, returned = np.unique(at, return_inverse=True)
    return Pairs(
        People(tracks),
        radar_in_camera,
        returned,
        np.concatenate(track_of),
        returns.times[at],
        ranges[at],
        returns.points[at, 1] / ranges[at],
        returns.points[at, 2] / ranges[at],
        returns.velocities[at],
        np.concatenate(disagreement),
        np.zeros(len(at)),
    )


def without_strangers(pairs: Pairs, parameters: FloatArray, spread: float) -> Pairs:
    """Leave out people whose returns lie beside them on the whole: those are another's.

    :param spread: of the cosine to the left
    """
    left, _ = pairs.errors(parameters)
    strangers = [
        number
        for number in np.unique(pairs.track)
        if abs(np.median(left[pairs.track == number])) > 2.0 * spread
    ]
    return pairs.select(~np.isin(pairs.track, strangers))


def pairs_on_paths(pairs: Pairs, parameters: FloatArray, spread: float) -> Pairs:
    """Keep the returns that follow a person: near one path in range, as Doppler says.

    :param spread: of the cosine to the left, with which returns support a path
    """
    left, _ = pairs.errors(parameters)
    kept = np.zeros(len(pairs), bool)
    off_path = np.zeros(len(pairs))
    times = pairs.times - parameters[3]
    middle = float(np.median(pairs.disagreement)) if len(pairs) else 0.0
    weights = np.exp(-0.5 * (left / spread) ** 2)
    differs = pairs.disagreement - np.clip(middle, -0.15, 0.1)
    weights *= np.exp(-0.5 * (differs / _HEIGHT_DEVIATION) ** 2)
    for number in np.unique(pairs.track):
        own = np.flatnonzero(pairs.track == number)
        strong = own[weights[own] > 0.01]
        if len(strong) < _FEWEST_ON_PATH:
            continue
        path = range_path(
            times[strong], pairs.ranges[strong], pairs.velocities[strong], weights[strong]
        )
        if path is None:
            continue
        off = pairs.ranges[own] - np.interp(times[own], path.times, path.ranges)
        lasting = uniform_filter1d(
            (path.support > _LEAST_SUPPORT).astype(float), _LASTING, mode='constant'
        )
        support = np.interp(times[own], path.times, lasting, left=0.0, right=0.0)
        on_path = (np.abs(off) < NEAR_PATH) & (support >= _LEAST_SHARE)
        kept[own] = on_path & (np.abs(left[own]) < NEAR_DIRECTION)
        off_path[own] = off
    return replace(pairs, off_path=off_path).select(kept)
