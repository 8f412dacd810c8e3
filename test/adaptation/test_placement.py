"""Each brick runs where it is cheapest among what was measured, is free, and works."""

from __future__ import annotations

import math
from collections.abc import Mapping

import pytest

from mmedge_ros.adaptation.placement import Placement
from mmedge_ros.encoding.bricks import BrickCost, BrickState, BrickStatus

MB = 1_000_000


def cost(device: str, run_ms: float, memory: int = 50 * MB, mj: float = math.nan) -> BrickCost:
    return BrickCost('camera.large', device, 0.1, run_ms / 1e3, memory, energy=mj / 1e3)


class Machine:
    def __init__(self, *costs: BrickCost, free: float = 4e9) -> None:
        self.free = free
        self.now = 100.0
        self.placement = Placement(costs, {'camera': 'large'}, lambda: self.free)

    def place(self, saving: bool = False) -> Mapping[str, str]:
        return self.placement.devices(saving, self.now)

    def hear(self, device: str, state: BrickState, run_ms: float = math.nan) -> None:
        status = BrickStatus('camera.large', device, state=state, run_time=run_ms / 1e3)
        self.placement.take([status], self.now)


def test_the_fastest_device_takes_a_brick_and_the_default_level_is_named_by_its_modality() -> None:
    machine = Machine(cost('cpu', 31.0), cost('cuda', 4.0))
    assert machine.place() == {'camera.large': 'cuda', 'camera': 'cuda'}


def test_where_one_device_was_measured_nothing_is_chosen_and_no_memory_looked_at() -> None:
    def look() -> float:
        raise AssertionError('the memory was looked at')

    placement = Placement([cost('cpu', 31.0)], {'camera': 'large'}, look)
    assert placement.devices(saving=False, now=1.0) == {}


def test_a_device_whose_memory_does_not_suffice_is_left_out() -> None:
    machine = Machine(cost('cpu', 31.0), cost('cuda', 4.0, 900 * MB), free=1e9)
    assert machine.place()['camera.large'] == 'cpu'
    machine.free = 2e9
    assert machine.place()['camera.large'] == 'cuda'


def test_a_brick_that_is_in_memory_need_not_fit_a_second_time() -> None:
    machine = Machine(cost('cpu', 31.0), cost('cuda', 4.0, 900 * MB), free=2e9)
    machine.place()
    machine.free = 0.3e9
    assert machine.place()['camera.large'] == 'cuda'


def test_a_device_that_failed_is_never_asked_again() -> None:
    machine = Machine(cost('cpu', 31.0), cost('cuda', 4.0))
    machine.place()
    machine.hear('cuda', BrickState.FAILED)
    assert machine.place()['camera.large'] == 'cpu'
    machine.now += 3600.0
    assert machine.place()['camera.large'] == 'cpu'


def test_a_busy_device_is_left_for_half_a_minute() -> None:
    machine = Machine(cost('cpu', 31.0), cost('cuda', 4.0))
    machine.place()
    machine.hear('cuda', BrickState.RUNNING, 9.0)
    assert machine.place()['camera.large'] == 'cpu'
    machine.now += 29.0
    assert machine.place()['camera.large'] == 'cpu'
    machine.now += 2.0
    assert machine.place()['camera.large'] == 'cuda'


def test_times_that_are_old_or_unknown_do_not_make_a_device_busy() -> None:
    machine = Machine(cost('cpu', 31.0), cost('cuda', 4.0))
    machine.hear('cuda', BrickState.RESIDENT, 90.0)
    machine.hear('cuda', BrickState.RUNNING)
    assert machine.place()['camera.large'] == 'cuda'


def test_to_save_power_the_least_energy_decides_where_it_was_measured() -> None:
    machine = Machine(cost('cpu', 31.0, mj=90.0), cost('cuda', 4.0, mj=120.0))
    assert machine.place()['camera.large'] == 'cuda'
    assert machine.place(saving=True)['camera.large'] == 'cpu'


def test_without_measured_energy_the_fastest_saves_most() -> None:
    machine = Machine(cost('cpu', 31.0, mj=90.0), cost('cuda', 4.0))
    assert machine.place(saving=True)['camera.large'] == 'cuda'


def test_a_brick_does_not_move_for_a_gain_that_a_measurement_may_be_wrong_by() -> None:
    assert Machine(cost('cpu', 31.0), cost('cuda', 29.0)).place()['camera.large'] == 'cpu'
    assert Machine(cost('cpu', 31.0), cost('cuda', 27.0)).place()['camera.large'] == 'cuda'


def test_where_all_devices_are_gone_a_brick_stays_where_it_is() -> None:
    machine = Machine(cost('cpu', 31.0), cost('cuda', 4.0))
    machine.place()
    for device in ('cpu', 'cuda'):
        machine.hear(device, BrickState.FAILED)
    assert machine.place()['camera.large'] == 'cuda'


@pytest.mark.parametrize('device', ['cpu', 'cuda'])
def test_what_is_said_of_bricks_that_were_not_measured_changes_nothing(device: str) -> None:
    machine = Machine(cost('cpu', 31.0), cost('cuda', 4.0))
    status = BrickStatus('radar.small', device, state=BrickState.RUNNING, run_time=1.0)
    machine.placement.take([status], machine.now)
    assert machine.place()['camera.large'] == 'cuda'
