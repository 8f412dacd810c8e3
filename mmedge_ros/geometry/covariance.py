"""Covariances of places seen from somewhere."""

from __future__ import annotations

import numpy as np

from mmedge_ros.data_types import FloatArray


def spreads(
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
