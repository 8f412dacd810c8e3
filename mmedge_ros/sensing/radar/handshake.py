"""Brings a radar board from whatever state it is in to sending frames.

The conversation with the mmWave demo's command line: one command per line, each answered
with ``Done`` or an error, an echo before and a prompt behind.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from mmedge_ros.core.clock import Clock
from mmedge_ros.core.data_types import NS_PER_S
from mmedge_ros.sensing import SensingError
from mmedge_ros.sensing.radar.chirp_commands import BoardVersion
from mmedge_ros.sensing.radar.chirp_configuration import ChirpConfiguration
from mmedge_ros.sensing.radar.serial_ports import SerialLink

_TRIES = 3
# The first start after power-up calibrates the front end.
_START_FACTOR = 5.0
_LONGEST_ANSWER = 1 << 14
_PROMPT = re.compile(r'^\S{0,30}:/>')
_DONE = re.compile(r'^Done$')
_FAILED = re.compile(r'^Error\s*-?\d+$|is not recognized as a CLI command$')
_SDK = re.compile(r'mmWave SDK Version\s*:\s*(\d{1,3}(?:\.\d{1,3}){1,3})')
_PLATFORM = re.compile(r'Platform\s*:\s*(\w{1,20})')


@dataclass(frozen=True)
class Reply:
    """The lines a board answered, echo and prompts left out; ``done`` is its own verdict."""

    lines: tuple[str, ...]
    done: bool
    complete: bool

    @property
    def text(self) -> str:
        return '; '.join(self.lines) or 'nothing'


class CommandLine:
    """Sends commands to a board, and waits for its answers.

    :param patience: how long it may take to answer, s
    """

    def __init__(self, link: SerialLink, clock: Clock, patience: float = 1.0) -> None:
        self._link = link
        self._clock = clock
        self._patience = patience

    @property
    def name(self) -> str:
        return self._link.name

    def settle(self) -> None:
        """Throw away what the board said on its own: boot noise, banners, old answers."""
        self._link.write(b'\n')
        deadline_ns = self._deadline_ns(self._patience)
        while self._link.read() and self._clock.monotonic_ns() < deadline_ns:
            pass

    def send(self, command: str, patience_factor: float = 1.0) -> Reply:
        """Send a command and return the answer; an incomplete one if the board falls silent.

        :raises SensingError: if the port fails
        """
        self._link.write(command.encode('ascii', 'replace') + b'\n')
        deadline_ns = self._deadline_ns(self._patience * patience_factor)
        received = b''
        while self._clock.monotonic_ns() < deadline_ns and len(received) < _LONGEST_ANSWER:
            data = self._link.read()
            received += data
            reply, prompted = _understood(received, command)
            # A prompt follows an answer at once, if the firmware has one.
            if reply.complete and (prompted or not data):
                return reply
        return _understood(received, command)[0]

    def require(self, command: str, where: str = '', patience_factor: float = 1.0) -> Reply:
        """Send a command that must succeed.

        :param where: the place the command was read from
        :raises SensingError: naming port, command and answer if it does not
        """
        reply = self.send(command, patience_factor)
        if not reply.complete:
            seconds = self._patience * patience_factor
            said = f'; it said {reply.text}' if reply.lines else ''
            raise SensingError(
                f'{self.name}: no answer to {command!r}{where} within {seconds:g} s{said}; is it '
                'the command port, and does the board run the mmWave demo?'
            )
        if not reply.done:
            raise SensingError(
                f'{self.name}: the board answers {command!r}{where} with: {reply.text}'
            )
        return reply

    def _deadline_ns(self, seconds: float) -> int:
        return self._clock.monotonic_ns() + round(seconds * NS_PER_S)


def start_board(
    line: CommandLine,
    choose: Callable[[BoardVersion], ChirpConfiguration],
    on_stopped: Callable[[], None] = lambda: None,
) -> tuple[BoardVersion, ChirpConfiguration]:
    """Stop the sensor, send it a configuration and start it.

    :param choose: returns the configuration for a board
    :param on_stopped: called while the sensor stands still
    :raises SensingError: naming port, command and answer when the board does not follow
    """
    line.settle()
    stop_sensor(line)
    on_stopped()
    version = read_version(line)
    configuration = choose(version)
    check_version(line.name, version, configuration)
    send_configuration(line, configuration)
    return version, configuration


def stop_sensor(line: CommandLine) -> None:
    """Stop the sensor; the first tries may meet what is left of a boot.

    :raises SensingError: if it does not stop
    """
    for _ in range(_TRIES - 1):
        if line.send('sensorStop').done:
            return
    line.require('sensorStop', f' (tried {_TRIES} times)')


def read_version(line: CommandLine) -> BoardVersion:
    """Return what the board says of itself; firmware that does not know the question is fine."""
    reply = line.send('version')
    text = '\n'.join(reply.lines)
    sdk, platform = _SDK.search(text), _PLATFORM.search(text)
    return BoardVersion(
        tuple(int(part) for part in sdk.group(1).split('.')) if sdk else (),
        platform.group(1) if platform else '',
    )


def check_version(port: str, version: BoardVersion, configuration: ChirpConfiguration) -> None:
    """:raises SensingError: if the configuration is written for other boards than this one."""
    if version.sdk and not configuration.dialect.fits(version.sdk, version.platform):
        raise SensingError(
            f'{port}: the board runs {version}, but {configuration.source} is written for '
            f'{configuration.dialect.value}; choose a configuration made for this board'
        )


def send_configuration(line: CommandLine, configuration: ChirpConfiguration) -> None:
    """Replace the board's configuration and start the sensor.

    :raises SensingError: naming port, command and answer when the board refuses one
    """
    line.require('flushCfg')
    for command in configuration.sent:
        line.require(command.text, f' ({configuration.source} line {command.line})')
    line.require('sensorStart', patience_factor=_START_FACTOR)


def _understood(received: bytes, command: str) -> tuple[Reply, bool]:
    """Make an answer of bytes, and say whether a prompt ends it."""
    text = received.decode('ascii', 'replace').replace('\r', '\n')
    # What comes before the echo answers something else.
    _, echo, behind = text.rpartition(f'{command}\n')
    if echo:
        text = behind
    prompted = bool(_PROMPT.match(text.rpartition('\n')[2]))
    lines = []
    for line in text.split('\n'):
        words = _PROMPT.sub('', line).strip()
        if words and words != command:
            lines.append(words)
    done = any(_DONE.match(line) for line in lines)
    failed = any(_FAILED.search(line) for line in lines)
    return Reply(tuple(lines), done and not failed, done or failed), prompted
