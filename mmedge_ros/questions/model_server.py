"""Starts and stops a server of a user's own model: load, ask, release.

A keeper process stands between this one and the server, see `model_process`, and ends the server
however this process ends.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any

import psutil

from mmedge_ros.questions import model_process
from mmedge_ros.questions.model_client import CANCELLED, LOOK, Endpoint, ModelError, never

_MAGIC = b'GGUF'
_CONTEXT = 4096
# A unix socket's path fits the kernel's field.
_LONGEST_SOCKET = 100
_MOST_SAID = 1 << 16
# The keeper ends within milliseconds; a machine that is busy takes longer.
_PATIENCE = 2.0
# What of a failed start is waited for beyond its deadline (s).
_RELEASING = 0.02


@dataclass(frozen=True)
class ModelFiles:
    """A user's own model: a GGUF, and the projector (mmproj) that lets it see, if there is one."""

    model: Path
    projector: Path | None = None


class ModelServer:
    """A server of a model; a context manager that ends it.

    :param threads: of the server; half of the processors if 0
    :param command: what serves, given a JSON of the files and the socket; that of
        `model_process` if empty
    """

    def __init__(
        self,
        files: ModelFiles,
        threads: int = 0,
        command: Sequence[str] = (),
    ) -> None:
        self._files = files
        self._threads = threads or max(len(os.sched_getaffinity(0)) // 2, 1)
        self._command = command or (sys.executable, '-m', 'mmedge_ros.questions.model_process')
        self._keeper: subprocess.Popen[bytes] | None = None
        self._folder = ''
        self._pid = 0
        self._said = b''
        self._is_loaded = False

    def __enter__(self) -> ModelServer:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    @property
    def pid(self) -> int:
        """The process of the server; 0 without one."""
        return self._pid

    def start(self, deadline: float, is_cancelled: Callable[[], bool] = never) -> Endpoint:
        """Load the model; return where it is asked.

        :param deadline: instant (s) of the monotonic clock
        :param is_cancelled: asked at least every tenth of a second
        :raises ModelError: if it is not ready by then; nothing is left running
        """
        self.stop()
        try:
            self._require_loadable()
            self._begin()
            self._await_ready(deadline, is_cancelled)
        except ModelError:
            self.stop(max(deadline, time.monotonic() + _RELEASING))
            raise
        except BaseException:
            self.stop()
            raise
        self._is_loaded = True
        return Endpoint(socket=self._socket)

    def running(self) -> Endpoint | None:
        """Return where a loaded model is asked; None where none is, or its server has ended."""
        is_loaded = self._is_loaded and not self.problem(time.monotonic())
        return Endpoint(socket=self._socket) if is_loaded else None

    def memory(self) -> int:
        """Return the memory (bytes) of the server; 0 without one."""
        with contextlib.suppress(psutil.Error):
            return int(psutil.Process(self._pid).memory_info().rss) if self._pid else 0
        return 0

    def problem(self, until: float) -> str:
        """Say why the server has ended; '' if it runs at an instant (s) of the monotonic clock."""
        for words in self._news(until):
            if 'ended' in words:
                self._is_loaded = False
                return _ended(words['ended'])
        return ''

    def stop(self, until: float = math.inf) -> None:
        """Kill the server with its children and remove its folder; nothing where none runs.

        :param until: instant (s) of the monotonic clock; what is not gone by then goes later
        """
        keeper, self._keeper = self._keeper, None
        if keeper is not None:
            for pipe in (keeper.stdin, keeper.stdout):
                if pipe is not None:
                    with contextlib.suppress(OSError):
                        pipe.close()
            end = partial(_end, keeper, self._pid, self._folder)
            if until == math.inf:
                end()
            else:
                # Taking gigabytes back takes the kernel a while.
                ending = threading.Thread(target=end, daemon=True)
                ending.start()
                ending.join(max(until - time.monotonic(), 0.0))
        elif self._folder:
            shutil.rmtree(self._folder, ignore_errors=True)
        self._folder, self._pid, self._said = '', 0, b''
        self._is_loaded = False

    def _require_loadable(self) -> None:
        files = [path for path in (self._files.model, self._files.projector) if path is not None]
        for path in files:
            _require_gguf(path)
        needed = sum(path.stat().st_size for path in files)
        free = psutil.virtual_memory().available
        if needed > free:
            raise ModelError(
                f'{files[0].name} needs more than {needed / 1e9:.1f} GB of memory, and '
                f'{free / 1e9:.1f} GB are free; take a smaller model or fewer bits'
            )

    @property
    def _socket(self) -> str:
        return f'{self._folder}/model.sock'

    def _begin(self) -> None:
        """Start keeper and server."""
        try:
            self._folder = tempfile.mkdtemp(prefix='mmedge-model-')
            if len(self._socket.encode()) > _LONGEST_SOCKET:
                raise ModelError(
                    f'{self._folder} is too long a name for a socket; set TMPDIR to a shorter one'
                )
            projector = self._files.projector
            settings = {
                'model': str(self._files.model.absolute()),
                'projector': str(projector.absolute()) if projector is not None else '',
                'socket': self._socket,
                'threads': self._threads,
                'context': _CONTEXT,
            }
            self._keeper = subprocess.Popen(
                [
                    *(sys.executable, '-I', '-S', model_process.__file__, self._folder),
                    *(*self._command, json.dumps(settings)),
                ],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            )
        except OSError as err:
            raise ModelError(f'no model server can be started: {err.strerror or err}') from err

    def _await_ready(self, deadline: float, is_cancelled: Callable[[], bool]) -> None:
        now = -math.inf
        while now < deadline:
            now = time.monotonic()
            for words in self._news(min(now + LOOK, deadline)):
                if isinstance(pid := words.get('pid'), int):
                    self._pid = pid
                elif words.get('ready'):
                    return
                elif isinstance(reason := words.get('problem'), str):
                    raise ModelError(reason)
                elif 'ended' in words:
                    ended = _ended(words['ended'])
                    raise ModelError(f'{ended} while {self._files.model.name} loaded')
            if is_cancelled():
                raise ModelError(CANCELLED)
        raise ModelError(f'{self._files.model.name} was not loaded by the deadline')

    def _news(self, deadline: float) -> Iterator[Mapping[str, Any]]:
        """Yield what keeper and server say until a deadline; what has come is always read."""
        pipe = self._keeper.stdout if self._keeper is not None else None
        while pipe is not None:
            while b'\n' in self._said:
                line, _, self._said = self._said.partition(b'\n')
                with contextlib.suppress(ValueError, RecursionError):
                    words = json.loads(line)
                    if isinstance(words, dict):
                        yield words
            left = max(deadline - time.monotonic(), 0.0)
            if not select.select([pipe], [], [], left)[0]:
                return
            received = os.read(pipe.fileno(), _MOST_SAID)
            self._said += received
            if not received:
                yield {'ended': None}
                return
            if len(self._said) > _MOST_SAID:
                yield {'problem': 'the process of the model server sent more than a status'}
                return


def _require_gguf(path: Path) -> None:
    """Refuse what is no model before a process is started for it.

    :raises ModelError: with the path
    """
    try:
        with path.open('rb') as file:
            begin = file.read(len(_MAGIC)) if path.is_file() else b''
    except OSError as err:
        raise ModelError(f'{path}: {err.strerror or err}') from err
    if begin != _MAGIC:
        raise ModelError(f'{path}: no GGUF file, which a model is read from')


def _ended(code: object) -> str:
    """Say how a server has ended, by its exit code."""
    if code == -signal.SIGKILL:
        return 'the model server was killed, as it is where memory runs out'
    if isinstance(code, int) and code < 0:
        return f'the model server broke down (signal {-code})'
    return 'the model server ended'


def _end(keeper: subprocess.Popen[bytes], server: int, folder: str) -> None:
    """Wait until a keeper has killed its server and ended; kill both where it does not."""
    try:
        keeper.wait(_PATIENCE)
    except subprocess.TimeoutExpired:
        if server:
            with contextlib.suppress(OSError):
                os.killpg(server, signal.SIGKILL)
        keeper.kill()
        keeper.wait()
    shutil.rmtree(folder, ignore_errors=True)
