"""Values made by several processes at once, taken in order as they are asked for."""

from __future__ import annotations

import fcntl
import multiprocessing
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any, NamedTuple, TypeAlias

from mmedge_ros.lab.worker_processes import (
    WorkError,
    end_processes,
    prepare_worker,
    say_or_leave,
    start_process,
)

# What a process may be ahead of who takes its values; Linux gives anybody this much.
_BYTES_AHEAD = 1 << 20

Source: TypeAlias = Callable[[], Iterable[Any]]


class _Failure(NamedTuple):
    reason: str


class _End(NamedTuple):
    """The last word of a source that has given everything."""


@contextmanager
def worker_streams(
    sources: Mapping[str, Source], expected: tuple[type[Exception], ...]
) -> Iterator[list[Iterator[Any]]]:
    """Let a process of its own go through each source; yield what they give, a stream each.

    A process waits where nobody takes what it has given, and is ended with the block.

    :param sources: by name; called there, so they and what they give must be ones that can be
        pickled
    :param expected: what a source raises where it cannot give
    :raises WorkError: from within a stream, if its source cannot give or its process was killed
    """
    processes: list[BaseProcess] = []
    try:
        connections = {}
        for name, source in sources.items():
            connections[name], process = _begin(name, source, expected)
            processes.append(process)
        yield [
            _taken(connection, name, process)
            for (name, connection), process in zip(connections.items(), processes, strict=True)
        ]
    finally:
        end_processes(processes)


def _begin(
    name: str, source: Source, expected: tuple[type[Exception], ...]
) -> tuple[Connection, BaseProcess]:
    # A fresh interpreter: nothing of this one's threads and signal handlers is inherited.
    context = multiprocessing.get_context('spawn')
    ours, theirs = context.Pipe(duplex=False)
    with suppress(OSError):
        fcntl.fcntl(theirs.fileno(), fcntl.F_SETPIPE_SZ, _BYTES_AHEAD)
    process = context.Process(target=_run, args=(theirs, source, expected), name=name)
    start_process(process)
    # The end of the pipe then tells that the process has ended.
    theirs.close()
    return ours, process


def _taken(connection: Connection, name: str, process: BaseProcess) -> Iterator[Any]:
    with connection:
        while True:
            try:
                value = connection.recv()
            except (EOFError, OSError) as err:
                process.join()
                raise WorkError(
                    name,
                    f'its process ended with code {process.exitcode} (out of memory, or killed); '
                    'run the same command again',
                ) from err
            if isinstance(value, _Failure):
                raise WorkError(name, value.reason)
            if isinstance(value, _End):
                return
            yield value


def _run(connection: Connection, source: Source, expected: tuple[type[Exception], ...]) -> None:
    prepare_worker()
    try:
        for value in source():
            say_or_leave(connection, value)
    except expected as err:
        say_or_leave(connection, _Failure(str(err)))
    else:
        say_or_leave(connection, _End())
