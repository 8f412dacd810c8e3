"""Sources for processes of their own, which have to find them: hence not in a test's module."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

from hand_made_flight import scene

from mmedge_lab.simulation import SimulationError
from mmedge_lab.simulation.world import World


def numbers(first: int, last: int) -> Iterator[int]:
    yield from range(first, last)


def until_it_cannot(reason: str) -> Iterator[int]:
    yield 1
    raise ValueError(reason)


def until_it_is_killed() -> Iterator[int]:
    yield 1
    os.kill(os.getpid(), signal.SIGKILL)
    yield 2


def endless(file: Path) -> Iterator[bytes]:
    """Give 100 kB again and again; the file grows by a byte each time."""
    while True:
        with file.open('a') as made:
            made.write('.')
        yield bytes(100_000)


def own_process() -> Iterator[tuple[int, int]]:
    yield os.getpid(), os.getppid()


def impossible_world() -> World:
    raise SimulationError('there is no such place')


def world_that_kills() -> World:
    os.kill(os.getpid(), signal.SIGKILL)
    return scene()
