"""How badly a measurement fits a track; infinite outside the gate.

Each function returns (N, M) for N predicted tracks and M measurements.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mmedge_ros.data_types import Box, FloatArray, Measurement
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

_NOTHING = Box(0.0, 0.0, 0.0, 0.0)
_NO_VALUES = np.zeros(4)


def box_cost(
    tracks: Sequence[TrackState], measurements: Sequence[Measurement], minimum_iou: float
) -> FloatArray:
    """Distance in space plus disagreement of boxes, for confident detections.

    A box that overlaps the predicted one continues its track whatever its range says: the
    range of a lone box is the least certain thing about it.
    """
    count = len(measurements)
    # Of those in doubt the nearer of both places counts.
    doubtful = [j for j, m in enumerate(measurements) if m.otherwise is not None]
    others = [m.otherwise for m in measurements if m.otherwise is not None]
    distance = position_distance(tracks, [*measurements, *others])
    if doubtful:
        distance[:, doubtful] = np.minimum(distance[:, doubtful], distance[:, count:])
        distance = distance[:, :count]
    overlap, both = _overlaps(tracks, measurements)
    near = (distance <= POSITION_GATE) | (both & (overlap >= minimum_iou))
    cost = np.minimum(distance / POSITION_GATE, 2.0) + np.where(both, 1.0 - overlap, 1.0)
    return np.where(near, cost, np.inf)


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


def _corners(values: Sequence[FloatArray]) -> FloatArray:
    """Corners (N, 4) of boxes given by centre x, centre y, width, height."""
    boxes = stacked(values)
    half = np.maximum(boxes[:, 2:], 1.0) / 2.0
    return np.concatenate([boxes[:, :2] - half, boxes[:, :2] + half], axis=1)
