"""A radar board without ports, threads or waiting: its time goes on when somebody reads."""

from __future__ import annotations

from virtual_clock import VirtualClock

from mmedge_ros.core.data_types import NS_PER_S
from mmedge_ros.sensing import SensingError
from mmedge_ros.sensing.simulated_board.frames import BoardFrames, WalkingPerson
from mmedge_ros.sensing.simulated_board.shell import BoardShell

PATIENCE_NS = NS_PER_S // 20
BEGIN_NS = 1_700_000_000 * NS_PER_S


class BoardInMemory:
    """Faults: ``gone`` (nothing can be opened, what is open fails), ``mute``, ``noise``."""

    def __init__(self, frames: BoardFrames | None = None) -> None:
        self.clock = VirtualClock(BEGIN_NS)
        self.frames = frames or WalkingPerson()
        self.shell = BoardShell(self.frames.identity)
        self.command = CommandLink(self)
        self.data = DataLink(self)
        self.gone = False
        self.mute = False
        self.noise = b''
        self.opened = 0

    def connect(self) -> tuple[CommandLink, DataLink]:
        self.check()
        self.opened += 1
        return self.command, self.data

    def check(self) -> None:
        if self.gone:
            raise SensingError('/dev/radar is gone; is the cable plugged in?')

    def pass_time(self, ns: int) -> None:
        self.clock.advance_to(self.clock.now_ns() + ns)


class CommandLink:
    name = '/dev/command'

    def __init__(self, board: BoardInMemory) -> None:
        self.asked: list[str] = []
        self._board = board
        self._inbox = b''

    def write(self, data: bytes) -> None:
        self._board.check()
        line = (self._board.noise + data).decode('latin1').strip('\n')
        self._board.noise = b''
        self.asked.append(line)
        if not self._board.mute:
            answer = f'{line}\n{self._board.shell.answer(line)}'
            self._inbox += answer.replace('\n', '\r\n').encode('latin1')

    def read(self) -> bytes:
        self._board.check()
        piece, self._inbox = self._inbox[:7], self._inbox[7:]
        self._board.pass_time(PATIENCE_NS if not piece else 1000)
        return piece

    def close(self) -> None:
        self._inbox = b''


class DataLink:
    name = '/dev/data'

    def __init__(self, board: BoardInMemory) -> None:
        self.sent = 0
        self.closed = 0
        self.left_over = b''
        self._board = board

    def write(self, data: bytes) -> None:
        raise AssertionError('nothing is ever written to the data port')

    def read(self) -> bytes:
        board = self._board
        board.check()
        left_over, self.left_over = self.left_over, b''
        if left_over:
            return left_over
        if not board.shell.started or board.mute:
            board.pass_time(PATIENCE_NS)
            return b''
        self.sent += 1
        board.pass_time(round(board.shell.period * NS_PER_S))
        return board.frames.packet(self.sent, self.sent * board.shell.period)

    def close(self) -> None:
        self.closed += 1
