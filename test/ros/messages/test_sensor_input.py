"""From a message to a unit: when it was received, and how its trail begins."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

import pytest
import rclpy
from live_graph import Bystander, is_gapless, wait_until
from rclpy.executors import SingleThreadedExecutor
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import CompressedImage, Image, PointCloud2

from mmedge_ros.pipeline.unit_intake import UnitIntake
from mmedge_ros.ros.messages.conversions import header, to_time
from mmedge_ros.ros.messages.sensor_input import input_topic, received_unit
from mmedge_ros.ros.ros_clock import RosClock

MS = 1_000_000
SECOND = 1000 * MS


@dataclass
class SteppedClock:
    """Stands for the node's clock."""

    offset_ns: int = 0
    simulated: bool = False
    read: list[int] = field(default_factory=list)

    def now_ns(self) -> int:
        self.read.append(time.time_ns() + self.offset_ns)
        return self.read[-1]


def unit_of(stamp_ns: int, clock: SteppedClock, **info: Any) -> Any:
    message = PointCloud2(header=header(stamp_ns, 'radar_link'))
    return received_unit('radar', 3, message, info, clock)  # type: ignore[arg-type]


def test_a_unit_is_available_when_the_middleware_received_it() -> None:
    now_ns, clock = time.time_ns(), SteppedClock()
    stamp_ns, sent_ns, received_ns = (now_ns - n * MS for n in (40, 10, 8))
    unit = unit_of(stamp_ns, clock, source_timestamp=sent_ns, received_timestamp=received_ns)
    assert (unit.modality, unit.sequence, unit.frame_id) == ('radar', 3, 'radar_link')
    assert unit.stamp_ns == stamp_ns
    assert abs(unit.available_ns - received_ns) < MS
    acquisition, transport = unit.trail
    assert (acquisition.stage, transport.stage) == ('acquisition', 'transport')
    assert abs(acquisition.end_ns - sent_ns) < MS
    assert (acquisition.begin_ns, transport.end_ns) == (stamp_ns, unit.available_ns)
    assert is_gapless(unit.trail)


@pytest.mark.parametrize(
    'info',
    [
        {},
        {'received_timestamp': None},
        {'received_timestamp': 0},
        {'received_timestamp': 2**63 - 1},
        {'received_timestamp': -5},
        {'received_timestamp': 'soon', 'source_timestamp': 1.5},
    ],
)
def test_middleware_times_that_cannot_be_true_are_not_believed(info: dict[str, Any]) -> None:
    clock = SteppedClock()
    unit = unit_of(time.time_ns() - 5 * MS, clock, **info)
    assert unit.available_ns == clock.read[0]
    assert is_gapless(unit.trail)


def test_in_simulated_time_instants_are_carried_over() -> None:
    an_hour = -3600 * SECOND
    clock = SteppedClock(an_hour, simulated=True)
    received_ns = time.time_ns() - 8 * MS
    unit = unit_of(received_ns + an_hour - 5 * MS, clock, received_timestamp=received_ns)
    assert abs(unit.available_ns - (received_ns + an_hour)) < MS


def test_a_clock_that_lags_behind_the_stamps_a_little_does_no_harm() -> None:
    clock = SteppedClock(-8 * MS, simulated=True)
    stamp_ns = time.time_ns()
    unit = unit_of(stamp_ns, clock, received_timestamp=stamp_ns)
    assert unit.available_ns == stamp_ns
    intake = UnitIntake('radar')
    intake.offer(unit)
    assert intake.implausible_stamps == 0


def test_a_stamp_far_ahead_of_simulated_time_is_not_followed() -> None:
    clock = SteppedClock(-3600 * SECOND, simulated=True)
    unit = unit_of(time.time_ns(), clock, received_timestamp=time.time_ns())
    assert unit.available_ns < time.time_ns() - 3000 * SECOND


def test_each_sensor_has_its_topic_and_type() -> None:
    assert input_topic('radar', 'raw') == ('radar/points', PointCloud2)
    assert input_topic('camera', 'raw') == ('camera/image', Image)
    assert input_topic('camera', 'compressed') == ('camera/image/compressed', CompressedImage)


def test_the_clock_of_a_node_follows_the_system_or_the_clock_topic(
    ros: None, bystander: Bystander
) -> None:
    real = rclpy.create_node('real')
    clock = RosClock(real)
    assert (clock.simulated, clock.longest_wait) == (False, 1.0)
    assert abs(clock.now_ns() - time.time_ns()) < SECOND
    assert 0 <= clock.monotonic_ns() - time.monotonic_ns() + SECOND < 2 * SECOND
    real.destroy_node()

    node = rclpy.create_node('simulated', cli_args=['--ros-args', '-p', 'use_sim_time:=true'])
    clock = RosClock(node)
    assert (clock.simulated, clock.now_ns()) == (True, 0)
    assert clock.longest_wait < 0.02
    executor = SingleThreadedExecutor()
    executor.add_node(node)
    ticks = bystander.node.create_publisher(Clock, '/clock', 10)
    wait_until(
        executor,
        lambda: clock.now_ns() == 7 * SECOND,
        meanwhile=lambda: ticks.publish(Clock(clock=to_time(7 * SECOND))),
    )
    node.destroy_node()
