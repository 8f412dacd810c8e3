"""Builds the world of one flight from a scenario's name and a seed."""

from __future__ import annotations

import math

import numpy as np

from mmedge_ros.lab.simulation import SimulationError
from mmedge_ros.lab.simulation.cast import draw_cast, middle_of_people
from mmedge_ros.lab.simulation.flight_path import DronePath, draw_track
from mmedge_ros.lab.simulation.light import draw_light
from mmedge_ros.lab.simulation.rig import draw_rig
from mmedge_ros.lab.simulation.scenario import find_scenario
from mmedge_ros.lab.simulation.site import Clearing
from mmedge_ros.lab.simulation.surroundings import lay_out
from mmedge_ros.lab.simulation.world import World

LONGEST = 3600.0


def build_world(name: str, seed: int, seconds: float) -> World:
    """Return the world of a flight of ``seconds``; the same arguments give the same world.

    :raises SimulationError: for an unknown scenario, a negative seed or an impossible duration
    """
    scenario = find_scenario(name)
    if seed < 0:
        raise SimulationError(f'seed {seed} is negative; a seed is 0 or more')
    if not 0.0 < seconds <= LONGEST or not math.isfinite(seconds):
        raise SimulationError(f'a flight of {seconds} s; it must last 0 to {LONGEST:g} s')
    band = scenario.band
    track = draw_track(band, seed, seconds)
    light = draw_light(scenario.light, seed)
    clearing = Clearing(track.positions[::10], track.stage)
    site = lay_out(scenario.surroundings, clearing, scenario.light, seed)
    movers = draw_cast(scenario, site, track, seed, seconds)
    aim = middle_of_people(movers, np.clip(track.times, 0.0, seconds))
    return World(
        scenario=scenario.name,
        surroundings=scenario.surroundings,
        light_name=scenario.light,
        distance=scenario.distance,
        seed=seed,
        seconds=seconds,
        ground=site.ground,
        buildings=tuple(site.buildings),
        plants=tuple(site.plants),
        lamps=tuple(site.lamps),
        light=light,
        movers=movers,
        path=DronePath(track, aim, seed),
        rig=draw_rig(band, light.exposure, seed),
    )
