"""Echoes on their way to the radar: who reflects, from where, how fast, how strongly."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mmedge_ros.data_types import FloatArray
from mmedge_ros.lab.simulation.world import Building, Mover

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


def mover_echoes(movers: Sequence[Mover], t: float, eye: FloatArray) -> tuple[Echoes, Echoes]:
    """Return one echo per sphere of every mover, from the side that faces ``eye`` (3,).

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
    echoes = Echoes(
        centres + towards * reach[:, None],
        np.concatenate([body.velocities for body in bodies]),
        np.repeat([mover.reflectivity for mover in movers], counts) * share,
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
