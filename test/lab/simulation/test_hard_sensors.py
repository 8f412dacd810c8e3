"""The estimator, inertial unit and rangefinder of hard flights, against what is true."""

from __future__ import annotations

import math
from dataclasses import replace

import hand_made_world as made
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from mmedge_lab.simulation.build import build_world
from mmedge_lab.simulation.hard_sensors import InertialUnit, Rangefinder
from mmedge_lab.simulation.hardships import EstimatorErrors
from mmedge_lab.simulation.odometry import EstimatorDrift, Odometry
from mmedge_lab.simulation.world import DroneState
from mmedge_ros.core.data_types import FloatArray
from mmedge_ros.geometry.transforms import Transform

ERRORS = EstimatorErrors(0.8, 1.2, 0.015, -0.01, 0.004, 5.0, (1.0, -0.5, 0.25), 0.08)
TIMES = np.arange(0.0, 60.0, 0.05)
FEW = TIMES[::5]
LEAN = 0.2


class Leaning:
    """A drone 6 m up that leans to the side."""

    def state(self, t: float) -> DroneState:
        rotation = Rotation.from_euler('x', LEAN).as_matrix()
        return DroneState(Transform(rotation, np.array([0.0, 0, 6.0])), np.zeros(3), np.zeros(3))


def reported(errors: EstimatorErrors, seed: int, t: float) -> tuple[FloatArray, FloatArray]:
    """Where a drone at rest is for its estimator, m, and its yaw, pitch and roll, rad."""
    pose = EstimatorDrift(errors, seed).reported(made.StraightFlight(height=0.0).state(t), t).pose
    return pose.translation, Rotation.from_matrix(pose.rotation).as_euler('ZYX')


@pytest.mark.parametrize('seed', range(4))
def test_a_drift_begins_at_the_true_place_and_stays_smooth_and_in_its_bounds(seed: int) -> None:
    off = np.array([reported(replace(ERRORS, reset=99), seed, t)[0] for t in FEW])
    assert off[0].tolist() == [0.0, 0.0, 0.0]
    assert np.hypot(*off[:, :2].T).max() <= 1.2
    assert 0.4 < np.abs(off[:, 2]).max() <= 0.8
    assert np.abs(np.diff(off, axis=0)).max() < 0.25


def test_a_reset_makes_place_and_yaw_jump_once_by_what_was_drawn_besides_lean_and_drift() -> None:
    places, angles = zip(*(reported(ERRORS, 1, t) for t in FEW), strict=True)
    before = [reported(replace(ERRORS, reset=99), 1, t)[0] for t in FEW]
    jumps = (FEW >= 5.0)[:, None] * np.array(ERRORS.jump)
    np.testing.assert_allclose(np.subtract(places, before), jumps, atol=1e-12)
    yaw, pitch, roll = np.transpose(angles)
    np.testing.assert_allclose(pitch, ERRORS.pitch, atol=1e-9)
    np.testing.assert_allclose(roll, ERRORS.roll, atol=1e-9)
    assert yaw[:5] == pytest.approx(ERRORS.yaw_rate * FEW[:5], rel=0.01)
    assert yaw[20] - yaw[19] == pytest.approx(ERRORS.turn, abs=1e-3)


def test_the_gyros_integrate_to_the_attitude_and_at_rest_the_force_is_gravitys() -> None:
    world = build_world('meadow_day_middle', 5, 8.0, condition='drift')
    unit = InertialUnit(world, Odometry(world))
    begin, end = (world.path.state(t).pose.rotation for t in (1.0, 3.0))
    turns = [0.005 * unit.at(t).turning for t in np.arange(1.0025, 3.0, 0.005)]
    turned = Rotation.from_matrix(begin)
    for turn in turns:
        turned *= Rotation.from_rotvec(turn)
    # Two seconds of a bias of 0.2 deg/s on each axis, four times that at most.
    assert (turned.inv() * Rotation.from_matrix(end)).magnitude() < math.radians(1.6)
    still = replace(made.world(), hard=world.hard)
    force = np.mean([InertialUnit(still, Odometry(still)).at(t).force for t in FEW], axis=0)
    assert force == pytest.approx([0.0, 0.0, 9.81], abs=0.005)


def test_the_rangefinder_reads_height_over_the_cosine_of_the_tilt() -> None:
    finder, true = Rangefinder(replace(made.world(), path=Leaning())), 6.0 / math.cos(LEAN) - 0.05
    read = [value for value in map(finder.at, TIMES) if value is not None]
    assert 0.95 < len(read) / len(TIMES) < 0.99
    assert np.mean(read) == pytest.approx(true, abs=0.01)
    assert np.std(read) == pytest.approx(0.02 + 0.005 * true, rel=0.1)


def test_the_rangefinder_sees_a_mover_and_a_roof_below_and_nothing_beyond_its_reach() -> None:
    high, low = (made.StraightFlight(height=height) for height in (30.0, 6.0))
    ball, roof = made.Ball(place=(0.0, 0.0)), made.house(-2.0, 0.0, height=3.0)
    assert Rangefinder(made.world([ball], path=low)).distance(0.0) == pytest.approx(4.65)
    assert Rangefinder(made.world([], [roof], path=low)).distance(0.0) == pytest.approx(2.95)
    assert Rangefinder(made.world(path=high)).at(0.05) == math.inf
