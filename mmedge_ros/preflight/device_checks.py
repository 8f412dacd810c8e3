"""Cameras and radar boards on USB, by what the kernel says; no device is ever opened."""

from __future__ import annotations

import grp
import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from mmedge_ros.monitoring.system_files import SystemFiles
from mmedge_ros.preflight.finding import Finding, note, ok, wrong
from mmedge_ros.sensing import SensingError
from mmedge_ros.sensing.radar.serial_ports import RADAR_BRIDGES, find_radar_ports

_RULES = ('etc/udev/rules.d/70-mmedge.rules', 'usr/lib/udev/rules.d/70-mmedge.rules')
_INTEL = 0x8086
# Mbit/s from USB 3 on.
_USB_3 = 5000.0
_LONGEST_NAME = 60


class Rights(NamedTuple):
    """Whether this process may use a device, its group, and whether the user is entered there."""

    usable: bool
    group: str = ''
    entered: bool = False


def rights_of(path: Path) -> Rights:
    """Look up the rights of this process; of a file that is not there there are none."""
    group, entered = '', False
    with suppress(OSError, KeyError):
        group = path.group()
        entered = os.environ.get('USER', '') in grp.getgrnam(group).gr_mem
    return Rights(os.access(path, os.R_OK | os.W_OK), group, entered)


class UsbDevice(NamedTuple):
    """A device node and the USB device behind it, as pyserial lists ports.

    ``vid`` and ``pid`` are None where it is not on USB; ``speed`` is in Mbit/s, NaN if unknown.
    """

    device: str
    name: str
    vid: int | None = None
    pid: int | None = None
    serial_number: str = ''
    location: str = ''
    speed: float = 0.0


def check_devices(
    files: SystemFiles, rights: Callable[[Path], Rights] = rights_of
) -> list[Finding]:
    """Judge cameras, radar ports, the rights to use them, and the udev rules."""
    cameras = [
        device
        for entry in files.matching('sys/class/video4linux/video*')
        # The other nodes of a camera carry metadata.
        if files.text(f'{entry}/index') in ('0', '')
        for device in [usb_device(files, entry)]
    ]
    ports = [usb_device(files, entry) for entry in files.matching('sys/class/tty/tty[UA]*')]
    boards = [port for port in ports if (port.vid, port.pid) in RADAR_BRIDGES]
    return [
        *_cameras(files, cameras, rights),
        *_radar(files, boards, rights),
        *(_rules(files) if cameras or boards else ()),
    ]


def usb_device(files: SystemFiles, entry: str) -> UsbDevice:
    """Describe an entry of /sys/class; whatever cannot be read is left out."""
    node = f'/dev/{Path(entry).name}'
    name = files.text(f'{entry}/name')[:_LONGEST_NAME]
    interface = ''
    try:
        place = (files.root / entry / 'device').resolve()
        root = files.root.resolve()
        folders = [str(f.relative_to(root)) for f in (place, *place.parents) if root in f.parents]
    except (OSError, RuntimeError, ValueError):  # a loop of links
        folders = []
    for folder in folders:
        if not interface and files.text(f'{folder}/bInterfaceNumber'):
            interface = Path(folder).name
        vendor = _hexadecimal(files.text(f'{folder}/idVendor'))
        if vendor is not None:
            return UsbDevice(
                node,
                name or files.text(f'{folder}/product')[:_LONGEST_NAME],
                vendor,
                _hexadecimal(files.text(f'{folder}/idProduct')),
                files.text(f'{folder}/serial')[:_LONGEST_NAME],
                interface,
                files.number(f'{folder}/speed'),
            )
    return UsbDevice(node, name)


def _hexadecimal(text: str) -> int | None:
    try:
        return int(text, 16)
    except ValueError:
        return None


def _cameras(
    files: SystemFiles, cameras: list[UsbDevice], rights: Callable[[Path], Rights]
) -> Iterator[Finding]:
    if not cameras:
        remedy = 'plug it in, unless another driver or machine sends pictures'
        yield note('camera', 'no video device on this machine', remedy)
    for camera in cameras:
        words = f'{camera.device} {camera.name}'.rstrip()
        found = ok('camera', words)
        if camera.vid == _INTEL and camera.speed < _USB_3:
            remedy = 'use a USB 3 port and its short cable'
            found = note('camera', f'{words} on USB 2: only small formats', remedy)
        yield _barred(files, 'camera', words, camera, rights) or found


def _radar(
    files: SystemFiles, boards: list[UsbDevice], rights: Callable[[Path], Rights]
) -> Iterator[Finding]:
    if not boards:
        remedy = 'look at cable and power, unless another driver or machine sends the points'
        yield note('radar', 'no radar board among the serial ports', remedy)
        return
    try:
        ports = find_radar_ports(boards)
        words = f'commands on {ports.command}, data on {ports.data}'
    except SensingError as error:
        yield note('radar', str(error), 'name the ports, or one board, in the parameters')
        words = ', '.join(board.device for board in boards)
    barred = (_barred(files, 'radar', words, board, rights) for board in boards)
    yield next(filter(None, barred), ok('radar', words))


def _barred(
    files: SystemFiles,
    subject: str,
    words: str,
    device: UsbDevice,
    rights: Callable[[Path], Rights],
) -> Finding | None:
    """Say why a device cannot be used; None if it can."""
    path = files.root / device.device.lstrip('/')
    usable, group, entered = rights(path)
    if usable:
        return None
    if not os.path.lexists(path):
        remedy = f'in a container: pass it on, `docker run --device {device.device}`'
        return wrong(subject, f'{words}: the kernel knows it, but {path} is not there', remedy)
    group = group or ('video' if subject == 'camera' else 'dialout')
    remedy = f'`sudo usermod -aG {group} $USER`, then log in again'
    if entered:
        remedy = f'you are entered in the group {group}: log in again'
    return wrong(subject, f'{words}: permission denied for {device.device}', remedy)


def _rules(files: SystemFiles) -> Iterator[Finding]:
    if any(files.text(path) for path in _RULES):
        yield ok('udev rules', 'installed')
        return
    words = 'not installed: names of devices may change'
    if any(files.text(path) == 'ModemManager' for path in files.matching('proc/[0-9]*/comm')):
        words += ', and ModemManager writes to radar ports'
    yield note('udev rules', words, 'install config/udev/70-mmedge.rules, see docs/hardware.md')
