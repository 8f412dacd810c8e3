"""What blocks ways and views: rectangles and discs on the ground."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mmedge_lab.simulation.world import Plant
from mmedge_ros.core.data_types import FloatArray

_SAMPLES = np.linspace(0.0, 1.0, 41)


@dataclass(frozen=True, eq=False)
class Block:
    """A rectangle on the ground, ``size`` (2,) m along its axes, turned by ``angle`` rad.

    ``height`` m is what it hides behind itself; 0 for a place that is only forbidden.
    """

    centre: FloatArray
    size: FloatArray
    angle: float
    height: float

    @property
    def corners(self) -> FloatArray:
        """Corners (4, 2) m, counter-clockwise."""
        half = 0.5 * self.size * np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]])
        c, s = np.cos(self.angle), np.sin(self.angle)
        return np.asarray(self.centre + half @ np.array([[c, s], [-s, c]]), np.float64)

    @property
    def outline(self) -> FloatArray:
        """Points (21, 2) m along the edges, and the centre."""
        corners = self.corners
        shares = np.linspace(0.0, 1.0, 6)[:-1, None]
        edges = zip(corners, np.roll(corners, -1, axis=0), strict=True)
        return np.vstack([*(a + shares * (b - a) for a, b in edges), self.centre[None]])


def distance_to_line(points: FloatArray, line: FloatArray) -> FloatArray:
    """Return the distance (N,) m of points (N, 2) to a polyline (K, 2)."""
    begin, along = line[:-1], np.diff(line, axis=0)
    apart = points[:, None] - begin
    share = np.sum(apart * along, axis=2) / np.maximum(np.sum(along * along, axis=1), 1e-12)
    apart -= np.clip(share, 0.0, 1.0)[..., None] * along
    return np.asarray(np.hypot(apart[..., 0], apart[..., 1]).min(axis=1), np.float64)


class Obstacles:
    """Answers how far points are from everything that stands on the ground."""

    def __init__(
        self,
        blocks: Iterable[Block] = (),
        discs: Iterable[tuple[FloatArray, float]] = (),
        crowns: Iterable[Plant] = (),
    ) -> None:
        """Take what stands in the way, and plants whose ``crowns`` only hide."""
        blocks, discs, crowns = tuple(blocks), tuple(discs), tuple(crowns)
        self._crown_centres = np.array([plant.position for plant in crowns]).reshape(-1, 2)
        self._crown_radii = np.array([plant.crown_radius for plant in crowns])
        self._crown_bottoms = np.array([plant.trunk_height for plant in crowns])
        self._crown_tops = self._crown_bottoms + [plant.crown_height for plant in crowns]
        self._centres = np.array([b.centre for b in blocks]).reshape(-1, 2)
        self._halves = np.array([0.5 * b.size for b in blocks]).reshape(-1, 2)
        angles = np.array([b.angle for b in blocks])
        self._along = np.column_stack([np.cos(angles), np.sin(angles)]).reshape(-1, 2)
        self._heights = np.array([b.height for b in blocks])
        self._disc_centres = np.array([centre for centre, _ in discs]).reshape(-1, 2)
        self._disc_radii = np.array([radius for _, radius in discs])

    def distance(self, points: FloatArray) -> FloatArray:
        """Return the distance (N,) m of points (N, 2) to the nearest edge, negative inside."""
        points = np.asarray(points, np.float64).reshape(-1, 2)
        nearest = np.full(len(points), np.inf)
        if len(self._centres):
            nearest = self._to_blocks(points).min(axis=1)
        if len(self._disc_radii):
            apart = points[:, None] - self._disc_centres
            discs = np.hypot(apart[..., 0], apart[..., 1]) - self._disc_radii
            nearest = np.minimum(nearest, discs.min(axis=1))
        return nearest

    def push(self, points: FloatArray, reach: float) -> FloatArray:
        """Return vectors (N, 2) away from what is nearer than ``reach`` m, up to 3 long."""
        step = 0.05
        here = self.distance(points)
        shifted = [
            self.distance(points + step * axis) - self.distance(points - step * axis)
            for axis in np.eye(2)
        ]
        slope = np.column_stack(shifted) / (2.0 * step)
        strength = np.clip(1.0 - here / reach, 0.0, 3.0)
        return np.asarray(strength[:, None] * slope, np.float64)

    def clear_way(self, begin: FloatArray, end: FloatArray, margin: float) -> bool:
        """Return whether the way is free from ``begin`` (2,) to ``end`` (2,)."""
        count = 2 + int(np.hypot(*(end - begin)) / 0.4)
        line = begin + np.linspace(0.0, 1.0, count)[:, None] * (end - begin)
        return bool((self.distance(line) > margin).all())

    def hides(self, eye: FloatArray, target: FloatArray) -> bool:
        """Return whether a block or crown is between the points ``eye`` and ``target``, (3,) m."""
        line = eye + _SAMPLES[:, None] * (target - eye)
        height = line[:, 2:]
        apart = line[:, None, :2] - self._crown_centres
        in_crown = np.hypot(apart[..., 0], apart[..., 1]) < self._crown_radii
        in_crown &= (height > self._crown_bottoms) & (height < self._crown_tops)
        if in_crown.any():
            return True
        if not len(self._centres):
            return False
        in_block: NDArray[np.bool_] = self._to_blocks(line[:, :2]) < 0.0
        return bool((in_block & (height < self._heights)).any())

    def _to_blocks(self, points: FloatArray) -> FloatArray:
        apart = points[:, None] - self._centres
        ax, ay = self._along[:, 0], self._along[:, 1]
        along = np.abs(apart[..., 0] * ax + apart[..., 1] * ay) - self._halves[:, 0]
        across = np.abs(apart[..., 1] * ax - apart[..., 0] * ay) - self._halves[:, 1]
        outside = np.hypot(np.maximum(along, 0.0), np.maximum(across, 0.0))
        return np.asarray(outside + np.minimum(np.maximum(along, across), 0.0), np.float64)
