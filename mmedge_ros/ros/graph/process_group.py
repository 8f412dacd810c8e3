"""Starts the nodes of a graph as processes, watches them, and stops all of them.

Knows nothing of ROS but how to start it: used by the command line in place of `ros2 launch`.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import psutil

from mmedge_ros.core import heartbeat
from mmedge_ros.ros.graph.description import NodeDescription, process_arguments
from mmedge_ros.ros.graph.hang_watch import HangWatch, activity_of
from mmedge_ros.ros.graph.middleware_files import left_behind, remove_unused, segments_of
from mmedge_ros.ros.node_main import NOT_MADE, PARENT_VARIABLE
from mmedge_ros.transport.shared_segment import remove_leftovers

_STOPS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
# Together less than the 3 s in which everything must be gone.
_GRACE = ((signal.SIGINT, 1.5), (signal.SIGTERM, 0.5), (signal.SIGKILL, 0.5))
_LAST_PATIENCE = 0.5
# A node that ends sooner after its start (s) than this is not started again at once.
_LASTING, _RESPAWN_DELAY = 5.0, 1.0
# Reading what a process has mapped takes a millisecond or more.
_MEASURE_PERIOD = 1.0
# With the one before it, a node's logs never take more than twice as much.
_LARGEST_LOG = 8 << 20


def rotate(log: Path, largest: int = 0) -> None:
    """Keep a log that has grown beyond so many bytes under another name, and begin it anew.

    The process that writes appends, and goes on at the beginning. What cannot be kept stays.
    """
    with contextlib.suppress(OSError):
        if log.stat().st_size > largest:
            shutil.copyfile(log, log.with_name(f'{log.name}.1'))
            os.truncate(log, 0)


class ProcessGroup:
    """The processes of one graph; a context manager that leaves nothing behind.

    A node that hangs is killed and started again, like one that has ended.

    :param folder: parameter files and one log per node go there
    :param params_files: handed to every node after its own parameters
    :param on_event: called with a sentence when a node ends or is started again
    """

    def __init__(
        self,
        nodes: Sequence[NodeDescription],
        folder: Path,
        params_files: Sequence[Path] = (),
        on_event: Callable[[str], None] | None = None,
        respawn: bool = True,
    ) -> None:
        self.cpu_seconds = 0.0
        self.peak_memory_mb = 0.0
        self._nodes = {node.name: node for node in nodes}
        self._folder = folder
        self._params_files = params_files
        self._on_event = on_event or (lambda _: None)
        self._respawn = respawn
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self._restart_at: dict[str, float] = {}
        self._started_at: dict[str, float] = {}
        self._watches: dict[str, HangWatch] = {}
        self._usage: dict[int, tuple[float, float]] = {}
        self._segments: set[Path] = set()
        self._measured_at = 0.0

    def __enter__(self) -> ProcessGroup:
        self._folder.mkdir(parents=True, exist_ok=True)
        remove_unused(left_behind())
        try:
            for name in self._nodes:
                rotate(self.log_of(name))
                self._start(name)
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def pids(self) -> dict[str, int]:
        """Process ids of the running nodes by name."""
        return {name: p.pid for name, p in self._running.items() if p.poll() is None}

    def log_of(self, name: str) -> Path:
        """Return the file a node writes to."""
        return self._folder / f'{name}.log'

    def watch(self) -> list[str]:
        """Look after the processes; return names of nodes that ended and will not come back."""
        gone = []
        look = time.monotonic() - self._measured_at > _MEASURE_PERIOD
        if look:
            self._measured_at = time.monotonic()
        for name, process in list(self._running.items()):
            code = process.poll()
            if code is None:
                if look:
                    self._measure(process.pid)
                    rotate(self.log_of(name), _LARGEST_LOG)
                self._look_for_hang(name, process)
                continue
            if name in self._restart_at:
                if time.monotonic() >= self._restart_at[name]:
                    del self._restart_at[name]
                    self._start(name)
                    self._on_event(f'{name} was started again')
            elif self._may_respawn(name, code):
                now = time.monotonic()
                has_lasted = now - self._started_at[name] > _LASTING
                self._restart_at[name] = now + (0.0 if has_lasted else _RESPAWN_DELAY)
                self._on_event(f'{name} ended {_described(code)}; see {self.log_of(name)}')
            else:
                gone.append(name)
        return gone

    def last_words(self, name: str, lines: int = 3) -> str:
        """Return the end of a node's log."""
        try:
            text = self.log_of(name).read_text(errors='replace')
        except OSError:
            return ''
        return '\n'.join(text.strip().splitlines()[-lines:])

    def stop(self) -> None:
        """Stop every process, gently first, and remove shared memory killed ones left.

        A second Ctrl-C cuts the patience short, but leaves nothing running either.
        """
        processes = list(self._running.values())
        try:
            for process in processes:
                self._measure(process.pid)
            for number, patience in _GRACE:
                _end_all(processes, number, patience)
        except BaseException:
            _end_all(processes, signal.SIGKILL, _LAST_PATIENCE)
            raise
        finally:
            self.cpu_seconds = sum(cpu for cpu, _ in self._usage.values())
            self.peak_memory_mb = sum(memory for _, memory in self._usage.values())
            self._running.clear()
            for watch in self._watches.values():
                watch.close()
            self._watches.clear()
            remove_unused(self._segments)
            self._segments.clear()
            remove_leftovers()

    def _may_respawn(self, name: str, code: int) -> bool:
        """Return whether starting again can help; it cannot where a node was misconfigured."""
        return self._respawn and self._nodes[name].respawn and code not in (0, NOT_MADE)

    def _look_for_hang(self, name: str, process: subprocess.Popen[bytes]) -> None:
        words = self._watches[name].look(time.monotonic())
        if words and self._respawn and self._nodes[name].respawn:
            self._on_event(f'{name} {words}; it is killed')
            process.kill()

    def _start(self, name: str) -> None:
        node = self._nodes[name]
        if name in self._watches:
            self._watches.pop(name).close()
        self._started_at[name] = time.monotonic()
        command = [
            sys.executable,
            '-m',
            node.module or f'mmedge_ros.ros.nodes.{node.executable}',
            *process_arguments(node, self._folder, self._params_files),
        ]
        environment = {**os.environ, PARENT_VARIABLE: str(os.getpid()), 'PYTHONUNBUFFERED': '1'}
        environment.setdefault('ROS_LOG_DIR', str(self._folder))
        source, pipe = os.pipe()
        environment[heartbeat.VARIABLE] = str(pipe)
        os.set_blocking(pipe, False)
        try:
            with self.log_of(name).open('ab') as log, _put_off():
                # A session of its own: Ctrl-C reaches us alone, and we stop them in order.
                self._running[name] = process = subprocess.Popen(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    env=environment,
                    start_new_session=True,
                    pass_fds=(pipe,),
                )
        except BaseException:
            os.close(source)
            raise
        finally:
            os.close(pipe)
        self._watches[name] = HangWatch(source, lambda: activity_of(process.pid))

    def _measure(self, pid: int) -> None:
        try:
            process = psutil.Process(pid)
            times = process.cpu_times()
            memory = process.memory_info().rss / 1e6
            self._segments |= segments_of(pid)
        except psutil.Error:
            return
        _, peak = self._usage.get(pid, (0.0, 0.0))
        self._usage[pid] = (times.user + times.system, max(peak, memory))


@contextlib.contextmanager
def _put_off() -> Iterator[None]:
    """Let signals that stop the command wait: a process that was just made must not get lost."""
    if threading.current_thread() is not threading.main_thread():
        yield  # handlers run in the main thread alone
        return
    received: list[int] = []
    before = {number: signal.getsignal(number) for number in _STOPS}
    for number, handler in before.items():
        if callable(handler):
            signal.signal(number, lambda number, _: received.append(number))
    try:
        yield
    finally:
        for number, handler in before.items():
            if callable(handler):
                signal.signal(number, handler)
        if received:
            signal.raise_signal(received[0])


def _end_all(processes: Sequence[subprocess.Popen[bytes]], number: int, patience: float) -> None:
    alive = [process for process in processes if process.poll() is None]
    for process in alive:
        process.send_signal(number)
    deadline = time.monotonic() + patience
    for process in alive:
        try:
            process.wait(max(deadline - time.monotonic(), 0.0))
        except subprocess.TimeoutExpired:
            continue


def _described(code: int) -> str:
    if code >= 0:
        return f'with exit code {code}'
    return f'by signal {signal.Signals(-code).name}'
