"""Ground that is not flat: a slope, long waves and a bank, and what stands on it."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from mmedge_lab.simulation import SimulationError
from mmedge_lab.simulation.flight_path import FlownTrack, smooth_step
from mmedge_lab.simulation.hardships import Hardships
from mmedge_lab.simulation.scenario import SeedStream, generator
from mmedge_lab.simulation.world import Body, Mover, MoverState, Terrain, World
from mmedge_ros.core.data_types import FloatArray

_OPEN = ('meadow', 'park')  # roads and buildings are on level ground
_FADES, _FLAT = 60.0, 120.0  # m from the stage
_HIGHEST = 2.5  # m that a slope rises and falls about the stage
_STEEPEST = math.tan(math.radians(7.0))
_STRAYS, _BENDS = 0.8, 12.0  # m that a bank strays from a line, over m along it
_CLEARANCE = 1.8  # m between drone and ground
_STEP = 0.01  # m, for gradients


@dataclass(frozen=True, eq=False)
class Relief:
    """Smooth ground: 0 m at the stage and beyond 120 m.

    It rises by ``grade`` (2,), levelling off; ``waves`` (K, 2) rad/m with ``phases`` and
    ``amplitudes`` (K,) m lie on it. A bank of ``bank`` m rises over ``width`` m along the unit
    vector ``across`` (2,), its middle ``offset`` m from the stage.
    """

    grade: FloatArray
    waves: FloatArray
    phases: FloatArray
    amplitudes: FloatArray
    across: FloatArray
    offset: float
    bank: float
    width: float

    def heights(self, places: FloatArray) -> FloatArray:
        """Return z (...) m of the ground at places (..., 2) m."""
        away = np.hypot(places[..., 0], places[..., 1])
        kept = 1.0 - smooth_step((away - _FADES) / (_FLAT - _FADES))
        return np.asarray(kept * (self._raised(places) - self._stage), np.float64)

    @cached_property
    def _stage(self) -> FloatArray:
        return self._raised(np.zeros(2))

    def _raised(self, places: FloatArray) -> FloatArray:
        slope = _HIGHEST * np.tanh(places @ self.grade / _HIGHEST)
        waves = np.sin(places @ self.waves.T + self.phases) @ self.amplitudes
        along = places @ np.array([-self.across[1], self.across[0]])
        over = places @ self.across - self.offset + _STRAYS * np.sin(along / _BENDS)
        return np.asarray(slope + waves + self.bank * smooth_step(0.5 + over / self.width))


def draw_terrain(hard: Hardships, surroundings: str, seed: int, axis: float) -> Relief | None:
    """Draw the ground of a hard flight that looks along ``axis`` rad; None where it is flat.

    :raises SimulationError: for a slope where the ground is level
    """
    sloped = hard.condition == 'slope'
    if surroundings not in _OPEN:
        if sloped:
            raise SimulationError(
                f'the ground of a {surroundings} is level; for the condition slope name a '
                f'scenario of {" or ".join(_OPEN)}'
            )
        return None
    if not hard.relief:
        return None
    random = generator(seed, SeedStream.TERRAIN)
    uphill, *turns = random.uniform(-math.pi, math.pi, 4)
    bank = random.uniform(0.5, 1.5)
    return Relief(
        grade=sloped * random.uniform(0.3, 1.0) * _STEEPEST * _direction(uphill),
        waves=_direction(np.array(turns)).T * 2.0 * math.pi / random.uniform(50.0, 100.0, (3, 1)),
        phases=random.uniform(-math.pi, math.pi, 3),
        amplitudes=0.5 * hard.relief * random.dirichlet(np.full(3, 4.0)),
        # Across the view, before, among or behind the people.
        across=_direction(axis + random.uniform(-0.6, 0.6)),
        offset=random.uniform(-4.0, 5.0),
        bank=sloped * bank * float(random.choice((-1.0, 1.0))),
        # No steeper than 45 degrees, as earth lies.
        width=max(random.uniform(1.5, 4.0), 1.9 * bank),
    )


def _direction(angle: float | FloatArray) -> FloatArray:
    return np.array([np.cos(angle), np.sin(angle)])


def gradient(terrain: Terrain, places: FloatArray) -> FloatArray:
    """Return the gradient (..., 2) of the ground at places (..., 2) m."""
    steps = _STEP * np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0]])
    around = terrain.heights(places[..., None, :] + steps)
    return np.asarray((around[..., :2] - around[..., 2:]) / (2.0 * _STEP), np.float64)


def shadow_places(terrain: Terrain, points: FloatArray, slide: FloatArray) -> FloatArray:
    """Return where (..., 2) m shadows of points (..., 3) m fall on ground as even as below them.

    :param slide: (2,) m that a shadow moves on level ground for 1 m of height
    """
    places = points[..., :2]
    # Where the ground falls as fast as the light there is no end; three times as far will do.
    steep = np.maximum(1.0 + gradient(terrain, places) @ slide, 0.33)
    drop = (points[..., 2] - terrain.heights(places)) / steep
    return np.asarray(places + drop[..., None] * slide, np.float64)


def lifted(track: FlownTrack, terrain: Terrain) -> FlownTrack:
    """Return a track that keeps off the ground."""
    places = track.positions
    short = terrain.heights(places[:, :2]) + _CLEARANCE - places[:, 2]
    higher = places + np.logaddexp(0.0, 4.0 * short)[:, None] * np.array([0.0, 0.0, 0.25])
    return replace(track, positions=higher)


@dataclass(frozen=True, eq=False)
class GroundedMover:
    """A mover on ground that is not flat: what of it is low follows the ground below."""

    id: int
    label: str
    reflectivity: float
    flat: Mover
    terrain: Terrain

    def state(self, t: float) -> MoverState:
        at = self.flat.state(t)
        position, velocity = self._raised(at.position, at.velocity, at, np.ones(1))
        return MoverState(position, velocity, at.heading)

    def body(self, t: float) -> Body:
        body = self.flat.body(t)
        # Feet and wheels stand on the ground below them, heads are carried by all of it.
        share = np.clip(1.0 - body.centres[:, 2:], 0.0, 1.0)
        raised = self._raised(body.centres, body.velocities, self.flat.state(t), share)
        return replace(body, centres=raised[0], velocities=raised[1])

    def _raised(
        self, points: FloatArray, velocities: FloatArray, at: MoverState, share: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        middle, speed = at.position[:2], at.velocity[:2]
        feet = middle + share * (points[..., :2] - middle)
        going = speed + share * (velocities[..., :2] - speed)
        climb = (gradient(self.terrain, feet) * going).sum(axis=-1)
        up = np.array([0.0, 0.0, 1.0])
        height = self.terrain.heights(feet)
        return points + height[..., None] * up, velocities + climb[..., None] * up


def grounded(world: World, terrain: Terrain) -> World:
    """Return a world with a terrain, and movers, plants and lamps that stand on it."""
    return replace(
        world,
        terrain=terrain,
        plants=tuple(replace(p, base=float(terrain.heights(p.position))) for p in world.plants),
        lamps=tuple(replace(p, base=float(terrain.heights(p.position))) for p in world.lamps),
        movers=tuple(
            GroundedMover(m.id, m.label, m.reflectivity, m, terrain) for m in world.movers
        ),
    )
