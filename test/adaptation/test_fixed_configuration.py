"""A drone that does not optimise keeps its set-up, within what battery and computer allow."""

from __future__ import annotations

from typing import Any

import pytest

from mmedge_ros.adaptation.configuration_loop import ConfigurationLoopParameters
from mmedge_ros.adaptation.fixed_configuration import FixedConfiguration
from mmedge_ros.adaptation.placement import Placement
from mmedge_ros.adaptation.power_policy import STANDING_BY
from mmedge_ros.adaptation.standby import PERIOD
from mmedge_ros.core.data_types import CAMERA, RADAR, STANDBY, Configuration
from mmedge_ros.encoding.bricks import BrickCost, BrickState, BrickStatus
from mmedge_ros.monitoring.system_state import SystemState

LEVELS = {CAMERA: ('small', 'medium', 'large'), RADAR: ('',)}
PERIOD_S = 0.1


class Drone:
    """Decides ten times a second, on a state of the system."""

    def __init__(self, default: str = 'medium', placement: Placement | None = None) -> None:
        parameters = ConfigurationLoopParameters(power=STANDING_BY)
        defaults = {CAMERA: default, RADAR: ''}
        self.loop = FixedConfiguration(LEVELS, defaults, parameters, placement)
        self.now = 20.0
        self.made: list[Configuration] = []

    def fly(self, seconds: float, **state: Any) -> list[Configuration]:
        """Return the configurations of the last seconds."""
        before = len(self.made)
        for _ in range(round(seconds / PERIOD_S)):
            self.now += PERIOD_S
            self.loop.system_state(SystemState(**state), self.now)
            made = self.loop.update(round(self.now * 1e9), self.now)
            if made is not None:
                self.made.append(made)
        return self.made[before:]


def test_a_healthy_drone_is_not_configured_at_all() -> None:
    drone = Drone()
    assert drone.fly(60.0, charge=0.95, voltage=16.0, temperature=50.0) == []


def test_without_any_battery_nothing_is_held_back() -> None:
    assert Drone().fly(60.0, temperature=50.0) == []


def test_a_falling_charge_lowers_how_many_pictures_are_encoded_and_its_return_ends_it() -> None:
    drone = Drone()
    reuse = [c.of(CAMERA).reuse for n in range(30) for c in drone.fly(3.0, charge=0.7 - 0.01 * n)]
    assert reuse == sorted(reuse)
    assert set(reuse) >= {2, 3, 4, 5, 6}
    assert all(c.of(CAMERA).rate == 0.0 for c in drone.made)
    last = drone.fly(20.0, charge=0.95)[-1]
    assert last.reason == 'as set up'
    assert last.of(CAMERA).reuse == 1


def test_a_level_is_named_only_where_the_one_in_use_is_too_expensive() -> None:
    assert Drone('medium').fly(8.0, charge=0.6)[-1].of(CAMERA).level == ''
    assert Drone('large').fly(8.0, charge=0.6)[-1].of(CAMERA).level == 'medium'
    assert Drone('').fly(8.0, charge=0.6)[-1].of(CAMERA).level == 'medium'


def test_heat_and_battery_hold_together_and_the_tighter_wins() -> None:
    drone = Drone()
    drone.fly(8.0, charge=0.5, temperature=50.0)
    hot = drone.fly(8.0, charge=0.5, temperature=95.0)[-1]
    assert (hot.of(CAMERA).rate, hot.of(CAMERA).level) == (10.0, 'small')
    assert hot.of(CAMERA).reuse == 4
    assert 'temperature' in hot.reason
    assert 'saving power' in hot.reason


def test_in_critical_the_camera_rests_and_wakes_every_five_seconds() -> None:
    drone = Drone()
    drone.fly(1.0, charge=0.2)
    rates = [c.of(CAMERA).rate for c in drone.fly(4 * PERIOD, charge=0.2)]
    assert drone.made[0].of(CAMERA).rate == STANDBY
    assert rates[:4] == [10.0, STANDBY, 10.0, STANDBY]
    assert len(rates) == 8


def test_a_track_of_the_radar_wakes_at_once_and_only_in_critical() -> None:
    drone = Drone()
    drone.loop.bounds.tracked([(3, False)], drone.now)
    drone.fly(1.0, charge=0.2)
    drone.loop.bounds.tracked([(3, False)], drone.now)
    assert drone.fly(0.2, charge=0.2)[0].of(CAMERA).rate == 10.0


def test_numbers_grow_and_each_holds_from_a_little_later() -> None:
    drone = Drone()
    made = drone.fly(30.0, charge=0.2)
    assert [c.id for c in made] == list(range(1, len(made) + 1))
    starts = [c.effective_from_ns for c in made]
    assert starts == sorted(starts)


@pytest.mark.parametrize('charge', [0.3, 0.5])
def test_a_silent_battery_ends_standby_and_never_frees(charge: float) -> None:
    drone = Drone()
    drone.fly(10.0, charge=charge)
    drone.fly(30.0)
    last = drone.made[-1]
    assert last.of(CAMERA).rate == 0.0
    assert last.of(CAMERA).reuse > 2


def test_a_level_runs_where_it_was_measured_to_be_fastest_until_that_device_fails() -> None:
    costs = [
        BrickCost(f'camera.{level}', device, 0.1, seconds, 50_000_000)
        for level, device, seconds in (
            ('medium', 'cpu', 0.017),
            ('medium', 'cuda', 0.004),
            ('small', 'cpu', 0.007),
        )
    ]
    placement = Placement(costs, {CAMERA: 'medium', RADAR: ''}, lambda: 4e9)
    drone = Drone('medium', placement)
    assert [c.of(CAMERA).device for c in drone.fly(5.0)] == ['cuda']
    assert drone.made[0].of(RADAR).device == ''
    lost = BrickStatus('camera.medium', 'cuda', state=BrickState.FAILED)
    placement.take([lost], drone.now)
    assert [c.of(CAMERA).device for c in drone.fly(5.0)] == ['cpu']
