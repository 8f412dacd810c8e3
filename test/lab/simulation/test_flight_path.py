from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from mmedge_lab.simulation.build import build_world
from mmedge_lab.simulation.scenario import DISTANCES
from mmedge_lab.simulation.world import World

SEEDS = range(6)
SECONDS = 8.0
INSTANTS = np.linspace(0.0, SECONDS, 33)
H = 1e-5


@pytest.fixture(scope='module', params=SEEDS)
def world(request: pytest.FixtureRequest) -> World:
    distance = list(DISTANCES)[request.param % 3]
    return build_world(f'meadow_day_{distance}', request.param, SECONDS)


def test_the_velocity_is_the_derivative_of_the_position(world: World) -> None:
    for t in INSTANTS:
        before, after = (world.path.state(t + s).pose.translation for s in (-H, H))
        np.testing.assert_allclose(
            world.path.state(t).velocity, (after - before) / (2 * H), atol=1e-4
        )


def test_the_angular_velocity_is_the_derivative_of_the_attitude(world: World) -> None:
    for t in INSTANTS:
        before, after = (world.path.state(t + s).pose.rotation for s in (-H, H))
        turn = Rotation.from_matrix(after @ before.T).as_rotvec() / (2 * H)
        np.testing.assert_allclose(world.path.state(t).angular_velocity, turn, atol=2e-4)


def test_a_drone_leans_into_its_acceleration(world: World) -> None:
    """Averaged over vibration, thrust along the body's z makes up for gravity and motion."""
    for t in np.linspace(1.0, SECONDS - 1.0, 7):
        near = t + np.linspace(-0.3, 0.3, 61)
        up = np.mean([world.path.state(s).pose.rotation[:, 2] for s in near], axis=0)
        speed = [world.path.state(s).velocity for s in near]
        push = np.polyfit(near, np.array(speed), 1)[0] + 0.2 * np.mean(speed, axis=0)
        wanted = push + np.array([0.0, 0.0, 9.81])
        angle = np.degrees(np.arccos(up @ wanted / np.linalg.norm(up) / np.linalg.norm(wanted)))
        assert angle < 1.5
