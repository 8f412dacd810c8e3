"""Ground clutter of a radar: every range ring and direction sends something back."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from mmedge_lab.simulation.obstacles import distance_to_line
from mmedge_lab.simulation.radar_echoes import Echoes
from mmedge_lab.simulation.world import World
from mmedge_ros.core.data_types import FloatArray

_STREAM = 39
# Backscatter per area over the sine of the grazing angle, dB: middle values for 60 to 95 GHz in
# F. Ulaby and M. Dobson, "Handbook of radar scattering statistics for terrain", and N. Currie,
# R. Hayes and R. Trebits, "Millimeter-wave radar clutter". Wetness and growth differ by flight.
_GAMMA = {'grass': -12.0, 'gravel': -15.0, 'paving': -20.0, 'asphalt': -23.0}
_SIGMA0 = -30.0, -10.0  # dB: limits
FLIGHT_SPREAD = 2.5  # dB
TEXTURE = 4.0  # dB between places
_CELL = 1.0  # m of the texture
_REACH = 45.0  # m around the flight
_WIDTH = math.radians(150.0 / 36.0)  # of a direction
_DIRECTIONS = _WIDTH * (np.arange(36) - 17.5)


class GroundClutter:
    """The ground of a world, its texture fixed in the world."""

    def __init__(self, world: World) -> None:
        random = np.random.default_rng((world.seed, _STREAM))
        times = np.arange(0.0, world.seconds + 0.5, 0.5)
        flown = np.array([world.path.state(float(t)).pose.translation[:2] for t in times])
        self._low = flown.min(axis=0) - _REACH
        shape = np.ceil((flown.max(axis=0) + _REACH - self._low) / _CELL).astype(int)
        places = self._low + _CELL * np.indices(shape).reshape(2, -1).T
        gamma = np.full(len(places), _GAMMA[world.ground.surface])
        for strip in world.ground.strips:
            on_it = distance_to_line(places, strip.line) < 0.5 * strip.width
            gamma[on_it] = _GAMMA[strip.surface]
        self._gamma = gamma.reshape(shape) + random.normal(0.0, FLIGHT_SPREAD)
        self._texture = random.normal(0.0, TEXTURE, shape)
        rise = world.terrain.heights(places) if world.terrain else np.zeros(len(places))
        self._height = rise.reshape(shape)

    def height(self, place: FloatArray) -> FloatArray:
        """Return z (...) m of the ground at places (..., 2), as of the cell they lie in."""
        return np.asarray(self._height[self._cell(place)], np.float64)

    def _cell(self, place: FloatArray) -> tuple[NDArray[np.intp], ...]:
        cell = np.rint((place - self._low) / _CELL).astype(np.intp)
        return tuple(np.moveaxis(np.clip(cell, 0, np.array(self._gamma.shape) - 1), -1, 0))

    def echoes(self, eye: FloatArray, heading: float, ranges: FloatArray) -> Echoes:
        """Return patches in every direction of even range rings (R,) m, direction by direction."""
        angle = heading + _DIRECTIONS
        ahead = np.column_stack([np.cos(angle), np.sin(angle)])
        below = np.full((len(ranges), len(angle)), eye[2] - self.height(eye[:2]))
        for _ in range(3 if self._height.any() else 1):
            flat = np.sqrt(np.maximum(ranges[:, None] ** 2 - below**2, 0.0))
            places = eye[:2] + flat[..., None] * ahead
            ground = self.height(places)
            below = eye[2] - ground
        sine = np.clip(below / ranges[:, None], 1e-3, 1.0)
        cell = self._cell(places)
        sigma0 = np.clip(self._gamma[cell] + 10.0 * np.log10(sine), *_SIGMA0)
        level = sigma0 + self._texture[cell]
        # Of a ring on the ground, 2 pi r dr: the ring of slant ranges has the same area.
        area = ranges[:, None] * (ranges[1] - ranges[0]) * _WIDTH * (flat > 0)
        positions = np.concatenate([places, ground[..., None]], axis=-1)
        positions = positions.transpose(1, 0, 2).reshape(-1, 3)
        strength = (area * 10.0 ** (0.1 * level)).T.ravel()
        return Echoes(positions, np.zeros_like(positions), strength, np.zeros_like(strength))
