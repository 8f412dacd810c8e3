"""Loads from counters that start over, stop or are damaged."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from machine_trees import proc_stat, write_files

from mmedge_ros.monitoring import MonitoringError
from mmedge_ros.monitoring.load import CoreLoads, GenericCores, core_counters
from mmedge_ros.monitoring.system_files import SystemFiles


def test_the_first_reading_of_a_core_tells_nothing(tmp_path: Path) -> None:
    write_files(tmp_path, {'proc/stat': proc_stat({0: (100, 100)})})
    (load,) = CoreLoads(SystemFiles(tmp_path)).read().state.cpu
    assert math.isnan(load)


def test_a_core_that_goes_off_keeps_its_place(tmp_path: Path) -> None:
    probe = CoreLoads(SystemFiles(tmp_path))
    for step in range(1, 3):
        ticks = dict.fromkeys(range(3), (100 * step, 100 * step))
        write_files(tmp_path, {'proc/stat': proc_stat(ticks)})
        loads = probe.read().state.cpu
    assert loads == pytest.approx((50.0, 50.0, 50.0))
    write_files(tmp_path, {'proc/stat': proc_stat({0: (300, 300)})})
    loads = probe.read().state.cpu
    assert loads[0] == pytest.approx(50.0)
    assert [math.isnan(load) for load in loads] == [False, True, True]


def test_counters_that_start_over_are_unknown_for_one_reading(tmp_path: Path) -> None:
    probe = CoreLoads(SystemFiles(tmp_path))
    seen = []
    for ticks in ((500, 500), (600, 500), (5, 5), (10, 20)):
        write_files(tmp_path, {'proc/stat': proc_stat({0: ticks})})
        seen.append(probe.read().state.cpu[0])
    assert seen[1] == pytest.approx(100.0)
    assert math.isnan(seen[2])
    assert seen[3] == pytest.approx(25.0)


def test_two_readings_within_a_tick_give_the_load_before(tmp_path: Path) -> None:
    probe = CoreLoads(SystemFiles(tmp_path))
    for ticks in ((100, 100), (175, 125)):
        write_files(tmp_path, {'proc/stat': proc_stat({0: ticks})})
        probe.read()
    assert probe.read().state.cpu == pytest.approx((75.0,))


def test_a_file_without_cores_is_an_error_that_names_it(tmp_path: Path) -> None:
    write_files(tmp_path, {'proc/stat': 'intr 1 2 3'})
    with pytest.raises(MonitoringError, match='proc/stat says nothing'):
        CoreLoads(SystemFiles(tmp_path)).read()


def test_a_core_with_an_impossible_number_makes_no_endless_list() -> None:
    assert core_counters('cpu 1 1 1 1\ncpu9999 1 1 1 1 1\ncpu1 4 0 0 6 0\n') == {1: (4.0, 10.0)}


@given(st.text(max_size=200))
def test_no_text_breaks_the_counters(text: str) -> None:
    for busy, total in core_counters(f'cpu0 {text}\ncpu1 {text}').values():
        assert 0.0 <= busy <= total


def test_this_machine_is_read_through_psutil() -> None:
    probe = GenericCores()
    assert all(math.isnan(load) for load in probe.read().state.cpu)
    assert all(0.0 <= load <= 100.0 for load in probe.read().state.cpu)
