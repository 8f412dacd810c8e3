"""Rotations and cross products of single vectors, and covariances given along rays.

scipy's rotations do the same for arrays of any shape; for a single one most of their time goes
into checks, and the ego motion needs one for each unit.
"""

from __future__ import annotations

import math

import numpy as np

from mmedge_ros.core.data_types import FloatArray

# Below this (rad) the ratio of a sine to its angle is one to the last digit.
_SMALLEST = 1e-9


def rotation_vector(rotation: FloatArray) -> FloatArray:
    """Return axis times angle (3,) in rad of a rotation matrix (3, 3); angles are 0 to pi."""
    w, x, y, z = quaternion_of(rotation)
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


def quaternion_of(rotation: FloatArray) -> tuple[float, float, float, float]:
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


def ray_covariances(
    rays: FloatArray, down: FloatArray, radial: FloatArray, across: FloatArray, along: FloatArray
) -> FloatArray:
    """Covariances (N, 3, 3) with deviations (m) along rays, across them, and up and down.

    :param rays: (N, 3) unit vectors
    :param down: (3,) unit vector
    :param radial: (N,), as are ``across`` and ``along``
    """
    sides = rays @ _crossing(down).T
    lengths = np.sqrt(np.einsum('ij,ij->i', sides, sides))
    is_upright = lengths < 1e-6
    sides = sides / np.where(is_upright, 1.0, lengths)[:, None]
    # The third axis needs no product: the squares of all three add up to the unit matrix.
    square = (along * along)[:, None, None]
    covariances: FloatArray = square * np.eye(3)
    covariances += ((radial * radial)[:, None, None] - square) * _squares(rays)
    covariances += ((across * across)[:, None, None] - square) * _squares(sides)
    if is_upright.any():
        # Straight up or down no direction stands out.
        largest = np.maximum(np.maximum(radial, across), along)[is_upright]
        covariances[is_upright] = (largest**2)[:, None, None] * np.eye(3)
    return covariances


def _squares(vectors: FloatArray) -> FloatArray:
    """Return v v' (N, 3, 3) of vectors (N, 3)."""
    return np.asarray(vectors[:, :, None] * vectors[:, None])


def _crossing(vector: FloatArray) -> FloatArray:
    """Return the matrix (3, 3) that takes the cross product of a vector (3,) with another."""
    a, b, c = vector.tolist()
    return np.array([[0.0, -c, b], [c, 0.0, -a], [-b, a, 0.0]])


def cross(first: FloatArray, second: FloatArray) -> FloatArray:
    """Cross product of two vectors (3,); numpy's own takes six times as long for one pair."""
    a, b, c = first.tolist()
    x, y, z = second.tolist()
    return np.array([b * z - c * y, c * x - a * z, a * y - b * x])
