"""Works at once, a process each: they tell how far they are, and nobody dies unnoticed."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from multiprocessing.util import Finalize
from typing import NamedTuple, NoReturn, TypeAlias

import cv2

_TELL_STEP = 0.01
_ALMOST = 0.999
_LAST_WORDS_SECONDS = 10.0

Tell: TypeAlias = Callable[[float], None]
Work: TypeAlias = Callable[[Tell], object]


class WorkError(Exception):
    """A work failed, or its process was killed; ``name`` is that of the work."""

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(reason)
        self.name = name


class _Worker(NamedTuple):
    process: BaseProcess
    name: str


def do_works(
    works: Mapping[str, Work],
    jobs: int,
    expected: tuple[type[Exception], ...],
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
        work(partial(_tell, on_share, name))
        on_share(name, 1.0)


def _tell(on_share: Callable[[str, float], None], name: str, share: float) -> None:
    # Whole it is only when the last word says so.
    on_share(name, min(share, _ALMOST))


def _do_in_processes(
    works: Mapping[str, Work],
    count: int,
    expected: tuple[type[Exception], ...],
    on_share: Callable[[str, float], None],
) -> None:
    waiting = deque(works.items())
    working: dict[Connection, _Worker] = {}
    try:
        while waiting or working:
            while waiting and len(working) < count:
                connection, worker = _begin(*waiting.popleft(), expected)
                working[connection] = worker
            for ready in wait(list(working)):
                assert isinstance(ready, Connection)
                share = _heard(ready, working[ready])
                if share is None:
                    ready.close()
                    ended = working.pop(ready)
                    ended.process.join()
                    on_share(ended.name, 1.0)
                else:
                    _tell(on_share, working[ready].name, share)
    finally:
        end_processes([worker.process for worker in working.values()])


def start_process(process: BaseProcess) -> None:
    """Start a process that calls `prepare_worker`; Ctrl-C before that waits until then."""
    # Starting it takes the block of the signal away.
    resource_tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        process.start()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def end_processes(processes: Iterable[BaseProcess]) -> None:
    """End processes that are still there, and wait until they are gone."""
    processes = list(processes)
    for process in processes:
        process.terminate()
    for process in processes:
        process.join(_LAST_WORDS_SECONDS)
        if process.is_alive():
            process.kill()
            process.join()


def _begin(
    name: str, work: Work, expected: tuple[type[Exception], ...]
) -> tuple[Connection, _Worker]:
    # A fresh interpreter: nothing of this one's threads and signal handlers is inherited.
    context = multiprocessing.get_context('spawn')
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_run, args=(theirs, work, expected), name=name)
    start_process(process)
    # The end of the pipe then tells that the process has ended.
    theirs.close()
    return ours, _Worker(process, name)


def _heard(connection: Connection, worker: _Worker) -> float | None:
    """Return the share that a worker tells; None after its last word."""
    try:
        word: float | str | None = connection.recv()
    except (EOFError, OSError) as err:
        worker.process.join()
        raise WorkError(
            worker.name,
            f'its process ended with code {worker.process.exitcode} (out of memory, or killed); '
            'run the same command again, what is done is kept',
        ) from err
    if isinstance(word, str):
        raise WorkError(worker.name, word)
    return word


def _run(connection: Connection, work: Work, expected: tuple[type[Exception], ...]) -> None:
    """Work; says the share done (float), then None, or why it failed (str)."""
    prepare_worker()
    told = 0.0

    def tell(share: float) -> None:
        nonlocal told
        if share >= told + _TELL_STEP:
            told = share
            say_or_leave(connection, share)

    try:
        work(tell)
    except expected as err:
        say_or_leave(connection, str(err))
    else:
        say_or_leave(connection, None)


def prepare_worker() -> None:
    """Make this process one of several: it ends when told to, and uses one processor."""
    # Unwinds the stack, so that nothing half-written stays.
    _on_stop_signals(_leave)
    # Run before the interpreter waits for threads, where an exit would print a traceback.
    Finalize(None, _on_stop_signals, args=(_stay,), exitpriority=0)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    cv2.setNumThreads(1)


def say_or_leave(connection: Connection, word: object) -> None:
    """Send a word to the parent; end this process if nobody listens."""
    try:
        connection.send(word)
    except OSError as err:
        # Nobody listens any more: the parent was killed.
        raise SystemExit(1) from err


def _on_stop_signals(handler: Callable[[int, object], object]) -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, handler)


def _leave(number: int, _: object) -> NoReturn:
    # A terminal tells every process, and then the parent tells this one once more.
    _on_stop_signals(_stay)
    raise SystemExit(128 + number)


def _stay(_number: int, _frame: object) -> None:
    """Do nothing: this process ends already, and whoever waits for it kills it in the end."""
