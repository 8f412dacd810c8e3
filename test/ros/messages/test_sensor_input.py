"""From a message to a unit: when it was received, and how its trail begins."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

import pytest
from live_graph import is_gapless
from sensor_msgs.msg import PointCloud2

from mmedge_ros.pipeline.unit_intake import UnitIntake
from mmedge_ros.ros.messages.conversions import header
from mmedge_ros.ros.messages.sensor_input import received_unit

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
