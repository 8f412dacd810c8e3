"""Clusters of moving radar returns."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
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
    labels = _connected(
        len(place), cKDTree(place).query_pairs(link_distance, output_type='ndarray')
    )
    # A stable order keeps the members of each part ascending, and parts come by their first.
    order = np.argsort(labels, kind='stable')
    labels = labels[order]
    ends = (np.flatnonzero(labels[1:] != labels[:-1]) + 1).tolist()
    return [
        order[begin:end]
        for begin, end in zip([0, *ends], [*ends, len(order)], strict=True)
        if end - begin >= minimum
    ]


def _connected(count: int, links: NDArray[np.intp]) -> NDArray[np.intp]:
    """Label (N,) the nodes of a graph with the smallest node of their connected part.

    Union-find over all links (M, 2) at once: roots are hooked to the smallest root they are
    linked to until no link joins two parts. For the dozens of returns of a scan that is far
    quicker than to build a sparse matrix first.
    """
    roots = np.arange(count)
    first, second = links[:, 0], links[:, 1]
    while True:
        one, other = roots[first], roots[second]
        apart = one != other
        if not apart.any():
            return roots
        one, other = one[apart], other[apart]
        np.minimum.at(roots, np.maximum(one, other), np.minimum(one, other))
        while (roots[roots] != roots).any():
            roots = roots[roots]
