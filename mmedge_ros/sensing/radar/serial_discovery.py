"""Finds the two serial ports of a radar board by their USB ids."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple, Protocol

from mmedge_ros.sensing import SensingError

# Bridges on TI's boards, with the USB interfaces of command and data port: the debug probe
# XDS110 (BOOST boards), and Silicon Labs' CP2105 (ISK and AOP boards).
_BRIDGES = {(0x0451, 0xBEF3): (0, 3), (0x10C4, 0xEA70): (0, 1)}
_INTERFACE = re.compile(r'\.(\d+)$')


class ListedPort(Protocol):
    """What pyserial tells of a port."""

    device: str
    vid: int | None
    pid: int | None
    serial_number: str | None
    location: str | None


class RadarPorts(NamedTuple):
    """Paths of a board's two ports."""

    command: str
    data: str


def find_radar_ports(listed: Iterable[ListedPort], serial_number: str = '') -> RadarPorts:
    """Return the ports of the one board that is plugged in.

    :param serial_number: of the board's USB bridge, where there are several
    :raises SensingError: if there is no board or more than one, naming what there is
    """
    listed = sorted(listed, key=lambda port: port.device)
    boards: dict[str, dict[int, str]] = {}
    for port in listed:
        if (port.vid, port.pid) in _BRIDGES:
            interface = _INTERFACE.search(port.location or '')
            number = int(interface.group(1)) if interface else -1
            boards.setdefault(port.serial_number or '', {})[number] = port.device
    if serial_number:
        boards = {name: ports for name, ports in boards.items() if name == serial_number}
    complete = [
        RadarPorts(ports[command], ports[data])
        for ports in boards.values()
        for command, data in _BRIDGES.values()
        if command in ports and data in ports
    ]
    if len(complete) == 1:
        return complete[0]
    if complete:
        names = ', '.join(sorted(boards))
        raise SensingError(
            f'{len(complete)} radar boards are plugged in (serial numbers {names}); '
            'choose one with serial_number, or name command_port and data_port'
        )
    seen = ', '.join(port.device for port in listed) or 'none'
    wanted = f' with serial number {serial_number!r}' if serial_number else ''
    raise SensingError(
        f'no radar board{wanted} among the serial ports ({seen}); plug it in, or name '
        'command_port and data_port'
    )
