"""Other processes at a ring: PYTHONPATH=. python test/support/ring_processes.py ROLE NAME COUNT.

Each prints a line when it has reached the point at which a test wants it.
"""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from mmedge_ros.transport import TransportError
from mmedge_ros.transport.picture_ring import RingReader, RingWriter, Written
from mmedge_ros.transport.ring_layout import SlotHeader

ROOT = Path(__file__).resolve().parents[2]
SIDE = 64


def header(stamp_ns: int) -> SlotHeader:
    return SlotHeader(stamp_ns, SIDE, SIDE, 'mono8', SIDE)


def pixels(value: int) -> np.ndarray:
    return np.full(SIDE * SIDE, value % 256, np.uint8)


def write_until_killed() -> None:
    """Publish one picture, then stop in the middle of the next."""
    writer = RingWriter(SIDE * SIDE, 3)
    written = writer.write(pixels(1), header(1))
    assert written is not None
    slot = writer.claim(SIDE * SIDE)
    assert slot is not None
    writer.view(slot, SIDE * SIDE)[: SIDE * SIDE // 2] = 7
    say(writer.name, *written, slot)
    sys.stdin.read()


def pour_until_killed() -> None:
    """Publish one picture after the other."""
    writer = RingWriter(SIDE * SIDE, 3)
    say(writer.name)
    for value in itertools.count(1):
        written = writer.write(pixels(value), header(value))
        assert written is not None
        say(*written)


def read_until_killed(name: str, written: Written) -> None:
    """Hold a slot."""
    with RingReader(name).bind(*written, lease=3600.0) as content:
        assert content is not None
        say('reading')
        sys.stdin.read()


def read_all(name: str, count: int) -> None:
    """Read what the lines of stdin name; say how many were whole, missed and torn."""
    reader, whole = RingReader(name), 0
    say('ready')
    for line in sys.stdin:
        slot, sequence = map(int, line.split())
        try:
            copied = reader.copy(slot, sequence)
        except TransportError:
            continue
        if copied is not None:
            found = np.frombuffer(copied[1], np.uint8)
            assert (found == copied[0].stamp_ns % 256).all(), 'a torn picture was handed out'
            whole += 1
        if sequence == count:
            break
    say(whole, reader.counts.missed, reader.counts.torn)


def say(*words: object) -> None:
    print(*words, flush=True)


@contextmanager
def ring_process(*arguments: object) -> Iterator[subprocess.Popen[str]]:
    """One of the above as a process, killed at the end."""
    process = subprocess.Popen(
        [sys.executable, __file__, *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, 'PYTHONPATH': str(ROOT)},
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def words_of(process: subprocess.Popen[str]) -> list[str]:
    """Wait for the next line of a process."""
    assert process.stdout is not None
    line = process.stdout.readline().split()
    assert line, f'the process ended with {process.wait()}'
    return line


if __name__ == '__main__':
    role, *given = sys.argv[1:]
    if role == 'write':
        write_until_killed()
    elif role == 'pour':
        pour_until_killed()
    elif role == 'hold':
        read_until_killed(given[0], Written(int(given[1]), int(given[2])))
    else:
        read_all(given[0], int(given[1]))
