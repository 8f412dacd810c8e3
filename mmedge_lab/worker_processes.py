"""Work in several processes: each reports progress or gives values, and none ends unnoticed."""

from __future__ import annotations

import fcntl
import multiprocessing
import os
import resource
import signal
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from multiprocessing.util import Finalize
from pathlib import Path
from typing import Any, NamedTuple, NoReturn, TypeAlias

import cv2

_SHARE_STEP = 0.01
_ALMOST = 0.999
_PATIENCE_SECONDS = 10.0
# What a process may be ahead of the one that takes its values; Linux grants this much to all.
_BYTES_AHEAD = 1 << 20

OnShare: TypeAlias = Callable[[float], None]
Work: TypeAlias = Callable[[OnShare], object]
Source: TypeAlias = Callable[[], Iterable[Any]]
Expected: TypeAlias = tuple[type[Exception], ...]


def peak_memory() -> int:
    """Return the most memory that this process has had, bytes.

    What getrusage says of a process that was begun by a larger one is the larger one's.
    """
    with suppress(OSError, ValueError):
        for line in Path('/proc/self/status').read_text().splitlines():
            if line.startswith('VmHWM:'):
                return 1024 * int(line.split()[1])
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


class WorkError(Exception):
    """A work failed, or its process was killed; ``name`` is that of the work."""

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(reason)
        self.name = name


class _Failure(NamedTuple):
    reason: str


class _End(NamedTuple):
    """The last message of a process that has given everything."""


class _Worker(NamedTuple):
    name: str
    process: BaseProcess
    connection: Connection


def do_works(
    works: Mapping[str, Work],
    jobs: int,
    expected: Expected,
    on_share: Callable[[str, float], None],
) -> None:
    """Do works, given by name: with one job in this process, one after the other.

    :param works: each is called with a function that takes the share done (0..1); for processes
        it must be one that can be pickled
    :param jobs: processes to use; 0 for one per processor
    :param expected: what a work raises where it cannot be done
    :param on_share: called with a name and the share done, 1 only when the work has ended
    :raises WorkError: if one cannot be done in a process of its own, or this was killed; the
        others' processes are ended
    """
    count = min(jobs or len(os.sched_getaffinity(0)), len(works))
    if count > 1:
        _do_in_processes(works, count, expected, on_share)
        return
    for name, work in works.items():
        work(partial(_report, on_share, name))
        on_share(name, 1.0)


def _report(on_share: Callable[[str, float], None], name: str, share: float) -> None:
    # A work is only whole when it has ended.
    on_share(name, min(share, _ALMOST))


def _do_in_processes(
    works: Mapping[str, Work],
    count: int,
    expected: Expected,
    on_share: Callable[[str, float], None],
) -> None:
    waiting = deque(works.items())
    working: dict[object, _Worker] = {}
    try:
        while waiting or working:
            while waiting and len(working) < count:
                name, work = waiting.popleft()
                worker = _begin(name, partial(_shares, work), expected)
                working[worker.connection] = worker
            for ready in wait([worker.connection for worker in working.values()]):
                worker = working[ready]
                message = _received(worker)
                if isinstance(message, _End):
                    worker.connection.close()
                    del working[ready]
                    worker.process.join()
                    on_share(worker.name, 1.0)
                else:
                    _report(on_share, worker.name, message)
    finally:
        _end([worker.process for worker in working.values()])


def value_within(name: str, seconds: float, work: Callable[[], Any], expected: Expected) -> Any:
    """Return what a function returns in a process of its own, which is killed if it takes long.

    :param work: must be one that can be pickled, as what it returns
    :param expected: what it raises where it cannot be done
    :raises WorkError: if it cannot be done or is not done in time
    """
    worker = _begin(name, partial(_values, partial(_once, work)), expected)
    try:
        with worker.connection:
            if not worker.connection.poll(seconds):
                raise WorkError(name, f'not done after {seconds:g} s')
            return _received(worker)
    finally:
        worker.process.kill()
        worker.process.join()


def _once(work: Callable[[], Any]) -> Iterable[Any]:
    return (work(),)


@contextmanager
def worker_streams(
    sources: Mapping[str, Source], expected: Expected
) -> Iterator[list[Iterator[Any]]]:
    """Let a process of its own go through each source; yield what they give, a stream each.

    A process waits while its values are not taken, and is ended with the block.

    :param sources: by name; called there, so they and what they give must be ones that can be
        pickled
    :param expected: what a source raises where it cannot give
    :raises WorkError: from within a stream, if its source cannot give or its process was killed
    """
    workers: list[_Worker] = []
    try:
        for name, source in sources.items():
            workers.append(_begin(name, partial(_values, source), expected))
        yield [_stream(worker) for worker in workers]
    finally:
        _end([worker.process for worker in workers])


def _stream(worker: _Worker) -> Iterator[Any]:
    with worker.connection:
        while not isinstance(message := _received(worker), _End):
            yield message


def start_process(process: BaseProcess) -> None:
    """Start a process that calls `prepare_worker`; Ctrl-C before that waits until then."""
    # Starting it takes the block of the signal away.
    resource_tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        process.start()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _end(processes: list[BaseProcess]) -> None:
    """End processes that are still there, and wait until they are gone."""
    for process in processes:
        process.terminate()
    for process in processes:
        process.join(_PATIENCE_SECONDS)
        if process.is_alive():
            process.kill()
            process.join()


def _begin(
    name: str, talk: Callable[[Callable[[object], None]], None], expected: Expected
) -> _Worker:
    """Start a process that calls ``talk`` with a function that sends a message to this one."""
    # A fresh interpreter: nothing of this one's threads and signal handlers is inherited.
    context = multiprocessing.get_context('spawn')
    ours, theirs = context.Pipe(duplex=False)
    with suppress(OSError):
        fcntl.fcntl(theirs.fileno(), fcntl.F_SETPIPE_SZ, _BYTES_AHEAD)
    process = context.Process(target=_run, args=(theirs, talk, expected), name=name)
    start_process(process)
    # With this end closed, the pipe ends when the process does.
    theirs.close()
    return _Worker(name, process, ours)


def _received(worker: _Worker) -> Any:
    """Return a worker's next message."""
    try:
        message = worker.connection.recv()
    except (EOFError, OSError) as err:
        worker.process.join()
        raise WorkError(
            worker.name,
            f'its process ended with code {worker.process.exitcode} (out of memory, or killed); '
            'run the same command again, what is whole is kept',
        ) from err
    if isinstance(message, _Failure):
        raise WorkError(worker.name, message.reason)
    return message


def _run(
    connection: Connection,
    talk: Callable[[Callable[[object], None]], None],
    expected: Expected,
) -> None:
    prepare_worker()
    send = partial(_send, connection)
    try:
        talk(send)
    except expected as err:
        send(_Failure(str(err)))
    else:
        send(_End())


def _send(connection: Connection, message: object) -> None:
    try:
        connection.send(message)
    except OSError as err:
        # The parent was killed.
        raise SystemExit(1) from err


def _shares(work: Work, send: Callable[[object], None]) -> None:
    sent = 0.0

    def on_share(share: float) -> None:
        nonlocal sent
        if share >= sent + _SHARE_STEP:
            sent = share
            send(share)

    work(on_share)


def _values(source: Source, send: Callable[[object], None]) -> None:
    for value in source():
        send(value)


def prepare_worker() -> None:
    """Make this process one of several: signals end it in order, and it uses one processor."""
    # Unwinds the stack, so that nothing half-written stays.
    _on_stop_signals(_leave)
    # Run before the interpreter waits for threads, where an exit would print a traceback.
    Finalize(None, _on_stop_signals, args=(_stay,), exitpriority=0)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    cv2.setNumThreads(1)


def _on_stop_signals(handler: Callable[[int, object], object]) -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, handler)


def _leave(number: int, _: object) -> NoReturn:
    # A terminal signals every process, and then the parent signals this one once more.
    _on_stop_signals(_stay)
    raise SystemExit(128 + number)


def _stay(_number: int, _frame: object) -> None:
    """Do nothing: this process is ending, and is killed if that takes too long."""
