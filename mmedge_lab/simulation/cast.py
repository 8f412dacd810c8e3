"""The movers of a flight: people, dogs, cyclists and cars, and where they go."""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from mmedge_lab.simulation.articulated import ArticulatedMover, MoverCourse, Shape, course_through
from mmedge_lab.simulation.crowd import draw_crowd, is_before, send_in
from mmedge_lab.simulation.flight_path import MARGIN, FlownTrack, knots
from mmedge_lab.simulation.obstacles import Block, distance_to_line
from mmedge_lab.simulation.patrol import Patrol
from mmedge_lab.simulation.people import draw_person
from mmedge_lab.simulation.postures import Posture, pose, posed_shape
from mmedge_lab.simulation.road_users import draw_car, draw_cyclist, draw_dog
from mmedge_lab.simulation.scenario import Scenario, SeedStream, generator
from mmedge_lab.simulation.site import Site
from mmedge_lab.simulation.traffic import (
    STEP,
    VisibleStage,
    Walker,
    carriageway,
    draw_passes,
    loop_around,
    walk,
)
from mmedge_lab.simulation.visitors import draw_comers_and_goers, draw_trips
from mmedge_lab.simulation.world import Mover
from mmedge_ros.core.data_types import FloatArray

# Mean radar cross-sections at 60-77 GHz, m^2.
_CROSS_SECTION = {'person': 0.8, 'child': 0.4, 'dog': 0.15, 'cyclist': 1.5, 'car': 15.0}
# Vehicles pass below a drone that is so high, m.
_CLEAR_HEIGHT = 3.5
_CYCLIST = {'meadow': 0.45, 'park': 0.5, 'street': 0.35, 'yard': 0.25}
_CAR = {'meadow': 0.0, 'park': 0.0, 'street': 0.4, 'yard': 0.3}
_DOG = {'meadow': 0.5, 'park': 0.5, 'street': 0.25, 'yard': 0.2}


def draw_cast(
    scenario: Scenario,
    site: Site,
    track: FlownTrack,
    seed: int,
    seconds: float,
    patrol: Patrol | None = None,
    posed: float | None = None,
) -> tuple[Mover, ...]:
    """Draw all movers, parked cars included, numbered from 1; on a ``patrol`` they come and go.

    :param posed: share of the people who hold their place, in postures of all kinds; then
        others walk in from out of view
    """
    random = generator(seed, SeedStream.MOTION)
    looks = generator(seed, SeedStream.LOOKS)
    if patrol is None:
        traffic, forbidden = _draw_traffic(scenario, site, track, seconds, random)
    else:
        traffic, forbidden = draw_trips(scenario, site, patrol, seconds, random)
    stage = VisibleStage(track, scenario.band, site.obstacles(forbidden), random)
    if patrol is None:
        crowd = draw_crowd(stage, seconds, random)
    else:
        crowd = draw_comers_and_goers(patrol, scenario.band, stage.obstacles, seconds, random)
    if patrol is None and random.random() < _DOG[scenario.surroundings]:
        owner = int(random.integers(len(crowd.walkers)))
        start = crowd.walkers[owner].start + np.array([0.9, 0.4])
        crowd.add(Walker(start, 2.2, companion=owner, roams=2.5), math.nan, 'dog')
    postures: dict[int, Posture] = {}
    if posed is not None:
        own = generator(seed, SeedStream.POSTURE)
        postures = pose(crowd, posed, own)
        if patrol is None:
            send_in(crowd, stage, track, own)
    others = [course.positions for label, course in traffic if label == 'cyclist']
    times = knots(seconds, STEP)
    vehicles = np.stack(others, axis=1) if others else np.zeros((len(times), 0, 2))
    line = walk(crowd.walkers, stage, vehicles, seconds, random)
    cast: list[tuple[str, Shape, MoverCourse]] = []
    for i, kind in enumerate(crowd.kinds):
        glance = 0.4 * np.sin(random.uniform(0.2, 0.5) * times + random.uniform(0.0, 6.0))
        course = course_through(line[:, i], crowd.facing[i] + glance, -MARGIN, STEP)
        if i in postures:
            places = np.tile(crowd.walkers[i].start, (len(times), 1))
            headings = np.full(len(times), postures[i].heading)
            course = MoverCourse(places, headings, -MARGIN, STEP)
        cast.append((kind, _draw_shape(kind, looks, postures.get(i)), course))
    cast += [(label, _draw_shape(label, looks), course) for label, course in traffic]
    for block in site.parked:
        places, headings = np.tile(block.centre, (len(times), 1)), np.full(len(times), block.angle)
        course = MoverCourse(places, headings, float(times[0]), STEP)
        cast.append(('car', _draw_shape('car', looks), course))
    return tuple(_mover(number, *member) for number, member in enumerate(cast, 1))


def middle_of_people(
    movers: tuple[Mover, ...], times: FloatArray, before: FlownTrack | None = None
) -> FloatArray:
    """Return the mean place (K, 2) m of all people at ``times``.

    :param before: only of those who at its begin are before the drone, if there are any
    """
    people = [m for m in movers if m.label == 'person']
    if before is not None:
        people = [m for m in people if is_before(before, m.state(0.0).position[:2])] or people
    return np.array([np.mean([m.state(t).position[:2] for m in people], axis=0) for t in times])


def _draw_traffic(
    scenario: Scenario, site: Site, track: FlownTrack, seconds: float, random: np.random.Generator
) -> tuple[list[tuple[str, MoverCourse]], tuple[Block, ...]]:
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


def _draw_shape(kind: str, random: np.random.Generator, posture: Posture | None = None) -> Shape:
    if kind == 'dog':
        return draw_dog(random)
    if kind == 'cyclist':
        return draw_cyclist(random)
    if kind == 'car':
        return draw_car(random)
    posed = None if posture is None else partial(posed_shape, posture)
    return draw_person(random, child=kind == 'child', runs=kind == 'runner', posed=posed)


def _mover(number: int, kind: str, shape: Shape, course: MoverCourse) -> Mover:
    label = 'person' if kind in ('child', 'runner') else kind
    section = _CROSS_SECTION['person' if kind == 'runner' else kind]
    return ArticulatedMover(number, label, section, shape, course)
