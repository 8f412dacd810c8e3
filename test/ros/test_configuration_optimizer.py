"""The optimiser beside a real monitor, and in a graph whose capture and encoders obey it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from live_graph import Bystander
from machine_trees import orin_nano, write_files
from sensor_msgs.msg import BatteryState
from std_msgs.msg import String

from mmedge_ros import msg
from mmedge_ros.core.data_types import NS_PER_S
from mmedge_ros.ros.graph.description import NodeDescription
from mmedge_ros.ros.graph.options import GraphOptions
from mmedge_ros.ros.graph.perception_graph import perception_graph
from mmedge_ros.ros.graph.process_group import ProcessGroup
from mmedge_ros.ros.messages import names, qos
from mmedge_ros.ros.messages.conversions import from_time, to_time

HOT = {f'sys/class/thermal/thermal_zone{n}/temp': '95000' for n in range(5)}
COOL = dict.fromkeys(HOT, '45000')


class Cockpit:
    """Subscribes to configurations, and publishes the autopilot's battery."""

    def __init__(self, bystander: Bystander) -> None:
        self.bystander = bystander
        self.configurations: list[msg.Configuration] = []
        node = bystander.node
        node.create_subscription(
            msg.Configuration, names.CONFIGURATION, self.configurations.append, qos.LATCHED
        )
        self.powers: list[msg.PowerState] = []
        node.create_subscription(
            msg.PowerState, names.POWER_STATE, self.powers.append, qos.LATCHED
        )
        self._battery = node.create_publisher(BatteryState, names.BATTERY_STATE, qos.SENSOR)
        self._stamp_ns = 1
        self.volts, self.charge = 16.2, 0.9
        node.create_timer(0.1, self._publish)

    def wait_for_reason(self, words: str) -> msg.Configuration:
        """Wait for a configuration with these words in its reason."""
        return self._wait(lambda newest: words in newest.reason)

    def wait_for_burst(self) -> msg.Configuration:
        """Wait until the camera of a drone that saves all it can is awake."""
        return self._wait(
            lambda newest: 'power critical' in newest.reason and self.rate(newest) > 0.0
        )

    def wait_for_power(self, state: int) -> None:
        self.bystander.wait_until(lambda: self.powers and self.powers[-1].state == state)

    def wait_until_free(self) -> msg.Configuration:
        """Wait for a configuration that nothing caps."""
        return self._wait(lambda newest: self.rate(newest) == 30.0)

    @staticmethod
    def rate(configuration: msg.Configuration) -> float:
        rates = {part.modality: part.rate for part in configuration.modalities}
        return float(rates['camera'])

    def _wait(self, suits: object) -> msg.Configuration:
        assert callable(suits)
        self.bystander.wait_until(lambda: self.configurations and suits(self.configurations[-1]))
        return self.configurations[-1]

    def _publish(self) -> None:
        self._stamp_ns += 1
        message = BatteryState(voltage=self.volts, percentage=self.charge, current=-10.0)
        message.header.stamp = to_time(self._stamp_ns)
        self._battery.publish(message)


def watched(root: Path, detector: Path, state: str = names.SYSTEM_STATE) -> list[NodeDescription]:
    """A monitor, and an optimiser that subscribes to it."""
    options = GraphOptions(
        visualizer=False,
        detector=str(detector),
        monitor={'root': str(root), 'slow_period': 0.1, 'rate': 10.0},
        optimizer={'adaptation.power.standby': True},
        optimise=True,
        questions=True,
    )
    nodes = {node.name: node for node in perception_graph(options)}
    optimizer = nodes['configuration_optimizer']
    cut = [(names.SYSTEM_STATE, state)] if state != names.SYSTEM_STATE else []
    return [
        nodes['monitor'],
        nodes['questions'],
        NodeDescription(optimizer.name, optimizer.executable, optimizer.parameters, cut),
    ]


@pytest.fixture(scope='class')
def drone(
    tmp_path_factory: pytest.TempPathFactory, detector: Path
) -> Iterator[tuple[Cockpit, Path]]:
    """A monitor of an Orin Nano made of files, and an optimiser."""
    folder = tmp_path_factory.mktemp('optimizer')
    root = orin_nano(folder / 'root')
    write_files(root, COOL)
    with Bystander('cockpit') as bystander:
        cockpit = Cockpit(bystander)
        with ProcessGroup(watched(root, detector), folder / 'logs') as group:
            bystander.group = group
            cockpit.wait_until_free()
            yield cockpit, root


class TestReasons:
    """On one graph, because starting one takes its time."""

    def test_a_sagging_battery_is_a_reason_and_is_released(
        self, drone: tuple[Cockpit, Path]
    ) -> None:
        cockpit, _ = drone
        cockpit.volts = 13.7
        assert cockpit.rate(cockpit.wait_for_reason('voltage sag')) == 20.0
        cockpit.volts = 13.0
        cockpit.bystander.wait_until(lambda: cockpit.rate(cockpit.configurations[-1]) == 10.0)
        cockpit.volts = 16.2
        cockpit.wait_until_free()

    def test_a_question_wakes_a_camera_that_stands_by(self, drone: tuple[Cockpit, Path]) -> None:
        cockpit, _ = drone
        cockpit.charge = 0.1
        asks = cockpit.bystander.node.create_publisher(String, names.QUESTIONS, qos.RESULT)
        cockpit.bystander.wait_until(asks.get_subscription_count)

        def waited() -> float:
            """Seconds that the camera stood by."""
            rested = cockpit.wait_for_reason('stands by')
            asks.publish(String(data='how many people are there now?'))
            woken = cockpit.wait_for_burst()
            return (from_time(woken.effective_from) - from_time(rested.effective_from)) / NS_PER_S

        # The timer alone lets it stand by for 4.2 s.
        cockpit.bystander.wait_until(lambda: waited() < 3.0)
        cockpit.charge = 0.9
        cockpit.wait_until_free()

    def test_a_consumer_shortens_the_limit_until_its_lease_ends(
        self, drone: tuple[Cockpit, Path]
    ) -> None:
        cockpit, _ = drone
        node = cockpit.bystander.node
        output = node.create_publisher(msg.LatencyDemand, names.LATENCY_DEMAND, qos.RESULT)

        def announce(decode_time: float, lease: float) -> None:
            until = to_time(time.time_ns() + round(lease * NS_PER_S))
            output.publish(
                msg.LatencyDemand(
                    source='language model',
                    decode_time=decode_time,
                    total_limit=0.4,
                    valid_until=until,
                )
            )

        decoding = node.create_timer(0.2, lambda: announce(0.37, 2.0))
        shorter = cockpit.wait_for_reason('latency budget: language model leaves 30 ms')
        assert shorter.latency_limit == pytest.approx(0.03)
        nonsense = node.create_timer(0.2, lambda: announce(float('nan'), 3600.0))
        cockpit.bystander.wait_until(
            lambda: (
                'decode_time of nan'
                in cockpit.bystander.figure('configuration_optimizer', 'last one not used')
            )
        )
        assert cockpit.configurations[-1].latency_limit == pytest.approx(0.03)
        # The consumer dies; nonsense in its name does not keep its demand alive.
        node.destroy_timer(decoding)
        cockpit.bystander.wait_until(
            lambda: cockpit.configurations[-1].latency_limit == pytest.approx(0.05)
        )
        assert 'latency budget' not in cockpit.configurations[-1].reason
        node.destroy_timer(nonsense)
