"""What stands still and echoes all the same: walls, corners, plants, lamps and the ground."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from mmedge_ros.data_types import FloatArray
from mmedge_ros.lab.simulation.radar_echoes import Echoes
from mmedge_ros.lab.simulation.world import Building, Lamp, Plant, World

_STREAM = 32
_WALL_STEP = 1.2  # m along a wall
_STOREY = 2.0  # m up a wall
_HIGHEST = 9.0  # m: above, the antenna hardly looks
_WALL_REFLECTIVITY = 0.012  # m^2 of a piece of wall, seen at a slant
_MIRROR_REFLECTIVITY = 3.0  # the same, seen straight on
_MIRROR_COSINE = 1.0 - math.cos(math.radians(4.0))
_CORNER_REFLECTIVITY = 1.5
_CROWN_POINTS = 10
_CROWN_REFLECTIVITY = 0.04
_TRUNK_REFLECTIVITY = 0.12
_POLE_REFLECTIVITY = 0.25
# Grass and asphalt send back 0.01 of the area at a steep look, but evenly: the detector's
# moving average takes that away and leaves single spots.
_GROUND_AREA = 16.0  # m^2 per spot
_GROUND_SHARE = 0.0015
_GROUND_SPREAD = 1.4  # of the logarithm: 6 dB
_GROUND_REACH = 45.0
_SWAY_SPEED = 0.05  # m/s of leaves in light wind
_PATH_STEP = 0.5  # s


class _Spots(NamedTuple):
    """Echoing spots of one kind.

    ``normals`` (N, 3) are those of what has a face, zero for the rest; ``mirror`` (N,) m^2
    adds to ``reflectivity`` (N,) m^2 seen straight on; ``sway`` (N, 3) is the fastest in wind.
    """

    positions: FloatArray
    normals: FloatArray
    reflectivity: FloatArray
    mirror: FloatArray
    sway: FloatArray


class Clutter:
    """All spots of a world; a look at them takes those in reach."""

    def __init__(self, world: World) -> None:
        random = np.random.default_rng((world.seed, _STREAM))
        spots = [
            *(_building_spots(b, random) for b in world.buildings),
            *(_plant_spots(p, random) for p in world.plants),
            *(_lamp_spots(lamp, random) for lamp in world.lamps),
            _ground_spots(world, random),
        ]
        self._spots = _Spots._make(map(np.concatenate, zip(*spots, strict=True)))
        count = len(self._spots.mirror)
        self._sway_rate = random.uniform(1.5, 6.0, count)
        self._sway_phase = random.uniform(0.0, 2.0 * math.pi, count)

    def echoes(self, t: float, eye: FloatArray, forward: FloatArray, reach: float) -> Echoes:
        """Return the spots within ``reach`` m of ``eye`` (3,) and 70 degrees of ``forward``."""
        towards = self._spots.positions - eye
        squared = np.einsum('nk,nk->n', towards, towards)
        ahead = towards @ forward
        near = (squared < reach * reach) & (ahead > 0) & (ahead * ahead > 0.117 * squared)
        chosen = np.flatnonzero(near)
        spots = _Spots._make(values[chosen] for values in self._spots)
        rays = towards[chosen] / np.sqrt(squared[chosen])[:, None]
        cosine = -np.einsum('nk,nk->n', rays, spots.normals)
        face = np.abs(spots.normals).sum(axis=1) > 0
        strength = spots.reflectivity * np.where(face, np.maximum(cosine, 0.0), 1.0)
        mirror = spots.mirror * np.exp(-(1.0 - cosine) / _MIRROR_COSINE)
        strength += np.where(face, mirror, 0.0)
        swing = np.cos(self._sway_rate[chosen] * t + self._sway_phase[chosen])
        steadiness = np.where(spots.mirror > 0, 4.0, 0.5)
        return Echoes(spots.positions, spots.sway * swing[:, None], strength, steadiness)


def _building_spots(building: Building, random: np.random.Generator) -> _Spots:
    footprint = np.asarray(building.footprint, np.float64)
    storeys = np.arange(0.5, max(min(building.height, _HIGHEST), 0.6), _STOREY)
    walls = []
    for start, end in zip(footprint, np.roll(footprint, -1, axis=0), strict=True):
        length = float(np.linalg.norm(end - start))
        along = (end - start) / max(length, 1e-9)
        outward = np.array([along[1], -along[0], 0.0])
        places = np.arange(0.5 * _WALL_STEP, length, _WALL_STEP)
        place, storey = (grid.ravel() for grid in np.meshgrid(places, storeys))
        place = place + random.uniform(-0.3, 0.3, len(place))
        flat = start + place[:, None] * along + 0.02 * outward[:2]
        # Window frames, pipes and sills differ.
        strength = _WALL_REFLECTIVITY * _spread(random, len(place), 1.2)
        mirror = _MIRROR_REFLECTIVITY * _spread(random, len(place), 0.4)
        face = np.tile(outward, (len(place), 1))
        walls.append((np.column_stack([flat, storey]), face, strength, mirror))
    middle = footprint.mean(axis=0)
    for corner in footprint:
        out = (corner - middle) / max(float(np.linalg.norm(corner - middle)), 1e-9)
        rows = np.tile([*(corner + 0.05 * out), 0.0], (len(storeys), 1))
        rows[:, 2] = storeys
        strength = _CORNER_REFLECTIVITY * _spread(random, len(storeys))
        walls.append((rows, np.zeros_like(rows), strength, np.zeros(len(storeys))))
    return _rigid(*map(np.concatenate, zip(*walls, strict=True)))


def _plant_spots(plant: Plant, random: np.random.Generator) -> _Spots:
    directions = random.normal(size=(_CROWN_POINTS, 3))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    axes = np.array([plant.crown_radius, plant.crown_radius, 0.5 * plant.crown_height])
    middle = np.array([*plant.position, plant.trunk_height + 0.5 * plant.crown_height])
    crown = middle + directions * axes * random.uniform(0.7, 1.0, (_CROWN_POINTS, 1))
    size = max(float(plant.crown_radius * plant.crown_height), 0.1)
    strength = _CROWN_REFLECTIVITY * min(size, 6.0) * _spread(random, _CROWN_POINTS)
    sway = _SWAY_SPEED * random.normal(size=(_CROWN_POINTS, 3))
    heights = np.arange(0.4, plant.trunk_height, 0.8) if plant.trunk_radius > 0 else np.zeros(0)
    trunk = np.column_stack([np.tile(plant.position, (len(heights), 1)), heights])
    count = _CROWN_POINTS + len(heights)
    return _Spots(
        np.concatenate([crown, trunk]),
        np.zeros((count, 3)),
        np.concatenate([strength, _TRUNK_REFLECTIVITY * _spread(random, len(heights))]),
        np.zeros(count),
        np.concatenate([sway, np.zeros((len(heights), 3))]),
    )


def _lamp_spots(lamp: Lamp, random: np.random.Generator) -> _Spots:
    heights = np.arange(0.5, max(lamp.height, 0.6), 1.0)
    positions = np.column_stack([np.tile(lamp.position, (len(heights), 1)), heights])
    strength = _POLE_REFLECTIVITY * _spread(random, len(heights), 0.5)
    none = np.zeros(len(heights))
    return _rigid(positions, np.zeros((len(heights), 3)), strength, none)


def _ground_spots(world: World, random: np.random.Generator) -> _Spots:
    times = np.arange(0.0, world.seconds + _PATH_STEP, _PATH_STEP)
    flown = np.array([world.path.state(float(t)).pose.translation[:2] for t in times])
    low, high = flown.min(axis=0) - _GROUND_REACH, flown.max(axis=0) + _GROUND_REACH
    count = int(np.prod(high - low) / _GROUND_AREA)
    positions = np.column_stack([random.uniform(low, high, (count, 2)), np.zeros(count)])
    strength = _GROUND_AREA * _GROUND_SHARE * _spread(random, count, _GROUND_SPREAD)
    up = np.tile([0.0, 0.0, 1.0], (count, 1))
    return _rigid(positions, up, strength, np.zeros(count))


def _rigid(
    positions: FloatArray, normals: FloatArray, reflectivity: FloatArray, mirror: FloatArray
) -> _Spots:
    return _Spots(positions, normals, reflectivity, mirror, np.zeros_like(positions))


def _spread(random: np.random.Generator, count: int, sigma: float = 0.8) -> FloatArray:
    """Return (count,) log-normal factors whose median is 1."""
    return np.asarray(np.exp(random.normal(0.0, sigma, count)), np.float64)
