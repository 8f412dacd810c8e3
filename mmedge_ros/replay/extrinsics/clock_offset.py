"""How much later stamps are than those of the odometry, by what the drone's own motion shows.

Both estimates are made without knowing where the sensors point; their difference is the offset
between radar and camera, and a delay of the odometry itself drops out of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from scipy.spatial.transform import Rotation, Slerp

from mmedge_ros.core.data_types import FloatArray
from mmedge_ros.geometry.rotations import rotation_by
from mmedge_ros.geometry.transforms import Transform
from mmedge_ros.replay.extrinsics.box_tracks import BoxTrack
from mmedge_ros.replay.extrinsics.sightings import EgoCourse, Sightings

# Offsets that are searched, s. Odometry and camera mostly run on one clock.
MOST_RADAR, MOST_CAMERA = 0.2, 0.08
_GRID = 0.004
# Errors beyond these count little: moving objects (m/s), and boxes that jump (rad).
_DOPPLER_ERROR, _RAY_ERROR = 0.15, 0.003
_MOST_RETURNS = 12_000
_BLOCK = 2.0
_FEWEST_BLOCKS = 4
_DRAWS = 200
# An offset that is less sure (s) is none.
_LEAST_SURE = 0.04
# So many boxes of one person in a row, over at most so long (s): people move evenly meanwhile.
_ROW = 9
_LONGEST_ROW = 0.45
_FEWEST_ROWS = 50


class ClockOffset(NamedTuple):
    """Stamps are late by ``seconds``, known to ``deviation`` s from so many ``blocks``."""

    seconds: float
    deviation: float
    blocks: int


class DopplerFit(NamedTuple):
    """How late radar stamps are; None where that cannot be said.

    Turned by ``turn`` (3, 3), the radar sees the world stand still.
    """

    offset: ClockOffset | None
    turn: FloatArray


def radar_offset(sightings: Sightings, course: EgoCourse, radar_pose: Transform) -> DopplerFit:
    """Return by how much radar stamps are late, by the Doppler velocities of what stands still.

    The rotation of the radar is fitted with it: where the drone hovers, that is none.
    """
    scans = [(sightings.seconds(s.stamp_ns), s.returns) for s in sightings.scans if len(s.returns)]
    times = np.concatenate([np.full(len(returns), t) for t, returns in scans])
    returns = np.concatenate([returns for _, returns in scans]).astype(np.float64)
    # A return at the radar itself has no direction.
    known = np.flatnonzero(np.isfinite(returns[:, 3]) & returns[:, :3].any(axis=1))
    known = known[:: max(-(-len(known) // _MOST_RETURNS), 1)]
    if not len(known):
        return DopplerFit(None, np.eye(3))
    times, points, speeds = times[known], returns[known, :3], returns[known, 3]
    rays = points / np.linalg.norm(points, axis=1, keepdims=True)
    own = course.velocities + np.cross(course.turning, radar_pose.translation)
    own = own @ radar_pose.rotation  # in the axes of the radar

    turn = np.zeros(3)

    def errors(offset: float) -> FloatArray:
        nonlocal turn
        velocity = _interpolated(course.times, own, times - offset)
        error = speeds + np.einsum('ij,ij->i', rays, velocity)
        # A small turn of the radar changes it linearly.
        turned = np.cross(rays, velocity)
        weights = np.ones(len(error))
        for _ in range(3):
            weighted = turned * weights[:, None]
            turn = -np.linalg.solve(weighted.T @ turned + np.eye(3), weighted.T @ error)
            left = error + turned @ turn
            weights = 1.0 / (1.0 + (left / _DOPPLER_ERROR) ** 2)
        return np.asarray(left)

    best = _best_offset(errors, times, MOST_RADAR, _DOPPLER_ERROR)
    errors(best.seconds if best else 0.0)
    return DopplerFit(best, rotation_by(turn))


def camera_offset(
    tracks: Sequence[BoxTrack], course: EgoCourse, camera_pose: Transform
) -> ClockOffset | None:
    """Return by how much camera stamps are late, by how boxes shake with the drone's attitude.

    With the right offset the directions to people, turned into the odometry frame, change
    evenly. None where the drone turns too evenly, or too few people are seen.
    """
    rows = [
        (track.times[n : n + _ROW], track.rays[n : n + _ROW])
        for track in tracks
        for n in range(len(track.times) - _ROW + 1)
        if track.times[n + _ROW - 1] - track.times[n] <= _LONGEST_ROW
    ]
    rows = [row for row in rows if row[0][0] > course.times[0] and row[0][-1] < course.times[-1]]
    if len(rows) < _FEWEST_ROWS:
        return None
    times = np.array([row[0] for row in rows])
    rays = np.array([row[1] for row in rows]) @ camera_pose.rotation.T
    turning = Slerp(course.times, Rotation.from_matrix(course.rotations))
    # What is left of a row after the parabola that fits it best.
    powers = (times - times[:, _ROW // 2, None])[..., None] ** np.arange(3)
    left_over = np.eye(_ROW) - powers @ np.linalg.pinv(powers)

    def errors(offset: float) -> FloatArray:
        when = np.clip(times - offset, course.times[0], course.times[-1])
        turned = turning(when.ravel()).as_matrix().reshape(*when.shape, 3, 3)
        left = left_over @ np.einsum('nkij,nkj->nki', turned, rays)
        return np.asarray(left.reshape(len(rows), -1))

    return _best_offset(errors, times[:, _ROW // 2], MOST_CAMERA, _RAY_ERROR)


def _best_offset(
    errors: Callable[[float], FloatArray], times: FloatArray, most: float, scale: float
) -> ClockOffset | None:
    """Return the offset with least errors; None if others within ``most`` are as good.

    :param errors: gives those of every reading, (N,) or (N, K), at an offset
    :param times: (N,) s of the readings; those of two seconds count as one in the deviation
    """
    blocks, block = np.unique(np.floor(times / _BLOCK), return_inverse=True)
    if len(blocks) < _FEWEST_BLOCKS:
        return None

    def per_reading(offset: float) -> FloatArray:
        squared = (errors(offset).reshape(len(times), -1) / scale) ** 2
        return np.asarray(np.log1p(squared.sum(axis=1)))

    grid = np.arange(-most, most + _GRID / 2, _GRID)
    costs = np.array([np.bincount(block, per_reading(offset)) for offset in grid])
    offset = float(_lowest(grid, costs.sum(axis=1)[None])[0])
    # A vibration fits almost as well one period later: drawn anew from the same moments, the
    # best jumps there as often as it may be wrong.
    random = np.random.default_rng(0)
    drawn = random.multinomial(len(blocks), np.full(len(blocks), 1.0 / len(blocks)), _DRAWS)
    others = _lowest(grid, drawn @ costs.T)
    deviation = float(np.sqrt(np.mean((others - offset) ** 2)))
    if deviation > _LEAST_SURE or abs(offset) > most - _GRID:
        return None
    return ClockOffset(offset, deviation, len(blocks))


def _lowest(grid: FloatArray, costs: FloatArray) -> FloatArray:
    """Return where (N,) costs (N, M) on a grid (M,) are lowest, by the parabola around it."""
    place = np.clip(costs.argmin(axis=1), 1, len(grid) - 2)
    before, here, after = (costs[np.arange(len(costs)), place + d] for d in (-1, 0, 1))
    bend = np.maximum(after - 2.0 * here + before, 1e-9)
    shift = np.clip(0.5 * (before - after) / bend, -0.5, 0.5)
    return np.asarray(grid[place] + shift * (grid[1] - grid[0]))


def _interpolated(times: FloatArray, values: FloatArray, at: FloatArray) -> FloatArray:
    return np.stack([np.interp(at, times, column) for column in values.T], axis=1)
