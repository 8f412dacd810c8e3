"""Who tells that clocks are limited, and for how long it counts."""

from __future__ import annotations

from pathlib import Path

import pytest
from machine_trees import laptop, orin_nano, write_files
from virtual_clock import VirtualClock

from mmedge_ros.core.data_types import NS_PER_S
from mmedge_ros.monitoring import MonitoringError
from mmedge_ros.monitoring.system_files import SystemFiles
from mmedge_ros.monitoring.temperature import Throttling


def test_a_new_event_of_overcurrent_counts_for_two_seconds(tmp_path: Path) -> None:
    clock = VirtualClock(NS_PER_S)
    probe = Throttling(SystemFiles(orin_nano(tmp_path)), clock)
    assert probe.read().state.throttled is False  # events before the start are history
    write_files(tmp_path, {'sys/class/hwmon/hwmon2/oc3_event_cnt': '1'})
    assert probe.read().state.throttled is True
    clock.advance_to(2 * NS_PER_S)
    assert probe.read().state.throttled is True
    clock.advance_to(4 * NS_PER_S)
    assert probe.read().state.throttled is False


def test_a_cooling_device_of_the_processor_limits_but_a_fan_does_not(tmp_path: Path) -> None:
    probe = Throttling(SystemFiles(laptop(tmp_path)), VirtualClock())
    device = 'sys/class/thermal/cooling_device'
    write_files(tmp_path, {f'{device}5/type': 'Fan', f'{device}5/cur_state': '1'})
    assert probe.read().state.throttled is False
    write_files(tmp_path, {f'{device}0/cur_state': '2'})
    assert probe.read().state.throttled is True


@pytest.mark.parametrize(
    ('bits', 'expected'), [('0', False), ('50005', True), ('50000', False), ('8', True)]
)
def test_a_raspberry_pi_tells_what_is_and_what_was(
    bits: str, expected: bool, tmp_path: Path
) -> None:
    path = 'sys/devices/platform/soc/soc:firmware/get_throttled'
    probe = Throttling(SystemFiles(write_files(tmp_path, {path: bits})), VirtualClock())
    assert probe.read().state.throttled is expected


def test_where_nothing_tells_it_is_unknown(tmp_path: Path) -> None:
    with pytest.raises(MonitoringError, match='reports throttling'):
        Throttling(SystemFiles(tmp_path), VirtualClock()).read()
