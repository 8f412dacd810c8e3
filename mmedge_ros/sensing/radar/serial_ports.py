"""Serial ports: the two of a radar board by their USB ids, and bytes in and out.

Every failure is one error that names the port.
"""

from __future__ import annotations

import errno
import re
import termios
from collections.abc import Iterable
from typing import NamedTuple, Protocol

import serial

from mmedge_ros.sensing import SensingError

# A port that vanishes surfaces as any of these, depending on where in a call it does.
_FAILURES = (OSError, TypeError, ValueError, termios.error)


class SerialLink(Protocol):
    """What the radar's driver needs of a port."""

    @property
    def name(self) -> str:
        """Path of the port, for sentences."""

    def read(self) -> bytes:
        """Return what has arrived, b'' if nothing comes within the port's patience."""

    def write(self, data: bytes) -> None:
        """Send all of it."""

    def close(self) -> None:
        """Give the port back; never fails."""


class SerialPort:
    """A port of this machine, for ourselves alone.

    :param patience: how long a read waits for the first byte, s
    :raises SensingError: if it is not there, not permitted or in use, and whenever it fails
    """

    def __init__(self, path: str, baud: int, patience: float = 0.05) -> None:
        self.name = path
        try:
            self._port = serial.Serial(
                path, baud, timeout=patience, write_timeout=1.0, exclusive=True
            )
        except _FAILURES as error:
            raise SensingError(f'{path} cannot be opened: {_remedy(error)}') from error

    def read(self) -> bytes:
        try:
            first: bytes = self._port.read(1)
            rest: bytes = self._port.read(self._port.in_waiting) if first else b''
        except _FAILURES as error:
            raise self._gone(error) from error
        return first + rest

    def write(self, data: bytes) -> None:
        try:
            self._port.write(data)
        except _FAILURES as error:
            raise self._gone(error) from error

    def close(self) -> None:
        try:
            self._port.close()
        except OSError:
            # It is gone already, which is all that closing is for.
            return

    def _gone(self, error: Exception) -> SensingError:
        return SensingError(f'{self.name} is gone ({_reason(error)}); is the cable plugged in?')


def _remedy(error: Exception) -> str:
    """Say what is wrong with a port, and what to do about it."""
    number = getattr(error, 'errno', None)
    text = str(error).lower()
    if number == errno.ENOENT:
        return 'there is no such port; is the board plugged in?'
    if number == errno.EACCES:
        return 'permission denied; add yourself to its group (dialout) and log in again'
    if number in (errno.EBUSY, errno.EAGAIN) or 'exclusively lock' in text:
        return 'another program uses it; end that one'
    return _reason(error)


def _reason(error: Exception) -> str:
    # The C library's words come last in a termios.error, which names them nothing.
    words = error.args[-1] if isinstance(error, termios.error) and error.args else error
    return getattr(error, 'strerror', None) or str(words)


# Bridges on TI's boards, with the USB interfaces of command and data port: the debug probe
# XDS110 (BOOST boards), and Silicon Labs' CP2105 (ISK and AOP boards).
RADAR_BRIDGES = {(0x0451, 0xBEF3): (0, 3), (0x10C4, 0xEA70): (0, 1)}
_INTERFACE = re.compile(r'\.(\d+)$')


class ListedPort(Protocol):
    """What is known of a port, by pyserial or by the files of the kernel."""

    @property
    def device(self) -> str: ...
    @property
    def vid(self) -> int | None: ...
    @property
    def pid(self) -> int | None: ...
    @property
    def serial_number(self) -> str | None: ...
    @property
    def location(self) -> str | None: ...


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
        if (port.vid, port.pid) in RADAR_BRIDGES:
            interface = _INTERFACE.search(port.location or '')
            number = int(interface.group(1)) if interface else -1
            boards.setdefault(port.serial_number or '', {})[number] = port.device
    if serial_number:
        boards = {name: ports for name, ports in boards.items() if name == serial_number}
    complete = [
        RadarPorts(ports[command], ports[data])
        for ports in boards.values()
        for command, data in RADAR_BRIDGES.values()
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
