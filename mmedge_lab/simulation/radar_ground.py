"""Ground as a radar hears it: every range ring and direction sends something back."""

from __future__ import annotations

import math

import numpy as np

from mmedge_lab.simulation.obstacles import distance_to_line
from mmedge_lab.simulation.radar_echoes import Echoes
from mmedge_lab.simulation.world import World
from mmedge_ros.core.data_types import FloatArray

_STREAM = 39
# Backscatter per area over the sine of the grazing angle, dB: middle values for 60 to 95 GHz in
# F. Ulaby and M. Dobson, "Handbook of radar scattering statistics for terrain", and N. Currie,
# R. Hayes and R. Trebits, "Millimeter-wave radar clutter". Wetness and growth differ by flight.
GAMMA = {'grass': -12.0, 'gravel': -15.0, 'paving': -20.0, 'asphalt': -23.0}
SIGMA0_LIMITS = (-30.0, -10.0)  # dB
FLIGHT_SPREAD = 2.5  # dB
TEXTURE = 4.0  # dB between places
_CELL = 1.0  # m of the texture
_REACH = 45.0  # m around the flight
_HALF_WIDTH, _DIRECTIONS = math.radians(75.0), 36
DIRECTION_WIDTH = 2.0 * _HALF_WIDTH / _DIRECTIONS


def sigma0(gamma: FloatArray, grazing_sine: FloatArray) -> FloatArray:
    """Return backscatter over area, dB, of ground with that gamma (dB)."""
    return np.clip(gamma + 10.0 * np.log10(grazing_sine), *SIGMA0_LIMITS)


class GroundClutter:
    """The ground of a world, its texture fixed in the world."""

    def __init__(self, world: World) -> None:
        random = np.random.default_rng((world.seed, _STREAM))
        times = np.arange(0.0, world.seconds + 0.5, 0.5)
        flown = np.array([world.path.state(float(t)).pose.translation[:2] for t in times])
        self._terrain = world.terrain
        self._low = flown.min(axis=0) - _REACH
        shape = np.ceil((flown.max(axis=0) + _REACH - self._low) / _CELL).astype(int)
        places = (self._low + _CELL * np.indices(shape).reshape(2, -1).T).reshape(-1, 2)
        gamma = np.full(len(places), GAMMA[world.ground.surface])
        for strip in world.ground.strips:
            on_it = distance_to_line(places, strip.line) < 0.5 * strip.width
            gamma[on_it] = GAMMA[strip.surface]
        self._gamma = gamma.reshape(shape) + random.normal(0.0, FLIGHT_SPREAD)
        self._texture = random.normal(0.0, TEXTURE, shape)

    def height(self, place: FloatArray) -> FloatArray:
        """Return z (...) m of the ground at places (..., 2)."""
        if self._terrain is None:
            return np.zeros(place.shape[:-1])
        return self._terrain.heights(place)

    def echoes(self, eye: FloatArray, heading: float, ranges: FloatArray) -> Echoes:
        """Return patches in every direction of even range rings (R,) m, direction by direction."""
        angle = heading + DIRECTION_WIDTH * (np.arange(_DIRECTIONS) - 0.5 * (_DIRECTIONS - 1))
        ahead = np.column_stack([np.cos(angle), np.sin(angle)])
        below = np.full((len(ranges), len(angle)), eye[2] - self.height(eye[:2]))
        for _ in range(1 if self._terrain is None else 3):
            flat = np.sqrt(np.maximum(ranges[:, None] ** 2 - below**2, 0.0))
            places = eye[:2] + flat[..., None] * ahead
            ground = self.height(places)
            below = eye[2] - ground
        sine = np.clip(below / ranges[:, None], 1e-3, 1.0)
        cell = ((places - self._low) / _CELL).astype(int)
        last = np.array(self._gamma.shape) - 1
        x, y = np.moveaxis(np.clip(cell, 0, last), -1, 0)
        level = sigma0(self._gamma[x, y], sine) + self._texture[x, y]
        # Of a ring on the ground, 2 pi r dr: the ring of slant ranges has the same area.
        area = ranges[:, None] * (ranges[1] - ranges[0]) * DIRECTION_WIDTH * (flat > 0)
        positions = np.concatenate([places, ground[..., None]], axis=-1)
        positions = positions.transpose(1, 0, 2).reshape(-1, 3)
        strength = (area * 10.0 ** (0.1 * level)).T.ravel()
        return Echoes(positions, np.zeros_like(positions), strength, np.zeros_like(strength))
