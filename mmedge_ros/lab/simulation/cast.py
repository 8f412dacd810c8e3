"""The movers of a flight: people, dogs, cyclists and cars, and where they go."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

import numpy as np

from mmedge_ros.data_types import FloatArray
from mmedge_ros.lab.simulation.articulated import ArticulatedMover, Course, Shape, course_through
from mmedge_ros.lab.simulation.flight_path import MARGIN, Track, knots
from mmedge_ros.lab.simulation.obstacles import Block, distance_to_line
from mmedge_ros.lab.simulation.people import draw_person
from mmedge_ros.lab.simulation.road_users import draw_car, draw_cyclist, draw_dog
from mmedge_ros.lab.simulation.scenario import Scenario, Stream, generator
from mmedge_ros.lab.simulation.site import Site
from mmedge_ros.lab.simulation.traffic import (
    STEP,
    Stage,
    Walker,
    carriageway,
    draw_passes,
    loop_around,
    walk,
)
from mmedge_ros.lab.simulation.world import Mover

FEWEST, MOST = 2, 9  # people in a flight

# Mean radar cross-sections at 60-77 GHz, m^2.
_CROSS_SECTION = {'person': 0.8, 'child': 0.4, 'dog': 0.15, 'cyclist': 1.5, 'car': 15.0}
# Vehicles pass below a drone that is so high, m.
_CLEAR_HEIGHT = 3.5
_KINDS = ('single', 'pair', 'group', 'idler', 'runner')
_SHARES = (0.36, 0.26, 0.2, 0.11, 0.07)
_CYCLIST = {'meadow': 0.45, 'park': 0.5, 'street': 0.35, 'yard': 0.25}
_CAR = {'meadow': 0.0, 'park': 0.0, 'street': 0.4, 'yard': 0.3}
_DOG = {'meadow': 0.5, 'park': 0.5, 'street': 0.25, 'yard': 0.2}


@dataclass
class _Crowd:
    """People and dogs before they walk.

    ``facing`` rad is the heading at rest, NaN for the heading of the last motion.
    """

    walkers: list[Walker] = field(default_factory=list)
    facing: list[float] = field(default_factory=list)
    kinds: list[str] = field(default_factory=list)

    def add(self, walker: Walker, facing: float, kind: str = 'person') -> None:
        self.walkers.append(walker)
        self.facing.append(facing)
        self.kinds.append(kind)


def draw_cast(
    scenario: Scenario, site: Site, track: Track, seed: int, seconds: float
) -> tuple[Mover, ...]:
    """Draw all movers, parked cars included, numbered from 1."""
    random = generator(seed, Stream.MOTION)
    looks = generator(seed, Stream.LOOKS)
    traffic, forbidden = _draw_traffic(scenario, site, track, seconds, random)
    stage = Stage(track, scenario.band, site.obstacles(forbidden), random)
    crowd = _draw_crowd(stage, seconds, random)
    if random.random() < _DOG[scenario.surroundings]:
        owner = int(random.integers(len(crowd.walkers)))
        start = crowd.walkers[owner].start + np.array([0.9, 0.4])
        crowd.add(Walker(start, 2.2, companion=owner, roams=2.5), math.nan, 'dog')
    others = [course.positions for label, course in traffic if label == 'cyclist']
    times = knots(seconds, STEP)
    vehicles = np.stack(others, axis=1) if others else np.zeros((len(times), 0, 2))
    line = walk(crowd.walkers, stage, vehicles, seconds, random)
    cast: list[tuple[str, Shape, Course]] = []
    for i, kind in enumerate(crowd.kinds):
        glance = 0.4 * np.sin(random.uniform(0.2, 0.5) * times + random.uniform(0.0, 6.0))
        course = course_through(line[:, i], crowd.facing[i] + glance, -MARGIN, STEP)
        cast.append((kind, _draw_shape(kind, looks), course))
    cast += [(label, _draw_shape(label, looks), course) for label, course in traffic]
    for block in site.parked:
        places, headings = np.tile(block.centre, (len(times), 1)), np.full(len(times), block.angle)
        course = Course(places, headings, float(times[0]), STEP)
        cast.append(('car', _draw_shape('car', looks), course))
    return tuple(_mover(number, *member) for number, member in enumerate(cast, 1))


def middle_of_people(movers: tuple[Mover, ...], times: FloatArray) -> FloatArray:
    """Return the mean place (K, 2) m of all people at ``times``."""
    people = [m for m in movers if m.label == 'person']
    return np.array([np.mean([m.state(t).position[:2] for m in people], axis=0) for t in times])


def _draw_traffic(
    scenario: Scenario, site: Site, track: Track, seconds: float, random: np.random.Generator
) -> tuple[list[tuple[str, Course]], tuple[Block, ...]]:
    """Draw what passes, and where people must not walk because of it."""
    chance = random.random()
    low = track.positions[track.positions[:, 2] < _CLEAR_HEIGHT, :2]
    if site.roads and chance < _CAR[scenario.surroundings]:
        label, way, most, speeds = 'car', site.roads[0], 3, (5.0, 10.0)
        lane = 0.25 * way.width
    elif chance > 1.0 - _CYCLIST[scenario.surroundings]:
        ways = site.paths or site.roads
        label, way, most, speeds = 'cyclist', ways[random.integers(len(ways))], 2, (3.5, 6.0)
        lane = min(0.25 * way.width, 1.6)
    else:
        return [], ()
    # A drone so low would be run over.
    if len(low) and distance_to_line(low, way.line).min() < 0.5 * way.width + 1.5:
        return [], ()
    slow = 0.45 if label == 'car' and scenario.surroundings == 'yard' else 1.0
    speed, count = slow * random.uniform(*speeds), int(random.integers(1, most + 1))
    loop = loop_around(way, lane)
    courses = draw_passes(loop, speed, count, track.stage, seconds, random)
    return [(label, course) for course in courses], ((carriageway(way),) if label == 'car' else ())


def _draw_crowd(stage: Stage, seconds: float, random: np.random.Generator) -> _Crowd:
    crowd = _Crowd()
    count = int(random.integers(FEWEST, MOST + 1))
    while len(crowd.walkers) < count:
        room = count - len(crowd.walkers)
        kind = str(random.choice(_KINDS, p=_SHARES)) if room > 1 else 'single'
        start = _free_start(stage, crowd)
        walks = Walker(start, random.uniform(0.9, 1.7), _draw_pauses(seconds, random))
        if kind == 'group':
            _add_group(crowd, start, min(int(random.integers(2, 5)), room), seconds, random)
        elif kind == 'pair':
            crowd.add(walks, math.nan)
            apart = random.choice((-1.0, 1.0)) * random.uniform(0.6, 0.85)
            second = replace(
                walks, start=start + np.array([0.0, apart]), speed=1.15 * walks.speed,
                companion=len(crowd.walkers) - 1, beside=apart,
            )  # fmt: skip
            crowd.add(second, math.nan, 'child' if random.random() < 0.25 else 'person')
        elif kind == 'runner':
            crowd.add(
                replace(walks, speed=random.uniform(2.3, 3.0), pauses=()), math.nan, 'runner'
            )
        elif kind == 'idler':
            crowd.add(replace(walks, speed=0.0), random.uniform(-math.pi, math.pi))
        else:
            crowd.add(walks, math.nan, 'child' if random.random() < 0.06 else 'person')
    return crowd


def _add_group(
    crowd: _Crowd, middle: FloatArray, size: int, seconds: float, random: np.random.Generator
) -> None:
    """Add people that stand in a circle and talk; sometimes they break up."""
    radius = 0.3 + 0.13 * size
    first = random.uniform(0.0, 2.0 * math.pi)
    leaves = random.random() < 0.35
    for i in range(size):
        angle = first + 2.0 * math.pi * i / size + random.normal(0.0, 0.15)
        place = middle + radius * np.array([math.cos(angle), math.sin(angle)])
        speed = 0.0
        pauses: tuple[tuple[float, float], ...] = ()
        if leaves:
            until = random.uniform(0.2, 0.9) * min(seconds, 12.0)
            speed, pauses = random.uniform(0.9, 1.5), ((-math.inf, until),)
        crowd.add(Walker(place, speed, pauses), angle + math.pi)


def _draw_pauses(seconds: float, random: np.random.Generator) -> tuple[tuple[float, float], ...]:
    if random.random() < 0.65:
        return ()
    begin = random.uniform(0.0, seconds)
    return ((begin, begin + random.uniform(1.5, 5.0)),)


def _free_start(stage: Stage, crowd: _Crowd) -> FloatArray:
    """Draw a place at the flight's begin that keeps off the others'."""
    place = stage.place(0.0, room=0.9)
    for _ in range(10):
        if all(math.dist(place, walker.start) > 1.2 for walker in crowd.walkers):
            break
        place = stage.place(0.0, room=0.9)
    return place


def _draw_shape(kind: str, random: np.random.Generator) -> Shape:
    if kind == 'dog':
        return draw_dog(random)
    if kind == 'cyclist':
        return draw_cyclist(random)
    if kind == 'car':
        return draw_car(random)
    return draw_person(random, child=kind == 'child', runs=kind == 'runner')


def _mover(number: int, kind: str, shape: Shape, course: Course) -> Mover:
    label = 'person' if kind in ('child', 'runner') else kind
    section = _CROSS_SECTION['person' if kind == 'runner' else kind]
    return ArticulatedMover(number, label, section, shape, course)
