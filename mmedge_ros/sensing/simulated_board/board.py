"""A radar board on two pseudo-terminals, with the faults of a real one on command.

It answers the mmWave demo's commands on one, and sends packets at the speed of the real
port on the other. Programs open the paths of the two links as they open serial ports.
"""

from __future__ import annotations

import contextlib
import os
import select
import threading
import tty
from collections.abc import Callable
from pathlib import Path

from mmedge_ros.core.clock import Clock, SystemClock
from mmedge_ros.core.data_types import NS_PER_S
from mmedge_ros.sensing import SensingError
from mmedge_ros.sensing.radar.chirp_configuration import UART_BYTES_PER_S
from mmedge_ros.sensing.simulated_board.frames import BoardFrames
from mmedge_ros.sensing.simulated_board.shell import REFUSAL, BoardShell

COMMAND_PORT = 'command'
DATA_PORT = 'data'
# What a port shows while the board has no steady power.
BOOT_NOISE = bytes.fromhex('00fff8e0803c0dfe9a7f00') + b"\n'\xf8\xe0' is not rec"
# Sensing and processing before the first byte of a packet, s.
_WORK = 0.01
_SLICE_BYTES = 256
_LOOK = 0.05


class SimulatedBoard:
    """Two pseudo-terminals below ``folder`` with a board behind them; a context manager.

    :param folder: gets the links ``command`` and ``data``
    :param clock: times the frames
    """

    def __init__(self, frames: BoardFrames, folder: Path, clock: Clock | None = None) -> None:
        self.shell = BoardShell(frames.identity)
        self.mute = False
        self.command_path = folder / COMMAND_PORT
        self.data_path = folder / DATA_PORT
        self.frames_sent = 0
        self._frames = frames
        self._clock = clock or SystemClock()
        self._lock = threading.Lock()
        self._cable: _Cable | None = None

    def __enter__(self) -> SimulatedBoard:
        self.plug_in()
        return self

    def __exit__(self, *_: object) -> None:
        self.unplug()

    def plug_in(self, noise: bytes = b'') -> None:
        """Connect the cable, which also powers the board: it starts anew.

        :param noise: comes out of the command port before the board's own first words
        :raises SensingError: if the links cannot be made
        """
        with self._lock:
            if self._cable is not None:
                return
            self._start_anew()
            self._cable = _Cable(self, noise + self._words(self.shell.banner))

    def unplug(self) -> None:
        """Pull the cable: both ports vanish, whatever they are doing."""
        with self._lock:
            cable, self._cable = self._cable, None
        if cable is not None:
            cable.close()

    def reset(self, noise: bytes = BOOT_NOISE) -> None:
        """Let the power fail for a moment: the ports stay, the sensor stops."""
        with self._lock:
            self._start_anew()
            if self._cable is not None:
                self._cable.say(noise + self._words(self.shell.banner))

    def misbehave(self, order: str) -> str:
        """Obey an order of one line, such as `unplug`, and return what was done as a sentence."""
        name, _, argument = order.strip().partition(' ')
        orders: dict[str, Callable[[], object]] = {
            'unplug': self.unplug,
            'plug': self.plug_in,
            'noise': lambda: self.plug_in(BOOT_NOISE),
            'reset': self.reset,
            'mute': lambda: setattr(self, 'mute', True),
            'unmute': lambda: setattr(self, 'mute', False),
            'refuse': lambda: self.shell.refused.update({argument: REFUSAL}),
            'forgive': self.shell.refused.clear,
        }
        if name not in orders:
            return f'no order {name!r}; there are {", ".join(orders)}'
        orders[name]()
        return f'done: {order.strip()}'

    def answer(self, line: bytes) -> bytes:
        """Return what the board says to a line, its echo included."""
        if self.mute:
            return b''
        text = line.decode('ascii', 'replace').strip('\r\n')
        with self._lock:
            return self._words(f'{text}\n{self.shell.answer(text)}')

    @property
    def streams(self) -> bool:
        return self.shell.started and not self.mute

    def next_packet(self, elapsed: float) -> bytes:
        self.frames_sent += 1
        return self._frames.packet(self.frames_sent, elapsed)

    @property
    def clock(self) -> Clock:
        return self._clock

    def _start_anew(self) -> None:
        self.shell.reset()
        self.frames_sent = 0

    @staticmethod
    def _words(text: str) -> bytes:
        return text.replace('\n', '\r\n').encode('ascii', 'replace')


class _Cable:
    """The pseudo-terminals of one connection and the threads that serve them."""

    def __init__(self, board: SimulatedBoard, greeting: bytes) -> None:
        self._board = board
        self._ended = threading.Event()
        self._command, self._data = (
            _PseudoTerminal(path) for path in (board.command_path, board.data_path)
        )
        self._greeting = greeting
        self._threads = [
            threading.Thread(target=work, name=name, daemon=True)
            for work, name in ((self._serve, 'board commands'), (self._stream, 'board data'))
        ]
        for thread in self._threads:
            thread.start()

    def say(self, words: bytes) -> None:
        self._command.write(words)

    def close(self) -> None:
        self._ended.set()
        for thread in self._threads:
            thread.join()
        self._command.close()
        self._data.close()

    def _serve(self) -> None:
        line = b''
        while not self._ended.is_set():
            line += self._command.read(_LOOK)
            # Programs throw away what came before they opened a port; a board that starts
            # speaks into their first words.
            if line and self._greeting:
                greeting, self._greeting = self._greeting, b''
                self.say(greeting)
            while b'\n' in line:
                first, _, line = line.partition(b'\n')
                self.say(self._board.answer(first))

    def _stream(self) -> None:
        begin_ns = due_ns = 0
        while not self._ended.is_set():
            if not self._board.streams:
                begin_ns = 0
                self._ended.wait(0.01)
                continue
            now_ns = self._board.clock.monotonic_ns()
            if not begin_ns:
                begin_ns = due_ns = now_ns
            due_ns += round(self._board.shell.period * NS_PER_S)
            wait_ns = due_ns + round(_WORK * NS_PER_S) - now_ns
            if self._ended.wait(max(wait_ns, 0) / NS_PER_S) or not self._board.streams:
                continue
            self._send(self._board.next_packet((due_ns - begin_ns) / NS_PER_S))

    def _send(self, packet: bytes) -> None:
        """Write a packet no faster than the wire carries it."""
        for begin in range(0, len(packet), _SLICE_BYTES):
            piece = packet[begin : begin + _SLICE_BYTES]
            if self._ended.wait(len(piece) / UART_BYTES_PER_S):
                return
            self._data.write(piece)


class _PseudoTerminal:
    """A pseudo-terminal whose other end is reached by a link of our choice."""

    def __init__(self, link: Path) -> None:
        self._master, self._slave = os.openpty()
        tty.setraw(self._slave)
        os.set_blocking(self._master, False)
        self._link = link
        try:
            link.parent.mkdir(parents=True, exist_ok=True)
            link.unlink(missing_ok=True)
            link.symlink_to(os.ttyname(self._slave))
        except OSError as error:
            self.close()
            raise SensingError(
                f'cannot make the port {link}: {error.strerror or error}; name another folder'
            ) from error

    def read(self, timeout: float) -> bytes:
        """Return what was written to the port, b'' if nothing comes."""
        ready, _, _ = select.select([self._master], [], [], timeout)
        return os.read(self._master, 4096) if ready else b''

    def write(self, data: bytes) -> None:
        """Send; a port that is not read loses what does not fit, as a real one does."""
        with contextlib.suppress(BlockingIOError):
            os.write(self._master, data)

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._link.unlink(missing_ok=True)
        os.close(self._slave)
        os.close(self._master)
