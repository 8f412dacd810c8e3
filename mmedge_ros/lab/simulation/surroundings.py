"""Where flights take place: meadow, park, street and yard, laid out around the stage."""

from __future__ import annotations

import math

import numpy as np

from mmedge_ros.lab.simulation.obstacles import Block
from mmedge_ros.lab.simulation.scenario import Stream, generator
from mmedge_ros.lab.simulation.site import Clearing, Colour, Layout, Site
from mmedge_ros.lab.simulation.world import Strip

_WALLS: tuple[Colour, ...] = (
    (150, 175, 195), (120, 140, 165), (185, 195, 200), (95, 105, 140), (140, 150, 150),
    (110, 150, 185), (170, 170, 165),
)  # fmt: skip
_CONTAINERS: tuple[Colour, ...] = (
    (60, 60, 150), (130, 80, 40), (60, 110, 60), (60, 130, 190), (120, 120, 120),
)  # fmt: skip
_CONCRETE: Colour = (150, 155, 160)
_QUARTER = 0.5 * math.pi


def lay_out(name: str, clearing: Clearing, light: str, seed: int) -> Site:
    """Draw one site; ``light`` decides only whether its lamps are lit."""
    ahead = clearing.stage - clearing.eyes[len(clearing.eyes) // 2, :2]
    layout = Layout(
        generator(seed, Stream.SURROUNDINGS),
        clearing,
        axis=math.atan2(ahead[1], ahead[0]),
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
