"""A place where flights take place: what stands there, and what has to stay free."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from mmedge_ros.data_types import FloatArray
from mmedge_ros.lab.simulation.obstacles import Block, Obstacles
from mmedge_ros.lab.simulation.world import Building, Ground, Lamp, Plant, Strip

# What the drone flies past keeps this far off it, m.
_SAFE = 3.5


@dataclass(eq=False)
class Site:
    """What stands around, and the ways across it.

    ``blocks`` are where the ``buildings`` stand, ``parked`` where cars do; ``roads`` and
    ``paths`` are the strips that cars and cyclists follow.
    """

    ground: Ground
    buildings: list[Building] = field(default_factory=list)
    plants: list[Plant] = field(default_factory=list)
    lamps: list[Lamp] = field(default_factory=list)
    blocks: list[Block] = field(default_factory=list)
    roads: list[Strip] = field(default_factory=list)
    paths: list[Strip] = field(default_factory=list)
    parked: list[Block] = field(default_factory=list)

    def obstacles(self, forbidden: tuple[Block, ...] = ()) -> Obstacles:
        """Return everything one cannot walk through, and ``forbidden`` places besides."""
        discs = [(p.position, max(p.trunk_radius, 0.1)) for p in self.plants if p.trunk_radius]
        discs += [(p.position, 0.8 * p.crown_radius) for p in self.plants if not p.trunk_radius]
        discs += [(lamp.position, 0.12) for lamp in self.lamps]
        return Obstacles((*self.blocks, *self.parked, *forbidden), discs, self.plants)


@dataclass(frozen=True, eq=False)
class Clearing:
    """What has to stay free: the drone's way, and most of what it looks at.

    ``eyes`` (K, 3) m are places of the drone, ``stage`` (2,) m what it looks at.
    """

    eyes: FloatArray
    stage: FloatArray

    def allows(self, points: FloatArray, height: float, narrow: float, reach: float = 1.3) -> bool:
        """Tell whether something of ``height`` m may stand at all of ``points`` (N, 2).

        ``narrow`` rad is half the angle about the line of sight that it must leave free, up to
        ``reach`` times the stage's distance.
        """
        apart = points[None] - self.eyes[:, None, :2]
        distance = np.hypot(apart[..., 0], apart[..., 1])
        if (distance[self.eyes[:, 2] < height + 1.0] < _SAFE).any():
            return False
        ahead = self.stage - self.eyes[:, :2]
        along = np.einsum('knc,kc->kn', apart, ahead)
        across = apart[..., 1] * ahead[:, :1] - apart[..., 0] * ahead[:, 1:]
        bearing = np.abs(np.arctan2(across, along))
        far = reach * np.hypot(ahead[:, 0], ahead[:, 1])[:, None]
        return not bool(((bearing < narrow) & (distance < far)).any())
