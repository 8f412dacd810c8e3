"""Traces of recorded and simulated flights, and how they are played."""

from __future__ import annotations

import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hand_made_flight import scene, sensors
from rosbags.rosbag2 import StoragePlugin, Writer
from virtual_clock import VirtualClock

from mmedge_lab.simulation.flight import record_flight
from mmedge_lab.simulation.flight_bag import BATTERY, SYSTEM, flight_types
from mmedge_lab.simulation.flight_messages import FlightMessages
from mmedge_lab.simulation.system_dynamics import BatteryReading
from mmedge_ros.core.data_types import NS_PER_S
from mmedge_ros.monitoring import MonitoringError
from mmedge_ros.monitoring.system_state import UNKNOWN, SystemState
from mmedge_ros.monitoring.trace import Trace, TraceTime
from mmedge_ros.replay import ReplayError
from mmedge_ros.replay.bag import Bag
from mmedge_ros.replay.recorded_trace import read_trace_file
from mmedge_ros.replay.wire_formats import SYSTEM_STATE, state_from_message

approx = pytest.approx
BEGIN_NS = 1_700_000_000 * NS_PER_S


def reading(volts: float) -> SystemState:
    return SystemState(
        voltage=volts,
        current=20.0,
        power=20.0 * volts,
        charge=0.5,
        cpu=(10.0, 30.0),
        gpu=40.0,
        memory=50.0,
        temperature=60.0,
        cpu_clock=(1e9, 2e9),
        gpu_clock=5e8,
        throttled=True,
    )


def write_flight(path: Path, kinds: tuple[str, ...]) -> Path:
    """A recording of two seconds whose voltage falls from 15 V by 1 V a second."""
    store = flight_types()
    make = FlightMessages()
    with Writer(path, version=9, storage_plugin=StoragePlugin.MCAP) as writer:
        for kind in kinds:
            topic = writer.add_connection(f'/{kind.rpartition("/")[2]}', kind, typestore=store)
            for second in range(3):
                stamp_ns = BEGIN_NS + second * NS_PER_S
                volts = 15.0 - second
                message = (
                    make.system_state(stamp_ns, reading(volts))
                    if kind == SYSTEM_STATE
                    else make.battery(stamp_ns, BatteryReading(volts, 20.0, 0.5, 30.0))
                )
                writer.write(topic, stamp_ns, store.serialize_cdr(message, kind))
    return path


def test_the_state_of_a_recorded_flight_is_played_at_its_instants(tmp_path: Path) -> None:
    battery = 'sensor_msgs/msg/BatteryState'
    trace = read_trace_file(write_flight(tmp_path / 'bag', (battery, SYSTEM_STATE)))
    assert trace.begin_ns == BEGIN_NS
    assert trace.times == (0.0, 1.0, 2.0)
    assert [trace.at(t).voltage for t in (0.0, 0.9, 1.0, 2.5)] == [15.0, 15.0, 14.0, 13.0]
    assert trace.at(1.5) == reading(14.0)


def test_a_recording_without_any_state_is_told(little_flight: Path) -> None:
    with pytest.raises(ReplayError, match='cannot be played as a trace'):
        read_trace_file(little_flight)


@pytest.fixture
def little_flight(tmp_path: Path) -> Path:
    store = flight_types()
    with Writer(tmp_path / 'words', version=9, storage_plugin=StoragePlugin.MCAP) as writer:
        topic = writer.add_connection('/words', 'std_msgs/msg/String', typestore=store)
        words = store.types['std_msgs/msg/String']('hello')
        writer.write(topic, 1, store.serialize_cdr(words, 'std_msgs/msg/String'))
    return tmp_path / 'words'


def test_a_trace_is_unknown_before_after_and_in_long_gaps() -> None:
    low, high = SystemState(gpu=1.0), SystemState(gpu=2.0)
    trace = Trace((1.0, 10.0), (low, high))
    assert trace.at(0.9) == UNKNOWN
    assert trace.at(3.9) == low
    assert trace.at(4.1) == UNKNOWN
    assert trace.at(13.1) == UNKNOWN
    assert trace.at(20.5, loop=True) == low
    with pytest.raises(MonitoringError, match='without states'):
        Trace((), ())


def test_a_trace_runs_by_itself_or_follows_the_player_of_its_recording() -> None:
    clock = VirtualClock(100 * NS_PER_S)
    trace = Trace((0.0,), (UNKNOWN,), begin_ns=BEGIN_NS)
    time = TraceTime(trace, clock)
    assert time.elapsed() == 0.0
    clock.advance_to(102 * NS_PER_S)
    assert time.elapsed() == 2.0
    time.follow(BEGIN_NS + 1, 7)  # another recording
    assert time.elapsed() == 2.0
    time.follow(BEGIN_NS, 95 * NS_PER_S - BEGIN_NS)
    assert time.elapsed() == 7.0


def test_a_simulated_trace_is_that_of_the_whole_flight(tmp_path: Path) -> None:
    flown = scene(4.0)
    traces = []
    for name, trace_only in (('whole', False), ('trace', True)):
        record_flight(tmp_path / name, flown, sensors(flown), trace_only=trace_only)
        traces.append(read_trace_file(tmp_path / name))
    whole, alone = traces
    assert alone.states == whole.states
    instants = [trace.begin_ns / NS_PER_S + np.array(trace.times) for trace in traces]
    assert instants[1] == approx(instants[0], abs=1e-6)
    assert len(alone.times) == 21
    assert all(10.0 < state.voltage < 18.0 for state in alone.states)
    assert alone.states[-1].charge < alone.states[0].charge
    with Bag(tmp_path / 'trace') as bag:
        assert {topic.name for topic in bag.topics} == {BATTERY, SYSTEM}


def message(**fields: Any) -> SimpleNamespace:
    every = {
        'voltage': math.nan,
        'current': math.nan,
        'power': 7.5,
        'charge': math.nan,
        'cpu': (10.0, 200.0),
        'gpu': -1.0,
        'memory': math.inf,
        'temperature': -256.0,
        'cpu_clock': (1e9, math.nan),
        'gpu_clock': 1e30,
        'throttled': True,
    }
    return SimpleNamespace(**{**every, **fields})


def test_a_message_that_cannot_be_is_unknown_where_it_cannot() -> None:
    state = state_from_message(message())
    assert state.cpu == approx((10.0, math.nan), nan_ok=True)
    for value in (state.gpu, state.memory, state.temperature, state.gpu_clock):
        assert math.isnan(value)


def test_power_is_that_of_the_module_where_there_is_no_battery() -> None:
    alone = state_from_message(message())
    assert (alone.module_power, alone.shown_power) == (7.5, 7.5)
    assert math.isnan(alone.power)
    flying = state_from_message(message(voltage=15.0, power=300.0))
    assert (flying.power, flying.shown_power) == (300.0, 300.0)
    assert math.isnan(flying.module_power)
