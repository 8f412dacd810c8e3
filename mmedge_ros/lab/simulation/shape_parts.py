"""Collects the parts of a shape: named, coloured groups of spheres, each at any phase."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from mmedge_ros.data_types import FloatArray
from mmedge_ros.lab.simulation.articulated import Shape

PHASES = 48  # instants that a cycle is sampled at

Colour = tuple[int, int, int]
Sphere = tuple[FloatArray, float]


def points(
    x: FloatArray | float, y: FloatArray | float = 0.0, z: FloatArray | float = 0.0
) -> FloatArray:
    """Return (PHASES, 3) m; each coordinate is a number or (PHASES,)."""
    columns = np.broadcast_arrays(x, y, z, np.zeros(PHASES))[:3]
    return np.stack(columns, axis=1).astype(np.float64)


def moved(place: FloatArray, x: float = 0.0, y: float = 0.0, z: float = 0.0) -> FloatArray:
    """Return ``place`` (..., 3) shifted by metres."""
    return np.asarray(place + np.array([x, y, z]), np.float64)


class PartList:
    """Parts in the order they were added.

    A sphere is its centre, (PHASES, 3) or (3,) m, and its radius in m.
    """

    def __init__(self) -> None:
        self.names: list[str] = []
        self.colours: list[Colour] = []
        self.first = [0]
        self.radii: list[float] = []
        self._centres: list[FloatArray] = []

    def add(self, name: str, colour: Colour, *spheres: Sphere) -> None:
        """Add one part, the convex hull of ``spheres``."""
        self.names.append(name)
        self.colours.append(colour)
        for centre, radius in spheres:
            self._centres.append(np.broadcast_to(centre, (PHASES, 3)))
            self.radii.append(radius)
        self.first.append(len(self.radii))

    @property
    def centres(self) -> FloatArray:
        """All centres, (PHASES, N, 3) m."""
        return np.stack(self._centres, axis=1)


def ring(centre: FloatArray, radius: float, count: int, thickness: float) -> Iterable[Sphere]:
    """Return ``count`` spheres of radius ``thickness`` on an upright circle along x."""
    for angle in np.arange(count) * (2.0 * np.pi / count):
        place = moved(centre, x=radius * float(np.cos(angle)), z=radius * float(np.sin(angle)))
        yield place, thickness


def shape_of(
    moving: PartList, resting: PartList, stride: float, pace: float, rest_rate: float = 0.2
) -> Shape:
    """Make a shape of the same parts in motion and at rest."""
    return Shape(
        names=tuple(moving.names),
        first=tuple(moving.first),
        radii=np.array(moving.radii),
        colours=np.array(moving.colours, np.uint8),
        moving=moving.centres,
        resting=resting.centres,
        stride=stride,
        pace=pace,
        rest_rate=rest_rate,
    )
