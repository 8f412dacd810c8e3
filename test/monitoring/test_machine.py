"""Whole machines, by the files that their kernels show."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import pytest
from machine_trees import bare_machine, laptop, orin_nano, proc_stat, write_files, xavier_nx
from virtual_clock import VirtualClock

from mmedge_ros.monitoring.load import GenericCores
from mmedge_ros.monitoring.machine import machine_description, machine_probes
from mmedge_ros.monitoring.system_files import SystemFiles
from mmedge_ros.monitoring.system_monitor import checked_reading
from mmedge_ros.monitoring.system_state import SystemState, combined

approx = pytest.approx


class Machine:
    """Reads all probes of a machine one after the other, in this thread."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.clock = VirtualClock(1)
        self.probes = machine_probes(SystemFiles(root), self.clock, nvml=False)

    def read(self, times: int = 1) -> SystemState:
        """Return the last of so many readings; what vanishes is looked for after a few."""
        for _ in range(times):
            self.readings = {probe.name: checked_reading(probe) for probe in self.probes}
        return combined(reading.state for reading in self.readings.values())

    def problem(self, name: str) -> str:
        return self.readings[name].problem


def test_an_orin_nano_tells_everything_but_its_battery(tmp_path: Path) -> None:
    machine = Machine(orin_nano(tmp_path))
    machine.read()
    write_files(
        tmp_path, {'proc/stat': proc_stat({n: (1000 + 10 * n, 5100 - 10 * n) for n in range(6)})}
    )
    state = machine.read()
    assert state.cpu == approx((0.0, 10.0, 20.0, 30.0, 40.0, 50.0))
    assert state.memory == approx(25.0)
    assert state.gpu == approx(43.7)
    assert state.gpu_clock == 624.75e6
    assert state.cpu_clock == (1510.4e6,) * 6
    assert state.temperature == approx(48.531)
    assert state.module_power == approx(7.5)
    assert state.throttled is False
    assert math.isnan(state.voltage)  # the module's rail is not the flight battery
    assert math.isnan(state.charge)
    assert machine.readings['INA3221'].details['VDD_SOC (W)'] == approx(1.5)
    assert 'cv0-thermal (C)' not in machine.readings['thermal zones'].details


def test_a_xavier_nx_is_read_by_its_older_driver_and_its_constant_zone_is_left_out(
    tmp_path: Path,
) -> None:
    state = Machine(xavier_nx(tmp_path)).read()
    assert state.module_power == approx(5.542)
    assert state.gpu == approx(100.0)
    assert state.temperature == approx(40.0)
    assert state.throttled is True


def test_a_laptop_tells_its_hottest_core_and_no_module_power(tmp_path: Path) -> None:
    state = Machine(laptop(tmp_path)).read()
    assert state.temperature == approx(71.0)
    assert state.gpu == approx(37.0)
    assert state.memory == approx(75.0)
    assert state.throttled is False
    assert math.isnan(state.module_power)


def test_a_bare_machine_knows_its_load_and_memory_and_says_what_it_lacks(tmp_path: Path) -> None:
    machine = Machine(bare_machine(tmp_path))
    machine.read()
    write_files(tmp_path, {'proc/stat': proc_stat({0: (1030, 5070), 1: (1100, 5000)})})
    state = machine.read()
    assert state.cpu == approx((30.0, 100.0))
    assert state.memory == approx(75.0)
    unknown = (state.gpu, state.temperature, state.module_power, state.gpu_clock)
    assert all(math.isnan(value) for value in unknown)
    assert state.throttled is None
    assert state.cpu_clock == ()
    assert machine.problem('thermal zones') == (
        f'no temperature below {tmp_path}/sys/class/thermal'
    )


def test_a_machine_without_proc_is_read_through_psutil(tmp_path: Path) -> None:
    kinds = [type(probe) for probe in machine_probes(SystemFiles(tmp_path), VirtualClock())]
    assert kinds[0] is GenericCores


@pytest.mark.parametrize('build', [orin_nano, xavier_nx, laptop, bare_machine])
def test_a_machine_whose_files_all_vanish_is_unknown_not_idle(
    build: Callable[[Path], Path], tmp_path: Path
) -> None:
    machine = Machine(build(tmp_path))
    machine.read(2)
    (tmp_path / 'proc').rename(tmp_path / 'gone')
    if (tmp_path / 'sys').exists():
        (tmp_path / 'sys').rename(tmp_path / 'gone_too')
    state = machine.read(2)
    for value in (state.mean_cpu, state.memory, state.gpu, state.temperature, state.module_power):
        assert math.isnan(value)
    assert state.throttled is None
    assert all(reading.problem for reading in machine.readings.values())


@pytest.mark.parametrize('content', ['', 'off', 'nan', 'inf', '-99999999', '\x00\xff', '9' * 400])
@pytest.mark.parametrize('build', [orin_nano, xavier_nx, laptop, bare_machine])
def test_files_full_of_nonsense_are_unknown(
    build: Callable[[Path], Path], content: str, tmp_path: Path
) -> None:
    build(tmp_path)
    for path in tmp_path.rglob('*'):
        kept = path.name in ('name', 'type') or 'label' in path.name or 'rail_name' in path.name
        # Without /proc/stat it would be a machine without Linux.
        if path.is_file() and not kept and path.name != 'stat':
            path.write_text(content)
    state = Machine(tmp_path).read(2)
    assert math.isnan(state.memory)
    assert math.isnan(state.gpu)
    assert math.isnan(state.temperature)
    assert state.cpu_clock == ()


def test_a_directory_in_place_of_a_file_is_unknown(tmp_path: Path) -> None:
    orin_nano(tmp_path)
    load = tmp_path / 'sys/class/devfreq/17000000.gpu/device/load'
    load.unlink()
    load.mkdir()
    (tmp_path / 'sys/devices/platform/bus@0/17000000.gpu/load').unlink()
    state = Machine(tmp_path).read()
    assert math.isnan(state.gpu)
    assert state.gpu_clock == 624.75e6


def test_a_file_that_may_not_be_read_is_unknown(tmp_path: Path) -> None:
    orin_nano(tmp_path)
    zone = tmp_path / 'sys/class/thermal/thermal_zone0/temp'
    # A link to itself cannot be opened by anybody, not even by root.
    zone.unlink()
    zone.symlink_to(zone)
    machine = Machine(tmp_path)
    assert machine.read().temperature == approx(48.531)
    assert 'cpu-thermal (C)' not in machine.readings['thermal zones'].details


def test_rails_without_labels_are_shown_but_not_added_up(tmp_path: Path) -> None:
    orin_nano(tmp_path)
    for path in (tmp_path / 'sys/class/hwmon/hwmon1').glob('*_label'):
        path.unlink()
    machine = Machine(tmp_path)
    assert math.isnan(machine.read().module_power)
    assert machine.readings['INA3221'].details['hwmon1 channel 1 (W)'] == approx(7.5)


def test_zones_without_a_type_count_by_their_number(tmp_path: Path) -> None:
    xavier_nx(tmp_path)
    (tmp_path / 'sys/class/thermal/thermal_zone0/type').unlink()
    machine = Machine(tmp_path)
    assert machine.read().temperature == approx(40.0)
    assert machine.readings['thermal zones'].details['thermal_zone0 (C)'] == approx(40.0)


def test_a_driver_that_comes_back_under_another_number_is_found(tmp_path: Path) -> None:
    orin_nano(tmp_path)
    machine = Machine(tmp_path)
    machine.read()
    hwmon = tmp_path / 'sys/class/hwmon'
    (hwmon / 'hwmon1').rename(hwmon / 'hwmon9')
    assert math.isnan(machine.read().module_power)
    assert machine.read(5).module_power == approx(7.5)


def test_the_parts_of_an_agx_orin_make_up_the_module(tmp_path: Path) -> None:
    chip = 'sys/class/hwmon/hwmon4'
    rails = {1: ('VDD_GPU_SOC', 800), 2: ('VDD_CPU_CV', 500), 3: ('VIN_SYS_5V0', 600)}
    bare_machine(tmp_path)
    for n, (name, milliamperes) in rails.items():
        write_files(
            tmp_path,
            {
                f'{chip}/name': 'ina3221',
                f'{chip}/in{n}_label': name,
                f'{chip}/in{n}_input': '10000',
                f'{chip}/curr{n}_input': str(milliamperes),
            },
        )
    machine = Machine(tmp_path)
    assert machine.read().module_power == approx(19.0)
    (tmp_path / f'{chip}/curr2_input').unlink()
    assert math.isnan(machine.read().module_power)


def test_processor_and_board_are_named(tmp_path: Path) -> None:
    root = write_files(
        tmp_path,
        {
            'proc/cpuinfo': 'processor : 0\nmodel name\t: Some CPU @ 2 GHz\nflags : x\n',
            'proc/device-tree/model': 'Some Board\0',
        },
    )
    told = machine_description(SystemFiles(root))
    assert (told['processor'], told['model']) == ('Some CPU @ 2 GHz', 'Some Board')


def test_what_is_not_known_is_left_empty(tmp_path: Path) -> None:
    told = machine_description(SystemFiles(orin_nano(tmp_path)))
    assert told['processor'] != ''
    assert isinstance(told['cores'], int)
