from __future__ import annotations

import itertools

import numpy as np
import pytest

from mmedge_lab.simulation.build import build_world
from mmedge_lab.simulation.obstacles import Block, Obstacles
from mmedge_lab.simulation.scenario import DISTANCES, SURROUNDINGS
from mmedge_lab.simulation.world import World

SECONDS = 8.0
MIDDLE = np.array([0.0, 0.0, 0.9])
INSTANTS = np.arange(0.0, SECONDS + 0.1, 0.4)


@pytest.fixture(scope='module')
def worlds() -> list[World]:
    grid = itertools.product(SURROUNDINGS, DISTANCES)
    return [
        build_world(f'{surroundings}_day_{distance}', seed, SECONDS)
        for number, (surroundings, distance) in enumerate(grid)
        for seed in (number, 100 + number)
    ]


def people(world: World) -> list:
    return [mover for mover in world.movers if mover.label == 'person']


def walls(world: World) -> Obstacles:
    """The buildings as obstacles, from their footprints alone."""
    blocks = []
    for building in world.buildings:
        a, b, _, d = building.footprint
        size = np.array([np.hypot(*(b - a)), np.hypot(*(d - a))])
        angle = float(np.arctan2(*(b - a)[::-1]))
        blocks.append(Block(building.footprint.mean(axis=0), size, angle, building.height))
    return Obstacles(blocks)


def test_nobody_walks_through_a_building(worlds: list[World]) -> None:
    for world in worlds:
        obstacles = walls(world)
        for mover in world.movers:
            places = np.array([mover.state(t).position[:2] for t in INSTANTS])
            assert obstacles.distance(places).min() > 0.1, (world.scenario, world.seed, mover.id)


def test_people_keep_within_the_distance_of_the_scenario(worlds: list[World]) -> None:
    for world in worlds:
        band = DISTANCES[world.scenario.distance]
        inside = []
        for t in INSTANTS:
            eye = world.path.state(t).pose.translation
            for person in people(world):
                apart = np.linalg.norm(person.state(t).position + MIDDLE - eye)
                inside.append(band.nearest - 1.0 < apart < band.farthest + 2.0)
        assert np.mean(inside) > 0.85, (world.scenario, world.seed)


def test_nobody_stands_in_the_way_of_a_car() -> None:
    for seed in range(8):
        world = build_world('street_day_near', seed, SECONDS)
        cars = [m for m in world.movers if m.label == 'car']
        for t in INSTANTS:
            for car in cars:
                state = car.state(t)
                block = Block(state.position[:2], np.array([4.4, 1.75]), state.heading, 1.5)
                others = [m.state(t).position[:2] for m in world.movers if m.id != car.id]
                apart = Obstacles([block]).distance(np.array(others))
                assert apart.min() > -0.15, (seed, t)


def test_no_vehicle_runs_the_drone_over() -> None:
    for seed in range(8):
        world = build_world('street_day_near', seed, SECONDS)
        for t in np.arange(0.0, SECONDS, 0.2):
            eye = world.path.state(t).pose.translation
            for mover in world.movers:
                body = mover.body(t)
                apart = np.linalg.norm(body.centres - eye, axis=1) - body.radii
                assert apart.min() > 0.6, (seed, t, mover.label)
