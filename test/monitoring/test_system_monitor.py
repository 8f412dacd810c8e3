"""Slow and dead probes beside quick ones."""

from __future__ import annotations

import math
import threading
import time
from pathlib import Path

import pytest
from machine_trees import orin_nano
from virtual_clock import VirtualClock

from mmedge_ros.core.clock import SystemClock
from mmedge_ros.core.data_types import NS_PER_S
from mmedge_ros.monitoring import MonitoringError
from mmedge_ros.monitoring.machine import machine_probes
from mmedge_ros.monitoring.system_files import SystemFiles
from mmedge_ros.monitoring.system_monitor import BackgroundProbe, OwnShare, SystemMonitor
from mmedge_ros.monitoring.system_state import Probe, Reading, Subsystem, SystemState, combined
from mmedge_ros.monitoring.trace import Trace, TraceProbe, TraceTime

PATIENCE = 20.0


class Quick(Probe):
    """Counts how often it was read."""

    def __init__(self) -> None:
        super().__init__('quick', Subsystem.MEMORY)
        self.reads = 0
        self.closed = False

    def read(self) -> Reading:
        self.reads += 1
        return Reading(SystemState(memory=float(self.reads)))

    def close(self) -> None:
        self.closed = True


class Hanging(Probe):
    """Tells a temperature, but every read waits until it is let go."""

    def __init__(self) -> None:
        super().__init__('hanging', Subsystem.TEMPERATURE, slow=True)
        self.begun = threading.Event()
        self.go = threading.Event()
        self.at_once = self.most_at_once = 0
        self.closed = False

    def read(self) -> Reading:
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        self.begun.set()
        self.go.wait(PATIENCE)
        self.at_once -= 1
        return Reading(SystemState(temperature=55.0))

    def close(self) -> None:
        self.closed = True


class Dead(Probe):
    def __init__(self, slow: bool) -> None:
        super().__init__('dead', Subsystem.GPU, slow)

    def read(self) -> Reading:
        raise MonitoringError('the bus does not answer')


def test_a_probe_that_hangs_holds_up_nobody_and_is_read_once_at_a_time() -> None:
    clock = VirtualClock(NS_PER_S)
    quick, hanging = Quick(), Hanging()
    monitor = SystemMonitor([quick, hanging], clock, slow_period=0.01)
    monitor.start()
    assert hanging.begun.wait(PATIENCE)
    states = [monitor.sample().state for _ in range(50)]
    assert [state.memory for state in states] == [float(n) for n in range(1, 51)]
    assert all(math.isnan(state.temperature) for state in states)
    assert hanging.most_at_once == 1
    hanging.go.set()
    monitor.stop()
    assert hanging.closed
    assert quick.closed


def test_a_probe_that_never_comes_back_does_not_hold_up_the_end() -> None:
    hanging = Hanging()
    monitor = SystemMonitor([hanging], SystemClock(), slow_period=0.01)
    monitor.start()
    assert hanging.begun.wait(PATIENCE)
    monitor.stop()
    assert not hanging.closed  # somebody is still inside
    hanging.go.set()


def test_what_a_slow_probe_told_is_unknown_when_it_is_too_old() -> None:
    clock = VirtualClock(NS_PER_S)
    hanging = Hanging()
    hanging.go.set()
    background = BackgroundProbe(hanging, clock, period=1.0)
    assert background.latest().problem == 'not read yet'
    background.read_once()
    assert background.latest().state.temperature == 55.0
    clock.advance_to(5 * NS_PER_S)
    assert background.latest().state.temperature == 55.0
    clock.advance_to(5 * NS_PER_S + 1)
    late = background.latest()
    assert math.isnan(late.state.temperature)
    assert late.problem == 'hanging: no answer for 4.0 s'


@pytest.mark.parametrize('slow', [False, True])
def test_a_dead_sensor_is_unknown_with_its_words(slow: bool) -> None:
    dead = Dead(slow)
    monitor = SystemMonitor([dead, Quick()], VirtualClock(), 1.0)
    if slow:
        background = BackgroundProbe(dead, VirtualClock(), 1.0)
        background.read_once()
        reading = background.latest()
    else:
        reading = monitor.sample().sources[0].reading
    assert math.isnan(reading.state.gpu)
    assert reading.problem == 'the bus does not answer'


def test_the_first_that_knows_a_field_gives_it_and_the_hottest_zone_counts() -> None:
    joined = combined(
        [
            SystemState(temperature=40.0, gpu_clock=1.0, throttled=False),
            SystemState(temperature=60.0, gpu=7.0, cpu=(1.0,)),
            SystemState(gpu=9.0, cpu=(2.0,), throttled=True),
        ]
    )
    assert (joined.temperature, joined.gpu, joined.gpu_clock) == (60.0, 7.0, 1.0)
    assert joined.cpu == (1.0,)
    assert joined.throttled is True
    assert math.isnan(joined.memory)
    assert combined([]).throttled is None


def test_a_trace_stands_in_for_a_machine() -> None:
    trace = Trace((0.0, 1.0), (SystemState(gpu=10.0), SystemState(gpu=30.0)))
    clock = VirtualClock()
    monitor = SystemMonitor([TraceProbe(trace, TraceTime(trace, clock))], clock, 1.0)
    assert monitor.sample().state.gpu == 10.0
    clock.advance_to(NS_PER_S)
    assert monitor.sample().state.gpu == 30.0


def test_the_own_share_is_that_of_one_core_since_the_last_question() -> None:
    clock = VirtualClock(NS_PER_S)
    used = iter([1.0, 1.02, 1.03])
    share = OwnShare(clock, lambda: next(used))
    clock.advance_to(3 * NS_PER_S)
    assert share.percent() == pytest.approx(1.0)
    assert share.percent() == 0.0  # no time has passed


def test_reading_a_jetson_five_times_a_second_takes_little_of_a_core(tmp_path: Path) -> None:
    clock = SystemClock()
    probes = machine_probes(SystemFiles(orin_nano(tmp_path)), clock, nvml=False)
    slow = [BackgroundProbe(probe, clock, 0.5) for probe in probes if probe.slow]
    monitor = SystemMonitor([probe for probe in probes if not probe.slow], clock, 0.5)
    rounds = 20
    begin = time.thread_time()
    for _ in range(rounds):  # half a second's work each
        for background in slow:
            background.read_once()
        for _ in range(3):
            monitor.sample()
    percent = 100.0 * (time.thread_time() - begin) / (0.5 * rounds)
    assert percent < 1.0
