"""Finds out from the heartbeats of a process that it hangs, and not merely waits for its turn."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple

import psutil

from mmedge_ros.core import heartbeat

# s without a heartbeat, of a process that does nothing: a timer should have woken it.
STILL = 2.0
# s, of one that works or waits for its turn. Loading is no hang.
BUSY = 30.0
# However late the watch looks, this much (s) of the silence counts: it may have stood still too.
_LONGEST_STEP = 0.5
_BYTES = 4096


class Activity(NamedTuple):
    """What the main thread of a process does: how often it was woken or paused, and its state."""

    switches: int
    state: str


def activity_of(pid: int) -> Activity:
    """Read it from the system.

    :raises psutil.Error: if the process is gone
    """
    process = psutil.Process(pid)
    return Activity(sum(process.num_ctx_switches()), process.status())


class HangWatch:
    """Reads the heartbeats of one process. They begin when it has made its nodes.

    A silent process that was stopped, or whose main thread sleeps and was not woken for a second,
    hangs after `STILL`. One that works, or waits for its turn on a busy machine, for a disk or for
    another of its threads, hangs after `BUSY`. One that loads, or that a debugger holds, does not.

    :param source: the reading end of the pipe of `heartbeat`; it is closed with the watch
    :param activity: returns what the process does
    """

    def __init__(self, source: int, activity: Callable[[], Activity]) -> None:
        self._source = source
        self._activity = activity
        os.set_blocking(source, False)
        self._has_begun = False
        self._loads = 0
        self._silence = 0.0
        self._at: float | None = None
        self._before: Activity | None = None

    def close(self) -> None:
        """Listen no more."""
        os.close(self._source)

    def look(self, now: float) -> str:
        """Say in words how the process hangs; '' if it does not.

        :param now: s, of a monotonic clock
        """
        step = 0.0 if self._at is None else min(now - self._at, _LONGEST_STEP)
        self._at = now
        if self._hear():
            self._silence, self._before = 0.0, None
            return ''
        self._silence += step
        if self._silence < STILL / 2:
            return ''
        try:
            present = self._activity()
        except psutil.Error:
            return ''  # it has ended, which is seen elsewhere
        if self._before is None:
            self._before = present
        return self._verdict(present, self._before)

    def _verdict(self, present: Activity, before: Activity) -> str:
        is_long = self._silence >= STILL
        if present.state == psutil.STATUS_STOPPED:
            return 'is stopped' if is_long else ''
        if not self._has_begun or self._loads > 0 or present.state == psutil.STATUS_TRACING_STOP:
            return ''
        sleeps = present == before and present.state == psutil.STATUS_SLEEPING
        return (
            f'hangs for {self._silence:.0f} s'
            if (sleeps and is_long) or self._silence >= BUSY
            else ''
        )

    def _hear(self) -> bool:
        """Take what came; return whether anything did."""
        heard = b''
        with suppress(BlockingIOError):
            heard = os.read(self._source, _BYTES)
        self._has_begun = self._has_begun or heartbeat.BEAT in heard
        self._loads += heard.count(heartbeat.LOAD) - heard.count(heartbeat.LOADED)
        return bool(heard)
