from __future__ import annotations

import math

import numpy as np
import pytest

from mmedge_ros.lab.simulation.rig import (
    CAMERA_PERIOD,
    HEIGHT,
    RADAR_PERIOD,
    WIDTH,
    draw_rig,
)
from mmedge_ros.lab.simulation.scenario import DISTANCES
from mmedge_ros.lab.simulation.world import Rig

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


def test_camera_and_radar_look_ahead_and_down(rigs: list[Rig]) -> None:
    for rig in rigs:
        camera_axis = rig.camera_pose.rotate([0.0, 0.0, 1.0])
        radar_axis = rig.radar_pose.rotate([1.0, 0.0, 0.0])
        assert 14.0 < math.degrees(math.asin(-camera_axis[2])) < 26.0
        assert 8.0 < math.degrees(math.asin(-radar_axis[2])) < 24.0
        apart = math.degrees(math.acos(camera_axis @ radar_axis))
        assert apart < 8.0
        for axis in (camera_axis, radar_axis):
            assert abs(math.degrees(math.atan2(axis[1], axis[0]))) < 5.0


def test_the_picture_is_upright(rigs: list[Rig]) -> None:
    """Left in the world is left in the picture and down is down."""
    for rig in rigs:
        points = np.array([[10.0, 1.0, -3.0], [10.0, -1.0, -3.0], [10.0, 0.0, -5.0]])
        pixels, _ = rig.camera.project(rig.camera_pose.inverse().apply(points))
        assert pixels[0, 0] < pixels[2, 0] < pixels[1, 0]
        assert pixels[2, 1] > pixels[0, 1]


def test_phases_differ_from_flight_to_flight_and_lie_within_a_period(rigs: list[Rig]) -> None:
    for phase, period in (
        ([rig.camera_phase for rig in rigs], CAMERA_PERIOD),
        ([rig.radar_phase for rig in rigs], RADAR_PERIOD),
    ):
        assert 0.0 <= min(phase) < 0.4 * period
        assert 0.6 * period < max(phase) < period
        assert len(set(phase)) == len(phase)


def test_data_arrive_after_they_were_measured(rigs: list[Rig]) -> None:
    for rig in rigs:
        assert rig.camera_delay > 0.5 * EXPOSURE + 0.008
        assert rig.camera_delay < CAMERA_PERIOD
        assert 0.02 < rig.radar_delay < RADAR_PERIOD
        assert rig.camera_period == pytest.approx(1 / 30)
        assert rig.radar_period == pytest.approx(1 / 20)
