"""Heartbeats of a process to the one that started it, over a pipe: a byte for each."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress

# Number of the pipe's writing end. A process without it beats for nobody.
VARIABLE = 'MMEDGE_HEARTBEAT'
# s between two beats: 8 processes take less than 0.1 % of a core for them.
PERIOD = 0.5

BEAT = b'.'
LOAD, LOADED = b'(', b')'


def beat() -> None:
    """Say that the thread that calls this is alive."""
    _send(BEAT)


@contextmanager
def loading() -> Iterator[None]:
    """Say that something loads, for however long: other threads may stand still meanwhile."""
    _send(LOAD)
    try:
        yield
    finally:
        _send(LOADED)


def _send(word: bytes) -> None:
    number = os.environ.get(VARIABLE, '')
    if number.isdecimal():
        # Its reader is stopped, or gone.
        with suppress(OSError):
            os.write(int(number), word)
