"""The radar node on pseudo-terminals: whatever the cable does, it says so and comes back."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from diagnostic_msgs.msg import DiagnosticStatus
from live_graph import Bystander
from sensor_msgs.msg import PointCloud2

from mmedge_ros import msg
from mmedge_ros.core.data_types import RADAR
from mmedge_ros.ros.graph.options import GraphOptions
from mmedge_ros.ros.graph.perception_graph import perception_graph
from mmedge_ros.ros.graph.process_group import ProcessGroup
from mmedge_ros.ros.messages import names, qos
from mmedge_ros.ros.messages.conversions import from_time
from mmedge_ros.sensing.radar.point_cloud import decode_points
from mmedge_ros.sensing.simulated_board.board import BOOT_NOISE, SimulatedBoard
from mmedge_ros.sensing.simulated_board.frames import WalkingPerson


class Flight:
    """A radar graph in processes of its own, on a board that the test holds in its hands."""

    def __init__(self, board: SimulatedBoard, bystander: Bystander) -> None:
        self.board = board
        self.bystander = bystander
        self.scans: list[tuple[PointCloud2, int]] = []
        bystander.node.create_subscription(
            PointCloud2,
            names.RADAR_POINTS,
            lambda m: self.scans.append((m, time.time_ns())),
            qos.SENSOR,
        )
        self.configurations = bystander.node.create_publisher(
            msg.Configuration, names.CONFIGURATION, qos.LATCHED
        )

    def parameters(self, **others: object) -> dict[str, object]:
        ports = {
            'command_port': str(self.board.command_path),
            'data_port': str(self.board.data_path),
        }
        return {**ports, 'answer_time': 0.3, **others}

    def wait_for_scans(self, count: int) -> None:
        wanted = len(self.scans) + count
        self.bystander.wait_until(lambda: len(self.scans) >= wanted)

    def seconds_until_told(self, condition: Callable[[Any], bool], since_ns: int) -> float:
        """Wait until the radar says so, and return how long after an instant it did."""

        def told() -> float | None:
            return self.bystander.seconds_until_told('radar', condition, since_ns)

        self.bystander.wait_until(lambda: told() is not None)
        seconds = told()
        assert seconds is not None
        return seconds

    def seconds_until_scan(self, since_ns: int) -> float:
        """Wait for a scan that was measured after an instant, and return how long after."""

        def later() -> list[int]:
            stamps = (from_time(cloud.header.stamp) for cloud, _ in self.scans)
            return [stamp for stamp in stamps if stamp > since_ns]

        return (min(self.bystander.wait_until(later)) - since_ns) / 1e9

    def tells(self, words: str) -> bool:
        """Whether the radar's diagnostics hold these words now."""
        status = self.bystander.diagnostics.get('radar')
        return status is not None and words in status.message

    def is_well(self) -> bool:
        status = self.bystander.diagnostics.get('radar')
        return status is not None and status.level == DiagnosticStatus.OK


@pytest.fixture(scope='module')
def flight(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Flight]:
    folder = tmp_path_factory.mktemp('flight')
    with SimulatedBoard(WalkingPerson(), folder / 'ports') as board, Bystander('pilot') as pilot:
        board.unplug()
        board.plug_in(BOOT_NOISE)
        found = Flight(board, pilot)
        options = GraphOptions(
            modalities=(RADAR,), visualizer=False, radar_driver=found.parameters()
        )
        with ProcessGroup(perception_graph(options), folder / 'logs') as group:
            pilot.group = group
            found.wait_for_scans(5)
            pilot.wait_for_units(RADAR, 1)
            pilot.wait_for_decisions(1)
            yield found
            assert sorted(group.pids) == ['fusion', 'radar', 'radar_encoder']


def test_scans_are_clouds_in_the_robots_axes_stamped_when_they_were_measured(
    flight: Flight,
) -> None:
    flight.wait_for_scans(3)
    cloud, _ = flight.scans[-1]
    assert cloud.header.frame_id == 'radar_link'
    assert [f.name for f in cloud.fields] == ['x', 'y', 'z', 'velocity', 'snr', 'noise']
    # This process may have been late to some of them.
    ages = [(got_ns - from_time(scan.header.stamp)) / 1e9 for scan, got_ns in flight.scans]
    assert 0.005 < min(ages) < 0.5
    points = decode_points(cloud)
    assert len(points) == 11
    assert (points[:, 0] > 2.0).all()  # everything simulated lies ahead
    assert (points[:, 4] > 10.0).all()
    flight.bystander.wait_until(flight.is_well)
    assert flight.bystander.figure('radar', 'board') == 'SDK 3.6.0.0 on xWR68xx'


def test_a_board_that_lost_its_power_is_started_again(flight: Flight) -> None:
    reset_ns = time.time_ns()
    flight.board.reset()
    told = flight.seconds_until_told(lambda s: 'fallen silent' in s.message, reset_ns)
    assert flight.seconds_until_scan(reset_ns + round(told * 1e9)) < 2.0
    flight.bystander.wait_until(flight.is_well)
