"""Clusters of moving radar returns."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import connected_components

from mmedge_ros.data_types import FloatArray

# Doppler is compared with distance: returns of one walker differ by up to about 1.5 m/s
# between trunk and limbs, two walkers usually by more.
_METRES_PER_SPEED = 0.5


def cluster_returns(
    positions: FloatArray, velocities: FloatArray, link_distance: float, minimum: int
) -> list[NDArray[np.intp]]:
    """Group returns by single linkage over ground position and Doppler velocity.

    The height is left out: the elevation of these radars is too coarse to separate by.

    :param positions: (N, 3) m, z up
    :param velocities: (N,) m/s
    :param link_distance: largest distance between neighbours of one cluster, m
    :param minimum: smaller clusters are left out
    :return: indices of each cluster, in order of their first member
    """
    if len(positions) < minimum:
        return []
    place = np.column_stack([positions[:, :2], _METRES_PER_SPEED * velocities])
    distance = np.linalg.norm(place[:, None] - place[None], axis=2)
    _, labels = connected_components(csr_matrix(distance <= link_distance), directed=False)
    members = [np.flatnonzero(labels == label) for label in range(int(labels.max()) + 1)]
    return [m for m in members if len(m) >= minimum]
