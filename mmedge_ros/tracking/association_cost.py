"""How badly a measurement fits a track; infinite outside the gate.

Each function returns (N, M) for N predicted tracks and M measurements.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mmedge_ros.core.data_types import RADAR, Box, FloatArray, Measurement
from mmedge_ros.tracking.data_association import intersection_over_union
from mmedge_ros.tracking.kalman_filter import (
    inverse_3,
    radial_velocity,
    stacked,
    weighted_square,
)
from mmedge_ros.tracking.track import TrackState

# 99.9 % of the chi-squared distribution with three degrees of freedom.
POSITION_GATE = 16.27
# 99.9 % with four: position and radial velocity.
CLUSTER_GATE = 18.47

# Variances of centres and heights of detected boxes, in box heights: more than those that the
# filter of boxes takes, for bodies that are hidden in part.
_CENTRE_NOISE, _HEIGHT_NOISE = 0.08**2, 0.12**2
# Beyond this a box that overlaps is no less likely.
_MOST_DISTANCE = 2.0 * POSITION_GATE
# A box less likely than this is rather somebody else's, of whom nothing is known yet.
_LEAST_LIKELY = 24.0
# What an overlap of all is worth, and ranges: they are the only way to tell people apart who
# walk behind each other. Ranges further apart than three deviations are wrong.
_OVERLAP_WEIGHT, _RANGE_WEIGHT, _MOST_RANGE = 5.0, 2.0, 9.0
# Tracks without a box are continued by boxes that continue no other.
_BEGINNING = 14.0
_SHORTEST_SIGHT = 1e-3

_NOTHING = Box(0.0, 0.0, 0.0, 0.0)
_NO_VALUES = np.zeros(4)
_EXACT = (0.0, 0.0)


def box_cost(
    tracks: Sequence[TrackState], measurements: Sequence[Measurement], minimum_iou: float
) -> FloatArray:
    """Disagreement of boxes in the picture and of ranges, for confident detections.

    Twice the negative log likelihood of centre and height, but for constants, so that a lost
    track, which may be anywhere, takes no box from one that is well known. A box that overlaps
    the predicted one continues its track whatever its range says: the range of a lone box is the
    least certain thing about it. Tracks without a box are compared in space.
    """
    overlap, both = _overlaps(tracks, measurements)
    distance, surprise = _picture_distances(tracks, measurements)
    distance = np.minimum(distance, _MOST_DISTANCE)
    near = (distance <= POSITION_GATE) | (overlap >= minimum_iou)
    near &= distance + surprise <= _LEAST_LIKELY
    cost = distance + surprise - _OVERLAP_WEIGHT * overlap
    # What the camera says of ranges is in the heights of boxes already.
    ranged = np.array([RADAR in m.seen_by for m in measurements])
    if ranged.any():
        apart = np.minimum(_range_distance(tracks, measurements), _MOST_RANGE)
        cost += _RANGE_WEIGHT * np.where(ranged, apart, 0.0)
    if not both.all():
        in_space = _nearer_distance(tracks, measurements)
        near = np.where(both, near, in_space <= POSITION_GATE)
        cost = np.where(both, cost, in_space + _BEGINNING)
    return np.where(near, cost, np.inf)


def _picture_distances(
    tracks: Sequence[TrackState], measurements: Sequence[Measurement]
) -> tuple[FloatArray, FloatArray]:
    """Squared Mahalanobis distances (N, M) of centres and heights of boxes.

    And the logarithms (N, 1) of the determinants of the covariances they are under, 0 for a
    track that is known exactly.
    """
    states = [t.box for t in tracks]
    predicted = stacked([_NO_VALUES if s is None else s.values for s in states])
    corners = np.array([m.box if m.box is not None else _NOTHING for m in measurements])
    heights = np.maximum(predicted[:, 3], 1.0)[:, None]
    measured = (corners[:, :2] + corners[:, 2:]) / 2.0
    apart = (measured[None] - predicted[:, None, :2]) / heights[..., None]
    grown = (corners[:, 3] - corners[:, 1] - predicted[:, 3:]) / heights
    spreads = np.array([_EXACT if s is None else (s.centre.value, s.size.value) for s in states])
    centre, size = spreads[:, :1] + _CENTRE_NOISE, spreads[:, 1:] + _HEIGHT_NOISE
    distance = np.einsum('nmi,nmi->nm', apart, apart) / centre + grown**2 / size
    determinants = np.log((centre / _CENTRE_NOISE) ** 2 * size / _HEIGHT_NOISE)
    return distance, determinants


def _range_distance(
    tracks: Sequence[TrackState], measurements: Sequence[Measurement]
) -> FloatArray:
    """Squared Mahalanobis distance of ranges along the sights to the tracks.

    Of a measurement in doubt the range that agrees better counts.
    """
    means = stacked([t.mean for t in tracks])[:, :3]
    covariances = stacked([t.covariance for t in tracks])[:, :3, :3]
    readings = [*measurements, *(m.otherwise for m in measurements if m.otherwise is not None)]
    origins = stacked([m.origin for m in readings])
    sights = means[:, None] - origins
    ranges = np.maximum(np.sqrt(np.einsum('nmi,nmi->nm', sights, sights)), _SHORTEST_SIGHT)
    sights /= ranges[..., None]
    variances = np.einsum('nmi,nij,nmj->nm', sights, covariances, sights)
    seen = stacked([m.position for m in readings]) - origins
    lengths = np.maximum(np.sqrt(np.einsum('mi,mi->m', seen, seen)), _SHORTEST_SIGHT)
    noises = np.einsum('mi,mij,mj->m', seen, stacked([m.covariance for m in readings]), seen)
    squared = (ranges - lengths) ** 2 / (variances + noises / lengths**2)
    return _better(squared, measurements)


def place_cost(tracks: Sequence[TrackState], measurements: Sequence[Measurement]) -> FloatArray:
    """Distance in space alone."""
    distance = _nearer_distance(tracks, measurements)
    return np.where(distance <= POSITION_GATE, distance, np.inf)


def _nearer_distance(
    tracks: Sequence[TrackState], measurements: Sequence[Measurement]
) -> FloatArray:
    """Squared Mahalanobis distance of positions; of those in doubt the nearer place counts."""
    others = [m.otherwise for m in measurements if m.otherwise is not None]
    return _better(position_distance(tracks, [*measurements, *others]), measurements)


def _better(distance: FloatArray, measurements: Sequence[Measurement]) -> FloatArray:
    """Return the lesser distances (N, M) of measurements and of what holds otherwise.

    :param distance: (N, M + K), those of the K measurements in doubt once more at the end
    """
    count = len(measurements)
    doubtful = [j for j, m in enumerate(measurements) if m.otherwise is not None]
    if doubtful:
        distance[:, doubtful] = np.minimum(distance[:, doubtful], distance[:, count:])
    return distance[:, :count]


def overlap_cost(
    tracks: Sequence[TrackState], measurements: Sequence[Measurement], minimum_iou: float
) -> FloatArray:
    """Disagreement of boxes alone, for detections too weak to be believed elsewhere."""
    overlap, both = _overlaps(tracks, measurements)
    return np.where(both & (overlap >= minimum_iou), 1.0 - overlap, np.inf)


def cluster_cost(
    tracks: Sequence[TrackState], measurements: Sequence[Measurement], clutter_density: float
) -> FloatArray:
    """Twice the negative log likelihood of position and velocity, for radar-only clusters.

    The likelihood's normalisation matters here: a lost track is uncertain enough to be near
    everything. It must not take the returns of one that is well known, nor a ghost: what is
    less likely than a false cluster (``clutter_density`` per cubic metre) is not associated.
    """
    distance, determinants = _distances(tracks, measurements)
    means = stacked([t.mean for t in tracks])[:, None]
    covariances = stacked([t.covariance for t in tracks])[:, None]
    origins = stacked([m.origin for m in measurements])[None]
    predicted, rows = radial_velocity(means, origins)
    variances = weighted_square(rows, covariances)
    variances += [m.radial_variance for m in measurements]
    velocities = np.array([m.radial_velocity for m in measurements])
    distance += (velocities - predicted) ** 2 / variances
    cost = distance + np.log(determinants) + 3.0 * math.log(2.0 * math.pi)
    likely = cost <= -2.0 * math.log(clutter_density)
    return np.where(likely & (distance <= CLUSTER_GATE), cost, np.inf)


def position_distance(
    tracks: Sequence[TrackState], measurements: Sequence[Measurement]
) -> FloatArray:
    """Squared Mahalanobis distance of positions."""
    return _distances(tracks, measurements)[0]


def _distances(
    tracks: Sequence[TrackState], measurements: Sequence[Measurement]
) -> tuple[FloatArray, FloatArray]:
    """Squared Mahalanobis distances, and determinants of the covariances they are under."""
    means = stacked([t.mean for t in tracks])[:, None, :3]
    positions = stacked([m.position for m in measurements])
    predicted = stacked([t.covariance for t in tracks])[:, None, :3, :3]
    noises = stacked([m.covariance for m in measurements])
    weights, determinants = inverse_3(predicted + noises)
    return weighted_square(positions - means, weights), determinants


def _overlaps(
    tracks: Sequence[TrackState], measurements: Sequence[Measurement]
) -> tuple[FloatArray, NDArray[np.bool_]]:
    """IoU of predicted and measured boxes, and where both exist."""
    predicted = _corners([_NO_VALUES if t.box is None else t.box.values for t in tracks])
    measured = np.array([m.box if m.box is not None else _NOTHING for m in measurements])
    exists = np.array([[t.box is not None] for t in tracks]) & np.array(
        [m.box is not None for m in measurements]
    )
    return intersection_over_union(predicted, measured), exists


def box_overlaps(first: Sequence[TrackState], second: Sequence[TrackState]) -> FloatArray:
    """IoU (N, M) of the boxes of tracks that have one."""
    corners = [_corners([t.box.values for t in tracks if t.box]) for tracks in (first, second)]
    return intersection_over_union(*corners)


def _corners(values: Sequence[FloatArray]) -> FloatArray:
    """Corners (N, 4) of boxes given by centre x, centre y, width, height."""
    boxes = stacked(values)
    half = np.maximum(boxes[:, 2:], 1.0) / 2.0
    return np.concatenate([boxes[:, :2] - half, boxes[:, :2] + half], axis=1)
