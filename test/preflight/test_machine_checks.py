"""Machines of all kinds before a flight, by the files of their kernels."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from machine_trees import bare_machine, laptop, orin_nano, write_files, xavier_nx
from virtual_clock import VirtualClock

from mmedge_ros.monitoring.system_files import SystemFiles
from mmedge_ros.preflight.finding import Finding, State
from mmedge_ros.preflight.machine_checks import check_machine, disk_usage

GOVERNOR = 'sys/devices/system/cpu/cpu0/cpufreq/scaling_governor'
DRIVER = 'sys/devices/system/cpu/cpu0/cpufreq/scaling_driver'
PLENTY = 50e9


def examined(
    root: Path, shared: tuple[float, float] = (PLENTY, PLENTY), free: float = PLENTY
) -> dict[str, Finding]:
    def usage(folder: str) -> tuple[float, float]:
        return shared if folder.endswith('dev/shm') else (PLENTY, free)

    findings = check_machine(SystemFiles(root), VirtualClock(1), 'out', usage)
    return {finding.subject: finding for finding in findings}


def states(found: dict[str, Finding]) -> set[State]:
    return {finding.state for finding in found.values()}


@pytest.mark.parametrize('machine', [orin_nano, laptop])
def test_a_good_machine_has_nothing_to_note(tmp_path: Path, machine) -> None:
    found = examined(machine(tmp_path))
    assert states(found) == {State.OK}
    assert {'computer', 'memory', 'shared memory', 'disk', 'temperature'} <= found.keys()


def test_what_a_virtual_machine_lacks_is_no_fault(tmp_path: Path) -> None:
    found = examined(bare_machine(tmp_path))
    assert found.keys() == {'computer', 'memory', 'shared memory', 'disk'}
    assert found['memory'].state is State.NOTE  # 1 GB


def test_a_machine_that_throttles_is_noted(tmp_path: Path) -> None:
    found = examined(xavier_nx(tmp_path))
    assert found['throttling'].state is State.NOTE
    assert 'supply' in found['throttling'].remedy


@pytest.mark.parametrize(
    ('celsius', 'state'), [(60, State.OK), (85, State.NOTE), (95, State.WRONG)]
)
def test_heat_is_judged_by_the_limits_of_the_monitor(
    tmp_path: Path, celsius: int, state: State
) -> None:
    zone = 'sys/class/thermal/thermal_zone0'
    write_files(tmp_path, {f'{zone}/type': 'cpu', f'{zone}/temp': f'{celsius}000'})
    assert examined(tmp_path)['temperature'].state is state


@pytest.mark.parametrize(
    ('governor', 'driver', 'state'),
    [
        ('powersave', 'cpufreq-dt', State.NOTE),
        ('powersave', 'intel_pstate', State.OK),
        ('schedutil', 'cpufreq-dt', State.OK),
        ('', '', State.OK),
    ],
)
def test_a_governor_that_keeps_the_clock_low_is_noted(
    tmp_path: Path, governor: str, driver: str, state: State
) -> None:
    write_files(tmp_path, {GOVERNOR: governor, DRIVER: driver})
    assert examined(tmp_path)['governor'].state is state


@pytest.mark.parametrize(
    ('shared', 'state'),
    [((67e6, 67e6), State.WRONG), ((900e6, 1e6), State.WRONG), ((900e6, 500e6), State.OK)],
    ids=['as in Docker', 'full', 'enough'],
)
def test_shared_memory_must_hold_the_pictures(
    tmp_path: Path, shared: tuple[float, float], state: State
) -> None:
    found = examined(tmp_path, shared)['shared memory']
    assert found.state is state
    assert ('--shm-size' in found.remedy) == (state is State.WRONG)


@pytest.mark.parametrize(
    ('free', 'state'), [(1e6, State.WRONG), (300e6, State.NOTE), (9e9, State.OK)]
)
def test_the_disk_must_hold_logs_and_should_hold_recordings(
    tmp_path: Path, free: float, state: State
) -> None:
    assert examined(tmp_path, free=free)['disk'].state is state


def test_memory_in_use_by_others_is_wrong_once_the_graph_does_not_fit(tmp_path: Path) -> None:
    write_files(tmp_path, {'proc/meminfo': 'MemAvailable:   200000 kB'})
    assert examined(tmp_path)['memory'].state is State.WRONG


def test_a_folder_that_is_not_there_is_noted(tmp_path: Path) -> None:
    found = check_machine(
        SystemFiles(tmp_path), VirtualClock(1), str(tmp_path / 'gone'), disk_usage
    )
    assert [f.state for f in found if f.subject == 'disk'] == [State.NOTE]
    assert not [f for f in found if f.subject == 'shared memory']  # there is no dev/shm


@settings(max_examples=15)
@given(junk=st.binary(max_size=60))
def test_junk_in_the_files_of_the_kernel_breaks_nothing(
    tmp_path_factory: pytest.TempPathFactory, junk: bytes
) -> None:
    root = laptop(tmp_path_factory.mktemp('junk'))
    write_files(root, {GOVERNOR: '', DRIVER: ''})
    for path in root.rglob('*'):
        if path.is_file():
            path.write_bytes(junk)
    assert 'computer' in examined(root)


def test_folders_and_dangling_links_in_their_place_break_nothing(tmp_path: Path) -> None:
    (tmp_path / GOVERNOR).mkdir(parents=True)
    (tmp_path / 'proc/meminfo').mkdir(parents=True)
    (tmp_path / 'sys/class/thermal').mkdir(parents=True)
    (tmp_path / 'sys/class/thermal/thermal_zone0').symlink_to('nowhere')
    assert examined(tmp_path)['governor'].words == 'unreadable on 1 cores'
