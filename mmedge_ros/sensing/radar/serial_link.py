"""A serial port as bytes in and out; every failure is one error that names the port."""

from __future__ import annotations

import errno
import termios
from typing import Protocol

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
