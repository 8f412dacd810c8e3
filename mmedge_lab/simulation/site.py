"""Where flights take place: meadow, park, street and yard, laid out around the stage."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from mmedge_lab.simulation.obstacles import Block, Obstacles, distance_to_line
from mmedge_lab.simulation.scenario import SeedStream, generator
from mmedge_lab.simulation.world import Building, Ground, Lamp, Plant, Strip
from mmedge_ros.core.data_types import FloatArray

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
        """Return whether something of ``height`` m may stand at all of ``points`` (N, 2).

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


Colour = tuple[int, int, int]

_GREENS: tuple[Colour, ...] = (
    (45, 95, 60), (40, 80, 45), (60, 115, 85), (35, 70, 60), (50, 105, 100),
)  # fmt: skip
_CIRCLE = np.array([[math.cos(a), math.sin(a)] for a in np.arange(8) * math.pi / 4.0])
_CAR = np.array([4.6, 1.8])
_CAR_HEIGHT = 1.5
_LAMPS_WITHIN = 75.0  # m of the stage
# Closer to the drone than this share of the stage's distance, plants leave the view free.
_NEAR_SHARE = 0.75


@dataclass(eq=False)
class Layout:
    """Draws single things at allowed places; ``axis`` rad is the drone's line of sight."""

    random: np.random.Generator
    clearing: Clearing
    axis: float
    lit: bool
    site: Site = field(init=False)

    def open(self, surface: str, strips: list[Strip], first_way: int = 0) -> None:
        """Begin with bare ground and its ``strips``; those from ``first_way`` on are ways.

        Cars drive on ways of asphalt, cyclists follow the others.
        """
        ways = strips[first_way:]
        self.site = Site(
            Ground(surface, tuple(strips), self.seed()),
            roads=[way for way in ways if way.surface == 'asphalt'],
            paths=[way for way in ways if way.surface != 'asphalt'],
        )

    def seed(self) -> int:
        return int(self.random.integers(1 << 31))

    def place(self, angle: float, distance: float) -> FloatArray:
        """Return a place (2,) m seen from the stage, ``angle`` rad from the view."""
        turn = self.axis + angle
        return self.clearing.stage + distance * np.array([math.cos(turn), math.sin(turn)])

    def line(self, offset: float, angle: float, bend: float) -> FloatArray:
        """Return a line (N, 2) m past the stage at ``offset`` m, ``angle`` from the view."""
        along = np.linspace(-90.0, 90.0, 61)
        across = offset + bend * np.sin(along / 25.0 + self.random.uniform(0.0, 6.0))
        turn = self.axis + angle
        c, s = math.cos(turn), math.sin(turn)
        turned = np.column_stack([along, across]) @ np.array([[c, s], [-s, c]])
        return np.asarray(self.clearing.stage + turned, np.float64)

    def building(self, block: Block, colour: Colour, narrow: float) -> None:
        """Add a building if ``block`` is free and leaves ``narrow`` rad of the view free."""
        free = self.clearing.allows(block.outline, block.height, narrow)
        if free and self._is_free(block, self.site.roads):
            self.site.blocks.append(block)
            colour = self._varied(colour)
            self.site.buildings.append(Building(block.corners, block.height, colour, self.seed()))

    def parked_car(self, place: FloatArray, angle: float, at_kerb: bool) -> None:
        """Add a parked car, on a way only ``at_kerb``."""
        block = Block(place, _CAR, angle, _CAR_HEIGHT)
        free = self.clearing.allows(block.outline, _CAR_HEIGHT, 0.0)
        if free and self._is_free(block, [] if at_kerb else self.site.roads):
            self.site.parked.append(block)

    def plants(self, count: int, bushes: float, near: float, far: float) -> None:
        """Scatter trees and, as a share, bushes, ``near`` to ``far`` m from the stage."""
        for _ in range(count):
            angle, distance = self.random.uniform(0, 2 * math.pi), self.random.uniform(near, far)
            self.plant(self.place(angle, distance), bool(self.random.random() < bushes))

    def plant(self, place: FloatArray, bush: bool) -> None:
        """Add a tree or bush; close to the drone it must not hide the middle of the view."""
        random, site = self.random, self.site
        if bush:
            radius = random.uniform(0.5, 1.4)
            trunk, thick, crown = 0.0, 0.0, random.uniform(0.7, 1.9)
        else:
            radius, trunk = random.uniform(1.3, 3.2), random.uniform(1.6, 3.2)
            thick, crown = random.uniform(0.1, 0.28), random.uniform(2.5, 6.0)
        colour = self._varied(_GREENS[random.integers(len(_GREENS))])
        drawn = Plant(place, trunk, thick, radius, crown, colour, self.seed())
        room = radius if bush else 1.0
        if self._on_way(place, (*site.roads, *site.paths), 0.6) or self._to_blocks(place) < room:
            return
        narrow = math.radians(4.0 if bush else 11.0)
        outline = place + radius * _CIRCLE
        if self.clearing.allows(outline, trunk + crown, narrow, _NEAR_SHARE):
            site.plants.append(drawn)

    def lamps_along(self, way: Strip, beside: float, spacing: float) -> None:
        """Add lamps ``beside`` m off a way's edge."""
        steps = np.hypot(*np.diff(way.line, axis=0).T)
        total = np.concatenate([[0.0], np.cumsum(steps)])
        for at in np.arange(self.random.uniform(0.0, spacing), total[-1], spacing):
            here, ahead = (
                np.array([np.interp(s, total, way.line[:, i]) for i in (0, 1)])
                for s in (at - 0.5, at + 0.5)
            )
            along = (ahead - here) / max(math.dist(ahead, here), 1e-6)
            left = np.array([-along[1], along[0]])
            place = here + (0.5 * way.width + beside) * left
            height, reach = self.random.uniform(4.0, 6.0), self.random.uniform(11.0, 16.0)
            near = math.dist(place, self.clearing.stage) < _LAMPS_WITHIN
            free = self._to_blocks(place) > 0.3 and self.clearing.allows(place[None], height, 0.0)
            if near and free:
                self.site.lamps.append(Lamp(place, height, reach, self.lit))

    def _is_free(self, block: Block, ways: list[Strip]) -> bool:
        for other in (*self.site.blocks, *self.site.parked):
            apart = Obstacles([other]).distance(block.outline).min()
            if min(apart, Obstacles([block]).distance(other.outline).min()) < 0.2:
                return False
        return not any(self._on_way(point, ways, 0.3) for point in block.outline)

    def _on_way(
        self, place: FloatArray, ways: tuple[Strip, ...] | list[Strip], margin: float
    ) -> bool:
        return any(
            distance_to_line(place[None], way.line)[0] < 0.5 * way.width + margin for way in ways
        )

    def _to_blocks(self, place: FloatArray) -> float:
        return float(Obstacles((*self.site.blocks, *self.site.parked)).distance(place)[0])

    def _varied(self, colour: Colour) -> Colour:
        level = self.random.uniform(0.94, 1.06, 3) * self.random.uniform(0.85, 1.12)
        blue, green, red = (
            int(np.clip(v * f, 0, 255)) for v, f in zip(colour, level, strict=True)
        )
        return blue, green, red


_WALLS: tuple[Colour, ...] = (
    (150, 175, 195), (120, 140, 165), (185, 195, 200), (95, 105, 140), (140, 150, 150),
    (110, 150, 185), (170, 170, 165),
)  # fmt: skip
_CONTAINERS: tuple[Colour, ...] = (
    (60, 60, 150), (130, 80, 40), (60, 110, 60), (60, 130, 190), (120, 120, 120),
)  # fmt: skip
_CONCRETE: Colour = (150, 155, 160)
_QUARTER = 0.5 * math.pi


def lay_out(
    name: str, clearing: Clearing, light: str, seed: int, axis: float | None = None
) -> Site:
    """Draw one site; ``light`` decides only whether its lamps are lit.

    :param axis: rad, the line of sight; None for that in the middle of the flight
    """
    ahead = clearing.stage - clearing.eyes[len(clearing.eyes) // 2, :2]
    layout = Layout(
        generator(seed, SeedStream.SURROUNDINGS),
        clearing,
        axis=math.atan2(ahead[1], ahead[0]) if axis is None else axis,
        lit=light in ('dusk', 'lamps'),
    )
    {'meadow': _meadow, 'park': _park, 'street': _street, 'yard': _yard}[name](layout)
    return layout.site


def _meadow(layout: Layout) -> None:
    random = layout.random
    line = layout.line(random.uniform(-5, 5), random.uniform(0.4, 2.7), 3.0)
    layout.open('grass', [Strip(line, random.uniform(1.8, 2.8), 'gravel')])
    layout.plants(9, 0.5, 5.0, 45.0)
    layout.plants(22, 0.2, 55.0, 100.0)
    layout.lamps_along(layout.site.paths[0], 0.5, 24.0)


def _park(layout: Layout) -> None:
    random = layout.random
    first = random.uniform(0.2, 1.4)
    lines = (
        layout.line(random.uniform(-4, 4), first, 2.0),
        layout.line(random.uniform(-8, 8), first + random.uniform(0.9, 1.7), 4.0),
    )
    layout.open('grass', [Strip(lines[0], 3.0, 'paving'), Strip(lines[1], 2.0, 'gravel')])
    layout.plants(28, 0.45, 3.0, 40.0)
    layout.plants(30, 0.2, 40.0, 100.0)
    layout.lamps_along(layout.site.paths[0], 0.5, 17.0)


def _street(layout: Layout) -> None:
    """A straight road between pavements and rows of buildings, cars parked at the kerb."""
    random = layout.random
    angle, offset = random.normal(0.0, 0.5), random.uniform(-4.0, 4.0)
    width, pavement = random.uniform(6.5, 8.0), random.uniform(2.6, 4.0)
    line = layout.line(offset, angle, 0.0)
    pavements = Strip(line, width + 2.0 * pavement, 'paving')
    layout.open('grass', [pavements, Strip(line, width, 'asphalt')], first_way=1)
    middle = layout.place(angle + _QUARTER, offset)
    along = layout.place(angle, 1.0) - layout.clearing.stage
    left = layout.place(angle + _QUARTER, 1.0) - layout.clearing.stage
    turn = layout.axis + angle
    for side in (-1.0, 1.0):
        at = -75.0
        while at < 75.0:
            length, depth = random.uniform(8.0, 18.0), random.uniform(8.0, 11.0)
            back = 0.5 * (width + depth) + pavement + random.uniform(0.2, 2.5)
            centre = middle + (at + 0.5 * length) * along + side * back * left
            block = Block(centre, np.array([length, depth]), turn, random.uniform(4.0, 13.0))
            layout.building(block, _WALLS[random.integers(len(_WALLS))], math.radians(15.0))
            at += length + random.choice((0.3, 1.5, 6.0))
        kerb = side * (0.5 * width + 0.3)
        for at in np.arange(-32.0, 32.0, 6.4):
            # On the right-hand side of either lane, half on the pavement.
            heading = turn + math.pi * (side > 0.0)
            shifted = at + random.uniform(-0.4, 0.4)
            if random.random() < 0.3:
                layout.parked_car(middle + shifted * along + kerb * left, heading, at_kerb=True)
    layout.lamps_along(layout.site.roads[0], 1.8, 22.0)
    layout.plants(14, 0.3, 8.0, 60.0)


def _yard(layout: Layout) -> None:
    """A paved yard with halls behind it, containers, low walls and cars about."""
    random = layout.random
    way = layout.line(random.uniform(-6, 6), random.uniform(-0.6, 0.6), 0.0)
    layout.open(str(random.choice(('paving', 'asphalt'))), [Strip(way, 5.0, 'asphalt')])
    lean = random.normal(0.0, 0.2)
    turn = layout.axis + lean
    for distance, aside in ((55.0, 20.0), (60.0, -25.0), (40.0, 45.0), (40.0, -45.0)):
        centre = layout.place(lean + math.atan2(aside, distance), math.hypot(distance, aside))
        size = np.array([random.uniform(10, 16), random.uniform(18, 30)])
        block = Block(centre, size, turn, random.uniform(5.0, 9.0))
        layout.building(block, _WALLS[random.integers(len(_WALLS))], math.radians(5.0))
    for _ in range(9):
        centre = layout.place(random.uniform(0.0, 2 * math.pi), random.uniform(4.0, 30.0))
        angle = turn + random.choice((0.0, _QUARTER)) + random.normal(0.0, 0.05)
        if random.random() < 0.6:
            block = Block(centre, np.array([random.choice((6.1, 12.2)), 2.44]), angle, 2.6)
            colour = _CONTAINERS[random.integers(len(_CONTAINERS))]
            layout.building(block, colour, math.radians(13.0))
        else:
            wall = np.array([random.uniform(4.0, 10.0), 0.3])
            layout.building(Block(centre, wall, angle, random.uniform(0.9, 1.5)), _CONCRETE, 0.0)
    for _ in range(4):
        place = layout.place(random.uniform(0.0, 2 * math.pi), random.uniform(6.0, 28.0))
        layout.parked_car(place, turn + random.uniform(-0.1, 0.1), at_kerb=False)
    layout.plants(10, 0.3, 30.0, 90.0)
    layout.lamps_along(layout.site.roads[0], 0.5, 26.0)
