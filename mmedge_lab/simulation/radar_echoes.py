"""Echoes on their way to the radar: movers, their mirror images, and all that stands still."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mmedge_lab.simulation.world import Building, Lamp, Mover, Plant, World
from mmedge_ros.core.data_types import FloatArray

# Parts in front hide those behind: weight falls by e per metre of depth.
_DEPTH_SCALE = 1.0
# Spheres that send back more than this of their mover are worth a ghost.
_BRIGHT_SHARE = 0.12
# A wall gives back a tenth of what hits it, the ground less; both ways of one echo.
_WALL_LOSS = 0.06
_GROUND_LOSS = 0.04

# How much of an echo's power does not fluctuate, over the rest: a car has a few flat faces that
# always answer, people and dogs turn and swing (Swerling's first case).
_STEADINESS = {'car': 2.0, 'cyclist': 0.5}


class Echoes(NamedTuple):
    """Scattering centres.

    ``positions`` (N, 3) m and ``velocities`` (N, 3) m/s in odom, mean ``reflectivity`` (N,)
    m^2, and ``steadiness`` (N,), constant over fluctuating power.
    """

    positions: FloatArray
    velocities: FloatArray
    reflectivity: FloatArray
    steadiness: FloatArray

    def select(self, chosen: NDArray[np.bool_]) -> Echoes:
        """Return those that a mask (N,) marks."""
        return Echoes._make(values[chosen] for values in self)


_NO_ECHOES = Echoes(np.zeros((0, 3)), np.zeros((0, 3)), np.zeros(0), np.zeros(0))


def joined(parts: Sequence[Echoes]) -> Echoes:
    """Put echoes after each other."""
    return Echoes._make(map(np.concatenate, zip(*parts, strict=True)))


def mover_echoes(
    movers: Sequence[Mover], t: float, eye: FloatArray, losses: Sequence[float] = ()
) -> tuple[Echoes, Echoes]:
    """Return one echo per sphere of every mover, from the side that faces ``eye`` (3,).

    ``losses`` are decibels that each mover's cross-section lacks.

    A mover's spheres share its radar cross-section by area, those behind others with less;
    each moves as its limb does, which is what spreads a walker over Doppler. The second
    result holds the few that make most of each mover.
    """
    if not movers:
        return _NO_ECHOES, _NO_ECHOES
    bodies = [mover.body(t) for mover in movers]
    counts = [len(body.radii) for body in bodies]
    first = np.cumsum([0, *counts[:-1]])
    centres = np.concatenate([body.centres for body in bodies])
    radii = np.concatenate([body.radii for body in bodies])
    towards = eye - centres
    distance = np.maximum(np.sqrt(np.einsum('nk,nk->n', towards, towards)), 1e-6)
    near = distance - radii
    depth = near - np.repeat(np.minimum.reduceat(near, first), counts)
    weight = radii**2 * np.exp(-depth / _DEPTH_SCALE)
    share = weight / np.repeat(np.maximum(np.add.reduceat(weight, first), 1e-12), counts)
    reach = np.minimum(radii, 0.5 * distance) / distance
    sections = np.array([mover.reflectivity for mover in movers])
    if losses:
        sections *= 10.0 ** (-0.1 * np.array(losses))
    echoes = Echoes(
        centres + towards * reach[:, None],
        np.concatenate([body.velocities for body in bodies]),
        np.repeat(sections, counts) * share,
        np.repeat([_STEADINESS.get(mover.label, 0.0) for mover in movers], counts),
    )
    return echoes, echoes.select(share > _BRIGHT_SHARE)


def ground_ghosts(echoes: Echoes, eye: FloatArray) -> Echoes:
    """Return what comes back by way of the ground: a weak double below, a little farther.

    One way is direct and one by the ground; the array takes the ground's bearing.
    """
    mirrored = echoes.positions * np.array([1.0, 1.0, -1.0])
    towards = mirrored - eye
    far = np.maximum(np.linalg.norm(towards, axis=1), 1e-6)
    near = np.linalg.norm(echoes.positions - eye, axis=1)
    return Echoes(
        eye + towards * ((0.5 * (far + near)) / far)[:, None],
        echoes.velocities * np.array([1.0, 1.0, -1.0]),
        echoes.reflectivity * _GROUND_LOSS,
        np.zeros_like(echoes.reflectivity),
    )


class WallMirrors:
    """The walls of the buildings as mirrors, (W,) of them."""

    def __init__(self, buildings: Sequence[Building]) -> None:
        corners = np.array([b.footprint for b in buildings], np.float64).reshape(-1, 4, 2)
        edges = (np.roll(corners, -1, axis=1) - corners).reshape(-1, 2)
        self._start = corners.reshape(-1, 2)
        self._length = np.maximum(np.linalg.norm(edges, axis=1), 1e-9)
        self._along = edges / self._length[:, None]
        self._normal = np.column_stack([self._along[:, 1], -self._along[:, 0]])
        self._height = np.repeat([b.height for b in buildings], 4)

    def ghosts(self, echoes: Echoes, eye: FloatArray) -> Echoes:
        """Return the mirror images of echoes that ``eye`` (3,) sees in a wall."""
        if not len(self._height) or not len(echoes.reflectivity):
            return _NO_ECHOES
        offset = (self._start * self._normal).sum(axis=1)
        eye_side = self._normal @ eye[:2] - offset  # (W,)
        side = echoes.positions[:, :2] @ self._normal.T - offset  # (N, W)
        share = eye_side / np.maximum(eye_side + side, 1e-9)
        ground = eye[:2] + share[..., None] * (
            echoes.positions[:, None, :2] - 2.0 * side[..., None] * self._normal - eye[:2]
        )
        along = ((ground - self._start) * self._along).sum(axis=2)
        height = eye[2] + share * (echoes.positions[:, 2:] - eye[2])
        seen = (eye_side > 0) & (side > 0) & (along > 0) & (along < self._length)
        mover, wall = np.nonzero(seen & (height < self._height))
        normal = np.column_stack([self._normal[wall], np.zeros(len(wall))])
        velocity = echoes.velocities[mover]
        return Echoes(
            echoes.positions[mover] - 2.0 * side[mover, wall][:, None] * normal,
            velocity - 2.0 * (velocity * normal).sum(axis=1, keepdims=True) * normal,
            echoes.reflectivity[mover] * _WALL_LOSS,
            np.zeros(len(mover)),
        )


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
            # Hard flights have ground that fills every cell.
            *(() if world.hard else (_ground_spots(world, random),)),
        ]
        empty = _rigid(np.zeros((0, 3)), np.zeros((0, 3)), np.zeros(0), np.zeros(0))
        self._spots = _Spots._make(map(np.concatenate, zip(empty, *spots, strict=True)))
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
    middle = np.array(
        [*plant.position, plant.base + plant.trunk_height + 0.5 * plant.crown_height]
    )
    crown = middle + directions * axes * random.uniform(0.7, 1.0, (_CROWN_POINTS, 1))
    size = max(float(plant.crown_radius * plant.crown_height), 0.1)
    strength = _CROWN_REFLECTIVITY * min(size, 6.0) * _spread(random, _CROWN_POINTS)
    sway = _SWAY_SPEED * random.normal(size=(_CROWN_POINTS, 3))
    heights = np.arange(0.4, plant.trunk_height, 0.8) if plant.trunk_radius > 0 else np.zeros(0)
    trunk = np.column_stack([np.tile(plant.position, (len(heights), 1)), plant.base + heights])
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
    positions = np.column_stack([np.tile(lamp.position, (len(heights), 1)), lamp.base + heights])
    strength = _POLE_REFLECTIVITY * _spread(random, len(heights), 0.5)
    none = np.zeros(len(heights))
    return _rigid(positions, np.zeros((len(heights), 3)), strength, none)


def _ground_spots(world: World, random: np.random.Generator) -> _Spots:
    times = np.arange(0.0, world.seconds + _PATH_STEP, _PATH_STEP)
    flown = np.array([world.path.state(float(t)).pose.translation[:2] for t in times])
    low, high = flown.min(axis=0) - _GROUND_REACH, flown.max(axis=0) + _GROUND_REACH
    count = int(np.prod(high - low) / _GROUND_AREA)
    positions = np.column_stack([random.uniform(low, high, (count, 2)), np.zeros(count)])
    if world.terrain is not None:
        positions[:, 2] = world.terrain.heights(positions[:, :2])
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
