from __future__ import annotations

import itertools

import numpy as np
import pytest

from mmedge_lab.simulation.flight_path import draw_track
from mmedge_lab.simulation.obstacles import Obstacles, distance_to_line
from mmedge_lab.simulation.scenario import DISTANCES, SURROUNDINGS
from mmedge_lab.simulation.site import Clearing, Site, lay_out

SEEDS = range(3)


def clearing(distance: str, seed: int) -> Clearing:
    track = draw_track(DISTANCES[distance], seed, 8.0)
    return Clearing(track.positions[::10], track.stage)


def sites(name: str) -> list[tuple[Site, Clearing]]:
    return [
        (lay_out(name, clearing(distance, seed), 'day', seed), clearing(distance, seed))
        for distance, seed in itertools.product(DISTANCES, SEEDS)
    ]


@pytest.mark.parametrize('name', SURROUNDINGS)
def test_the_drone_flies_into_nothing(name: str) -> None:
    for site, free in sites(name):
        low = free.eyes[:, 2]
        for block in site.blocks:
            near = Obstacles([block]).distance(free.eyes[:, :2])
            assert near[low < block.height].min(initial=9.0) > 2.0
        for plant in site.plants:
            top = plant.trunk_height + plant.crown_height
            apart = np.hypot(*(free.eyes[low < top, :2] - plant.position).T)
            assert apart.min(initial=9.0) > plant.crown_radius


@pytest.mark.parametrize('name', SURROUNDINGS)
def test_nothing_stands_in_anything_else(name: str) -> None:
    for site, _ in sites(name):
        blocks = [*site.blocks, *site.parked]
        for one, other in itertools.combinations(blocks, 2):
            assert Obstacles([one]).distance(other.outline).min() > 0.0
        solid = Obstacles(blocks)
        for thing in (*site.plants, *site.lamps):
            assert solid.distance(thing.position)[0] > 0.0


@pytest.mark.parametrize('name', SURROUNDINGS)
def test_roads_and_paths_are_free_of_buildings_and_plants(name: str) -> None:
    for site, _ in sites(name):
        for way in (*site.roads, *site.paths):
            for building in site.buildings:
                apart = distance_to_line(building.footprint, way.line)
                assert apart.min() > 0.5 * way.width
            for plant in site.plants:
                assert distance_to_line(plant.position[None], way.line)[0] > 0.5 * way.width
