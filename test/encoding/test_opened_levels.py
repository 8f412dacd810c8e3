"""In flight one level is held: the next loads beside it, and what is not wanted goes."""

from __future__ import annotations

import gc
import math
import threading
import weakref

import pytest

from mmedge_ros.encoding import EncodingError
from mmedge_ros.encoding.bricks import BrickState, BrickStatus
from mmedge_ros.encoding.opened_levels import HOLD, HeldLevels, OpenedLevels

LEVELS = ('small', 'medium', 'large')


class Network:
    def __init__(self, level: str, device: str) -> None:
        self.level, self.device, self.runs = level, device, 0


class Files:
    """Opens networks when it may; counts them."""

    def __init__(self) -> None:
        self.opened: list[str] = []
        self.broken: set[str] = set()
        self.without: set[str] = set()
        self.may_open = threading.Event()
        self.may_open.set()
        self.made: list[weakref.ref[Network]] = []

    def open(self, level: str, device: str) -> Network:
        assert self.may_open.wait(10.0)
        self.opened.append(level)
        if device in self.without:
            raise EncodingError(f'there is no {device}')
        if level in self.broken:
            raise EncodingError(f'{level}.onnx is damaged')
        network = Network(level, device)
        self.made.append(weakref.ref(network))
        return network


class Clock:
    def __init__(self) -> None:
        self.now = 5.0

    def __call__(self) -> float:
        return self.now


def brick(levels: HeldLevels[Network], name: str, device: str = 'cpu') -> BrickStatus:
    return next(b for b in levels.bricks() if (b.name, b.device) == (name, device))


def lose(_: Network) -> None:
    raise EncodingError('the device is lost')


def run(network: Network) -> None:
    network.runs += 1


def held(files: Files, clock: Clock | None = None) -> HeldLevels[Network]:
    levels = HeldLevels(files.open, LEVELS, 'medium', 'camera', run, 'medium', clock or Clock())
    for network in levels.warm('cpu'):
        run(network)
    return levels


def test_the_old_level_serves_until_the_next_one_is_there_and_has_run() -> None:
    files = Files()
    levels = held(files)
    files.may_open.clear()
    for _ in range(5):
        assert levels.serving('large', 'cpu') == 'medium'
        assert levels.get('large', 'cpu').level == 'medium'
    assert levels.state('large', 'cpu') is BrickState.LOADING
    files.may_open.set()
    levels.wait(10.0)
    assert levels.serving('large', 'cpu') == 'large'
    assert levels.get('large', 'cpu').runs == 1
    assert files.opened == ['medium', 'large']


def test_a_level_that_is_not_wanted_for_a_while_is_released() -> None:
    files, clock = Files(), Clock()
    levels = held(files, clock)
    levels.serving('small', 'cpu')
    levels.wait(10.0)
    assert levels.serving('small', 'cpu') == 'small'
    clock.now += HOLD - 0.1
    levels.serving('small', 'cpu')
    assert levels.state('medium', 'cpu') is BrickState.RESIDENT
    clock.now += 0.2
    levels.serving('small', 'cpu')
    assert levels.state('medium', 'cpu') is BrickState.RELEASED
    for thread in threading.enumerate():
        if thread is not threading.main_thread() and thread.daemon:
            thread.join(1.0)
    gc.collect()
    assert files.made[0]() is None
    assert files.made[1]() is not None


def test_a_level_that_cannot_be_opened_does_not_take_the_place_of_one_that_serves() -> None:
    files = Files()
    files.broken = {'large'}
    levels = held(files)
    for _ in range(10):
        assert levels.serving('large', 'cpu') == 'medium'
        levels.wait(10.0)
    assert levels.state('large', 'cpu') is BrickState.FAILED
    assert files.opened == ['medium', 'large']
    assert brick(levels, 'camera.large').problem == 'large.onnx is damaged'


def test_a_level_that_comes_back_in_time_is_not_loaded_again() -> None:
    files, clock = Files(), Clock()
    levels = held(files, clock)
    for level in ('large', 'medium', 'large', 'medium'):
        levels.serving(level, 'cpu')
        levels.wait(10.0)
        assert levels.serving(level, 'cpu') == level
        clock.now += 1.0
    assert files.opened == ['medium', 'large']


def test_a_brick_runs_while_units_come_and_says_how_long_a_run_takes() -> None:
    files, clock = Files(), Clock()
    levels = held(files, clock)
    assert brick(levels, 'camera.medium').state is BrickState.RESIDENT
    assert math.isnan(brick(levels, 'camera.medium').run_time)
    assert levels.run('medium', 'cpu', lambda network: network.level) == 'medium'
    running = brick(levels, 'camera.medium')
    assert running.state is BrickState.RUNNING
    assert running.run_time >= 0.0
    clock.now += 2.0
    assert brick(levels, 'camera.medium').state is BrickState.RESIDENT


def test_where_a_level_cannot_be_opened_on_a_device_the_processor_takes_it() -> None:
    files = Files()
    files.without = {'cuda'}
    levels = held(files)
    levels.serving('large', 'cuda')
    levels.wait(10.0)
    levels.serving('large', 'cuda')
    levels.wait(10.0)
    assert levels.serving('large', 'cuda') == 'large'
    assert levels.get('large', 'cuda').device == 'cpu'
    assert brick(levels, 'camera.large', 'cuda').state is BrickState.FAILED


def test_a_device_that_goes_away_in_flight_is_replaced_by_the_processor() -> None:
    files = Files()
    levels = held(files)
    levels.serving('medium', 'cuda')
    levels.wait(10.0)
    for _ in range(2):
        levels.serving('medium', 'cuda')
        with pytest.raises(EncodingError, match='lost'):
            levels.run('medium', 'cuda', lose)
    assert levels.serving('medium', 'cuda') == 'medium'
    assert levels.run('medium', 'cuda', lambda network: network.device) == 'cpu'
    assert brick(levels, 'camera.medium', 'cuda').state is BrickState.FAILED


def test_one_unit_that_fails_does_not_condemn_its_device() -> None:
    files = Files()
    levels = held(files)
    levels.serving('medium', 'cuda')
    levels.wait(10.0)
    for _ in range(5):
        levels.serving('medium', 'cuda')
        with pytest.raises(EncodingError):
            levels.run('medium', 'cuda', lose)
        assert levels.run('medium', 'cuda', lambda network: network.device) == 'cuda'


def test_outside_a_flight_every_level_is_opened_and_stays() -> None:
    files = Files()
    levels = OpenedLevels(files.open, LEVELS, 'medium')
    assert [network.level for network in levels.warm('cpu')] == list(LEVELS)
    assert levels.serving('large', 'cpu') == 'large'
    assert levels.get('', 'cpu').level == 'medium'
    assert files.opened == list(LEVELS)


def test_units_that_fail_on_the_processor_do_not_take_it_away() -> None:
    levels = held(Files())
    for _ in range(5):
        levels.serving('medium', 'cpu')
        with pytest.raises(EncodingError):
            levels.run('medium', 'cpu', lose)
    assert levels.run('medium', 'cpu', lambda network: network.level) == 'medium'
