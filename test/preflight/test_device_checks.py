"""Cameras and radar boards as the kernel shows them, with rights and without."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from machine_trees import write_files

from mmedge_ros.monitoring.system_files import SystemFiles
from mmedge_ros.preflight.device_checks import Rights, check_devices, rights_of
from mmedge_ros.preflight.finding import Finding, State

BUS = 'sys/devices/pci0/usb1'


def plug(root: Path, kind: str, name: str, usb: str, interface: int, **values: str) -> None:
    """Plug a device in: its node in /dev, its entry in /sys/class, the USB device behind it."""
    folder = root / BUS / usb / f'{usb}:1.{interface}'
    entry = folder / kind / name
    (entry).mkdir(parents=True, exist_ok=True)
    (entry / 'device').symlink_to(folder)
    write_files(folder, {'bInterfaceNumber': f'{interface:02x}'})
    write_files(root / BUS / usb, {'idVendor': '0451', 'idProduct': 'bef3', **values})
    listed = root / 'sys/class' / kind / name
    listed.parent.mkdir(parents=True, exist_ok=True)
    listed.symlink_to(entry)
    write_files(root, {f'dev/{name}': ''})


def plug_board(root: Path) -> None:
    """Plug in an IWR1443BOOST."""
    plug(root, 'tty', 'ttyACM0', '1-2', 0, serial='R1')
    plug(root, 'tty', 'ttyACM1', '1-2', 3, serial='R1')


def plug_realsense(root: Path, speed: str) -> None:
    plug(root, 'video4linux', 'video0', '2-1', 3, idVendor='8086', idProduct='0b3a', speed=speed)
    write_files(root / 'sys/class/video4linux/video0', {'name': 'D435I', 'index': '0'})


ALL_RIGHTS = Rights(usable=True)


def examined(root: Path, rights: Rights = ALL_RIGHTS) -> dict[str, Finding]:
    return {f.subject: f for f in check_devices(SystemFiles(root), lambda _: rights)}


def test_a_machine_without_sensors_gets_notes_and_no_more(tmp_path: Path) -> None:
    found = examined(tmp_path)
    assert {s: f.state for s, f in found.items()} == {'camera': State.NOTE, 'radar': State.NOTE}


def test_a_board_is_found_by_its_ids_with_both_ports(tmp_path: Path) -> None:
    plug_board(tmp_path)
    plug(tmp_path, 'tty', 'ttyUSB0', '1-3', 0, idVendor='0403', idProduct='6001')  # a GPS
    found = examined(tmp_path)
    assert found['radar'].state is State.OK
    assert found['radar'].words == 'commands on /dev/ttyACM0, data on /dev/ttyACM1'
    assert found['udev rules'].state is State.NOTE


def test_half_a_board_and_two_boards_are_noted(tmp_path: Path) -> None:
    plug(tmp_path, 'tty', 'ttyACM0', '1-2', 0, serial='R1')
    assert (
        'no radar board' in check_devices(SystemFiles(tmp_path), lambda _: Rights(True))[1].words
    )
    plug(tmp_path, 'tty', 'ttyACM1', '1-2', 3, serial='R1')
    plug(tmp_path, 'tty', 'ttyACM2', '1-4', 0, serial='R2')
    plug(tmp_path, 'tty', 'ttyACM3', '1-4', 3, serial='R2')
    findings = check_devices(SystemFiles(tmp_path), lambda _: ALL_RIGHTS)
    assert '2 radar boards' in findings[1].words


@pytest.mark.parametrize(
    ('rights', 'remedy'),
    [
        (Rights(usable=False), 'usermod -aG dialout'),
        (Rights(usable=False, group='plugdev'), 'usermod -aG plugdev'),
        (Rights(usable=False, group='dialout', entered=True), 'log in again'),
    ],
)
def test_missing_rights_are_wrong_and_the_group_is_named(
    tmp_path: Path, rights: Rights, remedy: str
) -> None:
    plug_board(tmp_path)
    found = examined(tmp_path, rights)['radar']
    assert found.state is State.WRONG
    assert remedy in found.remedy
    assert ('usermod' in found.remedy) != rights.entered


def test_a_node_that_a_container_was_not_given_is_wrong(tmp_path: Path) -> None:
    plug_board(tmp_path)
    (tmp_path / 'dev/ttyACM0').unlink()
    found = check_devices(SystemFiles(tmp_path), rights_of)
    radar = next(f for f in found if f.subject == 'radar')
    assert radar.state is State.WRONG
    assert '--device /dev/ttyACM0' in radar.remedy


@pytest.mark.parametrize(('speed', 'state'), [('5000', State.OK), ('480', State.NOTE)])
def test_a_realsense_on_usb_2_is_noted(tmp_path: Path, speed: str, state: State) -> None:
    plug_realsense(tmp_path, speed)
    assert examined(tmp_path)['camera'].state is state
    assert examined(tmp_path)['camera'].words.startswith('/dev/video0 D435I')


def test_the_node_with_the_metadata_of_a_camera_is_left_out(tmp_path: Path) -> None:
    plug_realsense(tmp_path, '5000')
    plug(tmp_path, 'video4linux', 'video1', '2-1', 3)
    write_files(tmp_path / 'sys/class/video4linux/video1', {'name': 'D435I', 'index': '1'})
    findings = check_devices(SystemFiles(tmp_path), lambda _: ALL_RIGHTS)
    assert len([f for f in findings if f.subject == 'camera']) == 1


def test_rules_and_the_modem_manager_are_looked_for(tmp_path: Path) -> None:
    plug_board(tmp_path)
    write_files(tmp_path, {'proc/17/comm': 'ModemManager'})
    assert 'ModemManager' in examined(tmp_path)['udev rules'].words
    write_files(tmp_path, {'etc/udev/rules.d/70-mmedge.rules': '# ours'})
    assert examined(tmp_path)['udev rules'].state is State.OK


def test_junk_loops_and_folders_in_sysfs_break_nothing(tmp_path: Path) -> None:
    plug_board(tmp_path)
    plug_realsense(tmp_path, 'fast')
    (tmp_path / BUS / '1-2/idVendor').write_bytes(b'\xff\x00\x1b[31m')
    (tmp_path / BUS / '2-1/idProduct').unlink()
    (tmp_path / BUS / '2-1/idProduct').mkdir()
    loop = tmp_path / 'sys/class/tty/ttyUSB7'
    loop.mkdir(parents=True)
    (loop / 'device').symlink_to('device')
    found = examined(tmp_path)
    assert found['radar'].words == 'no radar board among the serial ports'
    assert found['camera'].state is State.OK


def test_no_device_is_opened(tmp_path: Path) -> None:
    plug_board(tmp_path)
    for name in ('ttyACM0', 'ttyACM1'):
        (tmp_path / 'dev' / name).unlink()
        os.mkfifo(tmp_path / 'dev' / name)  # to open it for reading would take for ever
    assert examined(tmp_path)['radar'].state is State.OK
    assert rights_of(tmp_path / 'dev/ttyACM0').usable
