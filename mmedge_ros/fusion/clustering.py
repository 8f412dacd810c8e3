"""Clusters of moving radar returns."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components
from scipy.spatial import cKDTree

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
    links = cKDTree(place).query_pairs(link_distance, output_type='ndarray')
    graph = coo_matrix((np.ones(len(links), bool), links.T), shape=(len(place), len(place)))
    count, labels = connected_components(graph, directed=False)
    members = [np.flatnonzero(labels == label) for label in range(count)]
    return [m for m in members if len(m) >= minimum]
