"""Rotation vectors and matrices of one rotation at a time.

scipy's rotations do the same for arrays of any shape; for a single one most of their time goes
into checks, and the ego motion is asked for at each unit.
"""

from __future__ import annotations

import math

import numpy as np

from mmedge_ros.data_types import FloatArray

# Below this (rad) the ratio of a sine to its angle is one to the last digit.
_SMALLEST = 1e-9


def rotation_vector(rotation: FloatArray) -> FloatArray:
    """Return axis times angle (3,) in rad of a rotation matrix (3, 3); angles are 0 to pi."""
    w, x, y, z = _quaternion(rotation)
    sine = math.sqrt(x * x + y * y + z * z)
    scale = 2.0 * math.atan2(sine, w) / sine if sine > _SMALLEST else 2.0
    return np.array([scale * x, scale * y, scale * z])


def rotation_by(vector: FloatArray) -> FloatArray:
    """Return the matrix (3, 3) that turns about a vector (3,) by its length in rad."""
    x, y, z = vector.tolist()
    angle = math.sqrt(x * x + y * y + z * z)
    scale = math.sin(angle / 2.0) / angle if angle > _SMALLEST else 0.5
    return rotation_of(math.cos(angle / 2.0), scale * x, scale * y, scale * z)


def rotation_of(w: float, x: float, y: float, z: float) -> FloatArray:
    """Return the matrix (3, 3) of a unit quaternion."""
    return np.array(
        [
            [1.0 - 2.0 * (y * y + z * z), 2.0 * (x * y - z * w), 2.0 * (x * z + y * w)],
            [2.0 * (x * y + z * w), 1.0 - 2.0 * (x * x + z * z), 2.0 * (y * z - x * w)],
            [2.0 * (x * z - y * w), 2.0 * (y * z + x * w), 1.0 - 2.0 * (x * x + y * y)],
        ]
    )


def _quaternion(rotation: FloatArray) -> tuple[float, float, float, float]:
    """Return the unit quaternion w, x, y, z with w >= 0, from its largest component."""
    (a, b, c), (d, e, f), (g, h, i) = rotation.tolist()
    candidates = (a + e + i, a - e - i, e - a - i, i - a - e)
    largest = max(range(4), key=candidates.__getitem__)
    # The outer product of the quaternion with itself is linear in the matrix: one of its rows.
    row = (
        (1.0 + candidates[0], h - f, c - g, d - b),
        (h - f, 1.0 + candidates[1], b + d, c + g),
        (c - g, b + d, 1.0 + candidates[2], f + h),
        (d - b, c + g, f + h, 1.0 + candidates[3]),
    )[largest]
    w, x, y, z = row
    length = math.copysign(math.sqrt(w * w + x * x + y * y + z * z), w)
    return w / length, x / length, y / length, z / length
