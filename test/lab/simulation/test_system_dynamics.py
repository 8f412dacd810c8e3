from __future__ import annotations

import numpy as np
import pytest

from mmedge_lab.simulation.build import build_world
from mmedge_lab.simulation.system_dynamics import RADAR_MIN_VOLTS, SystemDynamics
from mmedge_lab.simulation.world import World

SECONDS = 10.0
TIMES = np.arange(0.0, SECONDS, 0.05)


def traces(world: World) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    dynamics = SystemDynamics(world)
    readings = [dynamics.battery(t) for t in TIMES]
    stutters = np.array([dynamics.radar_stutters(t) for t in TIMES])
    return (
        np.array([r.voltage for r in readings]),
        np.array([r.current for r in readings]),
        stutters,
    )


@pytest.fixture(scope='module')
def worlds() -> list[World]:
    return [build_world('meadow_day_middle', seed, SECONDS) for seed in range(26)]


def take_offs(worlds: list[World]) -> list[World]:
    return [world for world in worlds if world.path.state(0.0).pose.translation[2] < 0.6]


def test_the_voltage_sags_while_taking_off(worlds: list[World]) -> None:
    rising = take_offs(worlds)
    assert rising
    for world in rising:
        voltage, current, _ = traces(world)
        climbing = np.array([world.path.state(t).velocity[2] > 0.3 for t in TIMES])
        assert current[climbing].max() > 1.2 * np.median(current[~climbing])
        assert voltage[climbing].min() < voltage[0] - 0.5
        assert voltage[climbing].min() < np.median(voltage[~climbing])


def test_the_radar_stutters_only_while_the_voltage_is_low(worlds: list[World]) -> None:
    stuttered = 0
    for world in take_offs(worlds):
        voltage, _, stutters = traces(world)
        assert not stutters[voltage >= RADAR_MIN_VOLTS].any()
        stuttered += bool(stutters.any())
    assert stuttered >= 2


def test_a_hot_computer_throttles_and_slows_down(worlds: list[World]) -> None:
    seen = set()
    for world in worlds:
        reading = SystemDynamics(world).system(5.0)
        seen.add(reading.throttled)
        assert reading.throttled or reading.temperature < 88.0
        if reading.throttled:
            assert reading.temperature > 80.0
            assert reading.cpu_clock[0] < 1e9
    assert seen == {False, True}
