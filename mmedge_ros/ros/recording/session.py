"""A recording that writes in a thread of its own, guards the disk, and ends without harm."""

from __future__ import annotations

import shutil
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from mmedge_ros.core.parameter import parameter
from mmedge_ros.ros.recording.writer import BagWriter, RecordedTopic

MEGABYTE = 1_000_000


@dataclass(frozen=True)
class RecordingLimits:
    """What a recording may take."""

    split_size: int = parameter(
        1000, 'a new file begins after this; 0 keeps one file', 'MB', 0, 1_000_000
    )
    min_free: int = parameter(
        500, 'recording stops when less than this is free on the disk', 'MB', 0, 10**9
    )
    # What came longer ago than this (s) survives a kill or a power loss.
    flush_period: float = 0.5
    queue: int = parameter(
        100, 'what may wait for a slow disk; beyond it the oldest is dropped', 'MB', 1, 10_000
    )


class _Message(NamedTuple):
    topic: str
    log_ns: int
    data: bytes


def free_bytes(folder: Path) -> int:
    """Return what is free on the disk of a folder, in bytes."""
    return shutil.disk_usage(folder).free


class RecordingSession:
    """Takes messages from callbacks and writes them in a thread; `failure` says why it stopped.

    :param free: what is free on the disk, in bytes
    :param monotonic: seconds on the monotonic clock
    """

    def __init__(
        self,
        writer: BagWriter,
        limits: RecordingLimits,
        free: Callable[[Path], int] = free_bytes,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self.failure = ''
        self.dropped = 0
        self._writer = writer
        self._limits = limits
        self._free = free
        self._monotonic = monotonic
        self._flushed_at = monotonic()
        self._waiting: deque[_Message | RecordedTopic] = deque()
        self._waiting_bytes = 0
        self._changed = threading.Condition()
        self._ended = False
        self._is_broken = False
        self._thread = threading.Thread(target=self._run, name='recording', daemon=True)

    def start(self) -> None:
        """Begin to write, unless the disk is too full already."""
        self._guarded(self._check_space)
        self._thread.start()

    def announce(self, topic: RecordedTopic) -> None:
        """Say that messages of this topic are about to come."""
        with self._changed:
            self._waiting.append(topic)
            self._changed.notify()

    def offer(self, topic: str, log_ns: int, data: bytes) -> None:
        """Hand over a serialised message of an announced topic; never waits for the disk."""
        with self._changed:
            if self.failure or self._ended:
                return
            self._waiting.append(_Message(topic, log_ns, data))
            self._waiting_bytes += len(data)
            while self._waiting_bytes > self._limits.queue * MEGABYTE:
                self._drop_oldest()
            self._changed.notify()

    def stop(self, timeout: float | None = None) -> None:
        """Write what waits, and end the recording properly."""
        with self._changed:
            self._ended = True
            self._changed.notify()
        if self._thread.is_alive():
            self._thread.join(timeout)

    def step(self, wait: float = 0.0) -> None:
        """Write what waits; wait for it, but not longer than that many seconds."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._ended, wait)
            taken, self._waiting = self._waiting, deque()
            self._waiting_bytes = 0
        if not self.failure:
            self._guarded(lambda: self._write(taken))

    def _run(self) -> None:
        try:
            self._record()
        except BaseException as error:
            # Nobody may believe that it goes on.
            self._fail(f'recording to {self._writer.folder} has broken down: {error!r}')
            raise

    def _record(self) -> None:
        while not self._ended and not self.failure:
            self.step(self._limits.flush_period)
        self.step()
        if not self._is_broken:
            self._guarded(self._writer.close)
        if self._is_broken:
            self._writer.abandon()

    def _drop_oldest(self) -> None:
        for place, waiting in enumerate(self._waiting):
            if isinstance(waiting, _Message):
                del self._waiting[place]
                self._waiting_bytes -= len(waiting.data)
                self.dropped += 1
                return

    def _write(self, taken: deque[_Message | RecordedTopic]) -> None:
        for waiting in taken:
            if isinstance(waiting, _Message):
                self._writer.write(*waiting)
            else:
                self._writer.add_topic(waiting)
        if self._monotonic() - self._flushed_at >= self._limits.flush_period:
            self._flushed_at = self._monotonic()
            self._writer.flush()
            self._check_space()

    def _check_space(self) -> None:
        free = self._free(self._writer.folder) / MEGABYTE
        if free < self._limits.min_free:
            self._fail(
                f'only {free:.0f} MB are free, {self._limits.min_free} MB are to be kept: '
                f'recording to {self._writer.folder} has stopped'
            )

    def _guarded(self, action: Callable[[], None]) -> None:
        """Do something with the disk; a disk that fails ends the recording and nothing else."""
        try:
            action()
        except OSError as error:
            self._is_broken = True
            self._fail(
                f'{error.strerror or error}: recording to {self._writer.folder} has stopped; '
                'what was written can be replayed'
            )

    def _fail(self, reason: str) -> None:
        with self._changed:
            self.failure = reason
            self._waiting.clear()
            self._waiting_bytes = 0
