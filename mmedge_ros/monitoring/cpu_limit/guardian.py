"""Wakes the processes a limiter has stopped, should the limiter be killed or hang.

A process of its own, in a session of its own, so that what hits the limiter does not hit it.
It receives the list of members again and again; when none comes for a while, or the pipe closes,
it continues them all.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import psutil

from mmedge_ros.monitoring import MonitoringError

# Runs without the package and without site packages: it must start at once and never fail.
_PROGRAM = r"""
import json, os, select, signal, sys

for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGTSTP):
    signal.signal(number, signal.SIG_IGN)
SILENCE, limiter, known, pending = float(sys.argv[1]), os.getppid(), {}, b''


def processes():
    for name in os.listdir('/proc'):
        if name.isdigit():
            try:
                with open('/proc/' + name + '/stat', 'rb') as file:
                    fields = file.read().rpartition(b')')[2].split()
                yield int(name), int(fields[1]), int(fields[3]), int(fields[19])
            except (OSError, IndexError, ValueError):
                pass


def wake():
    table = list(processes())
    wanted = {(pid, begun) for pid, begun in known.get('members', [])}
    members = {
        pid for pid, _, session, begun in table
        if session == known.get('session') or (pid, begun) in wanted
    }
    grown = True
    while grown:
        more = {pid for pid, parent, _, _ in table if parent in members} - members
        members, grown = members | more, bool(more)
    for pid in members - {os.getpid(), limiter}:
        try:
            os.kill(pid, signal.SIGCONT)
        except OSError:
            pass


while os.getppid() == limiter:
    ready, _, _ = select.select([0], [], [], SILENCE)
    if not ready:
        wake()
        continue
    received = os.read(0, 65536)
    if not received:
        break
    *lines, pending = (pending + received).split(b'\n')
    if lines:
        known = json.loads(lines[-1])
wake()
"""
_SILENCE = 1.0
_PATIENCE = 3.0


class LimitGuardian:
    """Keeps a guardian alive and informed.

    :param silence: s without news after which the guardian wakes all members
    :raises MonitoringError: if no process can be started
    """

    def __init__(self, silence: float = _SILENCE) -> None:
        self._silence = silence
        self._start()

    def update(self, members: Iterable[psutil.Process], session: int | None) -> None:
        """Send which processes must not stay stopped.

        Has to be called more often than the guardian's silence lasts. A guardian that has
        ended is replaced.
        """
        if self._process.poll() is not None:
            self._start()
        news = {
            'members': [[process.pid, _begun(process.pid)] for process in members],
            'session': session,
        }
        pipe = self._process.stdin
        if pipe is not None:
            with contextlib.suppress(BrokenPipeError):
                pipe.write(json.dumps(news).encode() + b'\n')
                pipe.flush()

    def stop(self) -> None:
        """Let it wake all members one last time and end."""
        with contextlib.suppress(BrokenPipeError, subprocess.TimeoutExpired):
            self._process.communicate(timeout=_PATIENCE)

    def _start(self) -> None:
        command = [sys.executable, '-I', '-S', '-c', _PROGRAM, str(self._silence)]
        try:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        except OSError as err:
            raise MonitoringError(f'no guardian can be started: {err.strerror or err}') from err
        self.process = psutil.Process(self._process.pid)


def _begun(pid: int) -> int:
    """Return when a process began, in ticks: a later one of its number has another."""
    try:
        fields = Path(f'/proc/{pid}/stat').read_bytes().rpartition(b')')[2].split()
        return int(fields[19])
    except (OSError, IndexError, ValueError):
        return -1
