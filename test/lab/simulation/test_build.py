"""A seed builds one world, in any light, with the same people on the same ways."""

from __future__ import annotations

import numpy as np
import pytest

from mmedge_lab.simulation.build import build_world
from mmedge_lab.simulation.scenario import LIGHTS, scenarios
from mmedge_lab.simulation.world import World

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
