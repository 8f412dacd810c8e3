"""Moving radar returns and their clusters, in the tracking frame and in the picture."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mmedge_ros.core.data_types import NS_PER_S, FloatArray, UnitFeatures
from mmedge_ros.geometry.ego_velocity import ego_velocity
from mmedge_ros.geometry.ground_plane import GroundView
from mmedge_ros.geometry.sensor_poses import SensorGeometry

# Several times what a mmWave radar sends; the work on returns grows with their square.
_MOST_RETURNS = 500
# Of so many each is compared with each.
_MOST_COMPARED = 250
# Doppler is compared with distance: returns of one walker differ by up to about 1.5 m/s
# between trunk and limbs, two walkers usually by more.
_METRES_PER_SPEED = 0.5
# Above the ground, m: where returns of bodies are taken to come from.
_MIDDLE = 0.9
# What is higher above the ground than this (m), wherever it is, is nobody: the drone's own parts
# go with it and seem to walk.
_TALLEST = 2.5


class PlacedReturns(NamedTuple):
    """Moving returns of one or more scans, brought to one instant.

    ``positions`` (N, 3) in the tracking frame, ``distances`` (N,) from the camera, ``pixels``
    (N, 2) with ``in_view`` (N,), ``velocities`` (N,). The ground, and not the radar's elevation,
    says how high those are that are ``on_ground`` (N,).
    """

    positions: FloatArray
    velocities: FloatArray
    distances: FloatArray
    pixels: FloatArray
    in_view: NDArray[np.bool_]
    on_ground: NDArray[np.bool_]

    def select(self, mask: NDArray[np.bool_]) -> PlacedReturns:
        """Return those a mask (N,) marks."""
        return PlacedReturns._make(values[mask] for values in self)

    def inside(self, boxes: FloatArray) -> NDArray[np.bool_]:
        """Mark (M, N) those that lie strictly inside boxes (M, 4) given by their corners."""
        low, high = boxes[:, None, :2], boxes[:, None, 2:]
        strictly = (self.pixels > low) & (self.pixels < high)
        marked: NDArray[np.bool_] = self.in_view & strictly[..., 0] & strictly[..., 1]
        return marked


def place_returns(
    scans: Sequence[UnitFeatures],
    at_ns: int,
    geometry: SensorGeometry,
    moving_speed: float,
    scan_geometries: Sequence[SensorGeometry] | None = None,
    ground: GroundView | None = None,
) -> PlacedReturns:
    """Keep the moving returns and move each along its line of sight to the instant ``at_ns``.

    What moves is judged after the radar's own motion is taken out of the Doppler velocity.
    """
    parts = [
        _moving_returns(scan, at_ns, at_scan, moving_speed)
        for scan, at_scan in zip(scans, scan_geometries or [geometry] * len(scans), strict=True)
    ]
    positions = np.concatenate([p for p, _ in parts]) if parts else np.zeros((0, 3))
    speeds = np.concatenate([v for _, v in parts]) if parts else np.zeros(0)
    on_ground = np.zeros(len(positions), bool)
    if ground is not None and len(positions):
        eye = geometry.radar_pose.translation
        lowest = eye[2] - np.linalg.norm(positions - eye, axis=1) - ground.heights(positions)
        reach = lowest <= _TALLEST
        positions, speeds = positions[reach], speeds[reach]
        pinned, on_ground = ground.pinned(eye, positions, _MIDDLE)
        positions = np.where(on_ground[:, None], pinned, positions)
    optical = geometry.camera_pose.inverse().apply(positions)
    if geometry.camera is None:
        pixels, in_view = np.zeros((len(optical), 2)), np.zeros(len(optical), bool)
    else:
        pixels, in_view = geometry.camera.project(optical)
    distances = np.sqrt(np.einsum('ij,ij->i', optical, optical))
    return PlacedReturns(positions, speeds, distances, pixels, in_view, on_ground)


def _moving_returns(
    scan: UnitFeatures, at_ns: int, geometry: SensorGeometry, moving_speed: float
) -> tuple[FloatArray, FloatArray]:
    """Return positions (M, 3) at ``at_ns`` and velocities (M,) in the tracking frame.

    In a frame that stands still (odometry) velocities are those over ground; in one that is
    fixed to the drone they stay as measured, relative to it.
    """
    returns = thinned(scan.returns).astype(np.float64)
    points, speeds = returns[:, :3], returns[:, 3]
    over_ground = speeds_over_ground(points, speeds, geometry)
    if geometry.radar_velocity is not None:
        speeds = over_ground
    moving = np.abs(over_ground) >= moving_speed
    points, speeds = points[moving], speeds[moving]
    dt = (at_ns - scan.stamp_ns) / NS_PER_S
    directions = geometry.radar_pose.rotate(_rays(points))
    return geometry.radar_pose.apply(points) + directions * (speeds * dt)[:, None], speeds


def thinned(returns: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return every k-th of the returns (N, 5) of a dense cloud, such as a lidar's."""
    return returns[:: max(-(-len(returns) // _MOST_RETURNS), 1)]


def speeds_over_ground(
    points: FloatArray, speeds: FloatArray, geometry: SensorGeometry
) -> FloatArray:
    """Take the radar's own motion out of Doppler velocities (N,), m/s, as far as it is known.

    By odometry, else by the velocity that static returns agree on, else they stay as they are.

    :param points: (N, 3) m in the radar's frame
    """
    if geometry.radar_velocity is not None:
        own = geometry.radar_velocity @ geometry.radar_pose.rotation
        return speeds + _rays(points) @ own
    fitted = ego_velocity(points, speeds)
    return speeds if fitted is None else speeds + _rays(points) @ fitted


def _rays(points: FloatArray) -> FloatArray:
    """Unit vectors (N, 3) towards points (N, 3)."""
    distances = np.sqrt(np.einsum('ij,ij->i', points, points))
    return np.asarray(points / np.maximum(distances, 1e-6)[:, None])


def cluster_returns(
    positions: FloatArray, velocities: FloatArray, link_distance: float
) -> list[NDArray[np.intp]]:
    """Group returns by single linkage over ground position and Doppler velocity.

    The height is left out: the elevation of these radars is too coarse to separate by.

    :param positions: (N, 3) m, z up
    :param velocities: (N,) m/s
    :param link_distance: largest distance between neighbours of one cluster, m
    :return: indices of each cluster, in order of their first member
    """
    if not len(positions):
        return []
    place = np.column_stack([positions[:, :2], _METRES_PER_SPEED * velocities])
    labels = _connected(len(place), _neighbours(place, link_distance))
    # A stable order keeps the members of each part ascending, and parts come by their first.
    order = np.argsort(labels, kind='stable')
    labels = labels[order]
    ends = (np.flatnonzero(labels[1:] != labels[:-1]) + 1).tolist()
    return [order[begin:end] for begin, end in zip([0, *ends], [*ends, len(order)], strict=True)]


def _neighbours(places: FloatArray, distance: float) -> NDArray[np.intp]:
    """Return the pairs (M, 2) of places (N, 3) that are no farther apart than this."""
    if len(places) > _MOST_COMPARED:
        from scipy.spatial import cKDTree  # takes a third of the start of a node

        pairs: NDArray[np.intp] = cKDTree(places).query_pairs(distance, output_type='ndarray')
        return pairs
    apart = places[:, None, :] - places[None, :, :]
    near = np.einsum('ijk,ijk->ij', apart, apart) <= distance * distance
    return np.argwhere(np.triu(near, 1))


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
