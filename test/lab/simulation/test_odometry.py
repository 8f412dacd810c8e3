from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from mmedge_lab.simulation import odometry
from mmedge_lab.simulation.build import build_world
from mmedge_lab.simulation.odometry import Odometry
from mmedge_lab.simulation.world import World

SECONDS, RATE = 10.0, 100.0
TIMES = np.arange(0.0, SECONDS + 0.005, 1.0 / RATE)


@pytest.fixture(scope='module')
def world() -> World:
    return build_world('park_day_middle', 11, SECONDS)


@pytest.fixture(scope='module')
def readings(world: World) -> list[odometry.EgoState]:
    source = Odometry(world)
    return [source.at(t) for t in TIMES]


def test_velocity_integrates_to_the_pose(world: World, readings: list[odometry.EgoState]) -> None:
    speed = np.array([reading.velocity for reading in readings])
    travelled = 0.5 * (speed[1:] + speed[:-1]).sum(axis=0) / RATE
    begin, end = (world.path.state(t).pose.translation for t in (0.0, SECONDS))
    assert np.linalg.norm(end - begin) > 0.5, 'a flight that goes nowhere proves nothing'
    assert np.linalg.norm(begin + travelled - end) < 0.05


@pytest.mark.parametrize(
    ('noise', 'stated'),
    [
        ('position', odometry.POSITION_NOISE),
        ('attitude', odometry.ATTITUDE_NOISE),
        ('velocity', odometry.VELOCITY_NOISE),
        ('angular_velocity', odometry.ANGULAR_VELOCITY_NOISE),
    ],
)
def test_the_noise_is_unbiased_and_as_strong_as_stated(
    world: World, readings: list[odometry.EgoState], noise: str, stated: float
) -> None:
    errors = []
    for t, reading in zip(TIMES, readings, strict=True):
        true = world.path.state(t)
        errors.append(
            {
                'position': reading.pose.translation - true.pose.translation,
                'attitude': Rotation.from_matrix(
                    reading.pose.rotation @ true.pose.rotation.T
                ).as_rotvec(),
                'velocity': reading.velocity - true.velocity,
                'angular_velocity': reading.angular_velocity - true.angular_velocity,
            }[noise]
        )
    spread = np.std(errors, axis=0)
    np.testing.assert_allclose(spread, stated, rtol=0.12)
    assert np.abs(np.mean(errors, axis=0)).max() < 4.0 * stated / np.sqrt(len(errors))
