"""."""

from __future__ import annotations

import math

import numpy as np
import pytest

from mmedge_lab.simulation import SimulationError
from mmedge_lab.simulation.build import (
    HEIGHT,
    WIDTH,
    build_world,
    draw_rig,
)
from mmedge_lab.simulation.scenario import DISTANCES, LIGHTS, scenarios
from mmedge_lab.simulation.world import Rig, World

SECONDS = 4.0


def fingerprint(world: World) -> list[np.ndarray]:
    """Numbers of everything that a sensor could notice."""
    numbers = [
        world.light.sun_direction,
        world.light.sky,
        np.array([world.light.sun, world.light.exposure, world.rig.camera_timing.phase]),
        world.rig.camera.k,
        world.rig.radar_pose.rotation,
        np.array([b.height for b in world.buildings]),
        np.array([p.position for p in world.plants]),
    ]
    for t in (0.0, 1.7, SECONDS):
        numbers.append(world.path.state(t).pose.rotation)
        numbers += [mover.body(t).centres for mover in world.movers]
    return numbers


@pytest.mark.parametrize('name', [scenario.name for scenario in scenarios()[::7]])
def test_the_same_seed_builds_the_same_world_to_the_last_bit(name: str) -> None:
    one, other = (
        fingerprint(build_world(name, 5, SECONDS)),
        fingerprint(build_world(name, 5, SECONDS)),
    )
    assert len(one) == len(other)
    for a, b in zip(one, other, strict=True):
        np.testing.assert_array_equal(a, b)


def test_in_another_light_the_same_people_walk_the_same_ways() -> None:
    worlds = [build_world(f'park_{light}_near', 8, SECONDS) for light in LIGHTS]
    for world in worlds[1:]:
        assert len(world.movers) == len(worlds[0].movers)
        for t in (0.5, 3.0):
            for one, other in zip(world.movers, worlds[0].movers, strict=True):
                np.testing.assert_array_equal(one.body(t).centres, other.body(t).centres)
            np.testing.assert_array_equal(
                world.path.state(t).pose.rotation, worlds[0].path.state(t).pose.rotation
            )
    assert len({world.light.exposure for world in worlds}) == len(LIGHTS)


@pytest.mark.parametrize('seconds', [0.0, -1.0, math.nan, math.inf, 1e9])
def test_an_impossible_duration_is_refused(seconds: float) -> None:
    with pytest.raises(SimulationError, match=r'flight of .* s'):
        build_world('yard_fog_far', 1, seconds)


def test_a_negative_seed_is_refused() -> None:
    with pytest.raises(SimulationError, match='seed -3'):
        build_world('yard_fog_far', -3, 1.0)


@pytest.mark.parametrize('seconds', [0.05, 60.0])
def test_short_and_long_flights_can_be_built(seconds: float) -> None:
    world = build_world('street_day_near', 2, seconds)
    for t in np.linspace(0.0, seconds, 7):
        assert np.isfinite(world.path.state(t).pose.translation).all()
        for mover in world.movers:
            assert np.isfinite(mover.body(t).centres).all()


EXPOSURE = 0.008


@pytest.fixture(params=list(DISTANCES))
def rigs(request: pytest.FixtureRequest) -> list[Rig]:
    return [draw_rig(DISTANCES[request.param], EXPOSURE, seed) for seed in range(20)]


def field_of_view(rig: Rig) -> float:
    """Between the middles of the left and right edges, rad."""
    row = rig.camera.k[1, 2]
    left, right = rig.camera.bearing([[-0.5, row], [WIDTH - 0.5, row]])
    return math.acos(left @ right)


def test_the_camera_sees_70_to_85_degrees_with_mild_barrel_distortion(rigs: list[Rig]) -> None:
    for rig in rigs:
        assert (rig.camera.width, rig.camera.height) == (WIDTH, HEIGHT)
        assert rig.camera.model == 'plumb_bob'
        assert 70.0 < math.degrees(field_of_view(rig)) < 85.0
        assert -0.1 < rig.camera.d[0] < 0.0
        corners = [[0, 0], [WIDTH - 1, 0], [WIDTH - 1, HEIGHT - 1], [0, HEIGHT - 1]]
        assert np.isfinite(rig.camera.bearing(corners)).all()
