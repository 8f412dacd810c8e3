"""Monitors in processes of their own, on machines and traces that the test makes."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from diagnostic_msgs.msg import DiagnosticStatus
from live_graph import Bystander
from machine_trees import bare_machine, orin_nano
from sensor_msgs.msg import BatteryState

from mmedge_ros import msg
from mmedge_ros.monitoring.system_state import SystemState
from mmedge_ros.replay.wire_formats import state_from_message
from mmedge_ros.ros.graph.description import NodeDescription
from mmedge_ros.ros.graph.options import GraphOptions
from mmedge_ros.ros.graph.perception_graph import perception_graph
from mmedge_ros.ros.graph.process_group import ProcessGroup
from mmedge_ros.ros.messages import names, qos
from mmedge_ros.ros.messages.conversions import to_system_state, to_time

BURN = (
    'RAM {used}/1000MB (lfb 2x4MB) CPU [{load}%@1510,off] GR3D_FREQ 99% CPU@60C VDD_IN 9000/9000'
)


class Cockpit:
    """Listens to a monitor, and is the autopilot's battery."""

    def __init__(
        self, bystander: Bystander, name: str = 'monitor', topic: str = names.SYSTEM_STATE
    ) -> None:
        self.name = name
        self.bystander = bystander
        self.states: list[msg.SystemState] = []
        node = bystander.node
        node.create_subscription(msg.SystemState, topic, self.states.append, qos.RESULT)
        self._battery = node.create_publisher(BatteryState, names.BATTERY_STATE, qos.SENSOR)
        self._stamp_ns = 1

    def publish_battery(self, volts: float, charge: float) -> None:
        self._stamp_ns += 1
        message = BatteryState(voltage=volts, percentage=charge, current=-10.0)
        message.header.stamp = to_time(self._stamp_ns)
        self._battery.publish(message)

    def wait_for(self, condition: Any) -> SystemState:
        """Wait until the newest state suits, and return it."""

        def newest() -> SystemState | None:
            state = state_from_message(self.states[-1]) if self.states else None
            return state if state is not None and condition(state) else None

        found = self.bystander.wait_until(newest)
        assert isinstance(found, SystemState)
        return found

    def wait_for_status(self, part: str, level: bytes) -> str:
        """Wait until a part of the machine has this level, and return its message."""
        name = f'{self.name}: {part}'
        seen = self.bystander.diagnostics
        self.bystander.wait_until(lambda: name in seen and seen[name].level == level)
        return str(seen[name].message)


class Flight:
    """Monitors of an Orin Nano made of files, of a trace, and of machines with no battery."""

    def __init__(self, folder: Path, bystander: Bystander) -> None:
        self.cockpit = Cockpit(bystander)
        self.played = Cockpit(bystander, 'player', 'played_state')
        trace = folder / 'tegrastats.log'
        lines = [BURN.format(used=used, load=load) for used, load in ((300, 10), (970, 90))]
        trace.write_text('\n'.join(lines))
        root = str(orin_nano(folder / 'root'))
        options = GraphOptions(
            modalities=(),
            visualizer=False,
            monitor={'root': root, 'battery_age': 1.0, 'slow_period': 0.2},
        )
        no_battery = (names.BATTERY_STATE, 'no_battery')
        bare = str(bare_machine(folder / 'bare'))
        self.nodes = [
            *(node for node in perception_graph(options) if node.name == 'monitor'),
            NodeDescription(
                'player',
                'monitor',
                {'trace': str(trace), 'loop': True},
                [(names.SYSTEM_STATE, 'played_state'), no_battery],
            ),
            *(
                NodeDescription(
                    name,
                    'monitor',
                    {'root': bare, 'battery': name == 'flying'},
                    [(names.SYSTEM_STATE, 'bare_state'), no_battery],
                )
                for name in ('flying', 'at_desk')
            ),
        ]


@pytest.fixture(scope='module')
def flight(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Flight]:
    folder = tmp_path_factory.mktemp('monitor')
    with Bystander('cockpit') as bystander:
        found = Flight(folder, bystander)
        with ProcessGroup(found.nodes, folder / 'logs') as bystander.group:
            yield found


def test_a_machine_is_published_in_the_units_of_the_message(flight: Flight) -> None:
    cockpit = flight.cockpit
    state = cockpit.wait_for(lambda s: math.isfinite(s.module_power + s.gpu + s.temperature))
    assert state.gpu == pytest.approx(43.7, abs=0.01)
    assert state.memory == pytest.approx(25.0)
    assert state.cpu_clock == pytest.approx((1.5104e9,) * 6)
    assert state.module_power == pytest.approx(7.5)
    assert len(state.cpu) == 6
    assert cockpit.states[-1].header.stamp.sec > 1_600_000_000


def test_a_battery_is_taken_and_forgotten_when_it_falls_silent(flight: Flight) -> None:
    cockpit = flight.cockpit

    def fed(state: SystemState) -> bool:
        cockpit.publish_battery(14.8, 0.6)
        return state.voltage > 0.0

    state = cockpit.wait_for(fed)
    assert state.voltage == pytest.approx(14.8)
    assert state.power == pytest.approx(148.0)
    assert state.charge == pytest.approx(0.6)
    silent = cockpit.wait_for(lambda s: math.isnan(s.voltage))
    assert math.isnan(silent.charge)
    assert silent.module_power == pytest.approx(7.5)
    words = cockpit.wait_for_status('battery', DiagnosticStatus.WARN)
    assert 'voltage and charge and current lost: no new message of the battery for' in words


def test_a_trace_takes_the_place_of_the_machine(flight: Flight) -> None:
    cockpit = flight.played
    low = cockpit.wait_for(lambda s: s.memory < 50.0)
    high = cockpit.wait_for(lambda s: s.memory > 50.0)
    cockpit.wait_for_status('memory', DiagnosticStatus.ERROR)
    cockpit.wait_for(lambda s: s.memory < 50.0)  # from the beginning
    assert (low.mean_cpu, high.mean_cpu) == (10.0, 90.0)
    assert high.module_power == pytest.approx(9.0)


def test_a_missing_battery_is_told_where_one_is_expected(flight: Flight) -> None:
    bystander = flight.cockpit.bystander
    group, seen = bystander.group, bystander.diagnostics
    assert group is not None
    bystander.wait_until(lambda: 'no battery input' in group.last_words('flying', 9))
    bystander.wait_until(
        lambda: 'flying' in seen and seen['flying'].level == DiagnosticStatus.WARN
    )
    bystander.wait_until(lambda: bystander.figure('at_desk', 'states') > '')
    assert seen['at_desk'].level == DiagnosticStatus.OK
    assert 'it has no publisher' in group.last_words('flying', 9)
    assert group.last_words('at_desk', 9) == ''


def test_unknown_figures_stay_unknown_in_the_message() -> None:
    message = to_system_state(SystemState(cpu=(50.0, math.nan)), 5)
    figures = (message.voltage, message.power, message.charge, message.gpu, message.temperature)
    assert all(math.isnan(value) for value in figures)
    assert message.cpu[0] == 50.0
    assert math.isnan(message.cpu[1])
    assert message.throttled is False
