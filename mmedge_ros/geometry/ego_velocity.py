"""The radar's own velocity from its returns, for drones without odometry.

The world stands still, so every static return i in direction u_i shows the Doppler velocity
-u_i . v of the sensor's own v. Most returns of a scene are static and spread over the field of
view, people are few and narrow: the velocity that most returns agree on is the sensor's.
"""

from __future__ import annotations

import numpy as np

from mmedge_ros.core.data_types import FloatArray

_AGREEMENT = 0.15
_FEWEST = 5
# Two unknowns fit a group of walkers by chance, so that more than half must agree.
_CLEAR_MAJORITY = 0.6
_NARROWEST = np.sin(np.radians(12.0))
_MOST_PAIRS = 300


def ego_velocity(points: FloatArray, velocities: FloatArray) -> FloatArray | None:
    """Fit the sensor's velocity (3,) m/s in its own frame; its vertical part is taken as zero.

    Standing still is preferred where as many returns agree with it. Without enough returns
    that agree and are spread in azimuth there is no answer: one walking person alone would
    otherwise pass for the world.

    :param points: (N, 3) m, x forward
    :param velocities: (N,) m/s, positive = receding
    """
    known = np.isfinite(velocities)
    flat, speeds = points[known, :2], velocities[known]
    distance = np.linalg.norm(points[known], axis=1)
    rays = flat / np.maximum(distance, 1e-6)[:, None]
    if len(rays) < _FEWEST:
        return None
    still = int((np.abs(speeds) <= _AGREEMENT).sum())
    best = _most_agreeing(rays, speeds)
    agreeing = int(best.sum())
    if agreeing < max(_FEWEST, _CLEAR_MAJORITY * len(rays), still + _FEWEST):
        return np.zeros(3) if still >= _FEWEST else None
    if not _is_spread(rays[best]):
        return None
    fitted = np.linalg.lstsq(-rays[best], speeds[best], rcond=None)[0]
    return np.array([fitted[0], fitted[1], 0.0])


def _most_agreeing(
    rays: FloatArray, speeds: FloatArray
) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Mark the returns that agree with the best of the velocities two returns define."""
    pairs = np.column_stack(np.triu_indices(len(rays), 1))
    if len(pairs) > _MOST_PAIRS:
        # Every k-th pair: the same choice each time, over the whole scan.
        pairs = pairs[:: -(-len(pairs) // _MOST_PAIRS)]
    first, second = rays[pairs[:, 0]], rays[pairs[:, 1]]
    area = first[:, 0] * second[:, 1] - first[:, 1] * second[:, 0]
    wide = np.abs(area) >= _NARROWEST
    first, second, area = first[wide], second[wide], area[wide]
    if not len(area):
        return np.zeros(len(rays), bool)
    a, b = -speeds[pairs[wide, 0]], -speeds[pairs[wide, 1]]
    candidates = np.column_stack(
        [(a * second[:, 1] - b * first[:, 1]) / area, (b * first[:, 0] - a * second[:, 0]) / area]
    )
    agreeing = np.abs(speeds[None] + candidates @ rays.T) <= _AGREEMENT
    return np.asarray(agreeing[int(np.argmax(agreeing.sum(axis=1)))], bool)


def _is_spread(rays: FloatArray) -> bool:
    """Whether the directions differ enough to tell a velocity from one moving object."""
    azimuth = np.arctan2(rays[:, 1], rays[:, 0])
    return bool(np.std(azimuth) >= np.radians(10.0))
