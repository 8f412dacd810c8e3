"""Covariances of places seen from somewhere."""

from __future__ import annotations

import numpy as np

from mmedge_ros.data_types import FloatArray


def spread(
    ray: FloatArray, down: FloatArray, radial: float, across: float, along: float
) -> FloatArray:
    """Covariance (3, 3) with deviations (m) along a ray, across it, and up and down."""
    side = cross(down, ray)
    length = float(np.linalg.norm(side))
    if length < 1e-6:
        # Straight up or down no direction stands out.
        return max(radial, across, along) ** 2 * np.eye(3)
    side /= length
    axes = np.column_stack([ray, side, cross(ray, side)])
    covariance: FloatArray = (axes * np.square([radial, across, along])) @ axes.T
    return covariance


def cross(first: FloatArray, second: FloatArray) -> FloatArray:
    """Cross product of two vectors (3,); numpy's own takes six times as long for one pair."""
    a, b, c = first.tolist()
    x, y, z = second.tolist()
    return np.array([b * z - c * y, c * x - a * z, a * y - b * x])
