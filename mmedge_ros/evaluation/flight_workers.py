"""Flights of an evaluation at once, a process each; what is done is kept whoever is killed."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import NamedTuple, NoReturn

import cv2

from mmedge_ros.encoding.detector import EncodingError
from mmedge_ros.evaluation.errors import EvaluationError
from mmedge_ros.evaluation.flight_cases import FlightTask, evaluate_flight
from mmedge_ros.fusion.errors import FusionError
from mmedge_ros.replay.errors import ReplayError

_TELL_STEP = 0.01
_LAST_WORDS_SECONDS = 10.0

OnProgress = Callable[[float, int], None]


class _Worker(NamedTuple):
    process: BaseProcess
    task: FlightTask


def evaluate_flights(
    tasks: Sequence[FlightTask], jobs: int = 1, on_progress: OnProgress | None = None
) -> None:
    """Evaluate flights; those whose results are all there take no time.

    :param jobs: processes to use; 0 for one per processor
    :param on_progress: called with the share done (0..1) and the number of whole flights
    :raises EvaluationError: if a flight cannot be evaluated or its process was killed; the
        others' processes are ended
    """
    todo = [task for task in tasks if task.pending()]
    progress = _Progress(tasks, todo, on_progress)
    progress.tell()
    count = min(jobs or len(os.sched_getaffinity(0)), len(todo))
    if count > 1:
        _evaluate_in_processes(todo, count, progress)
        return
    for task in todo:
        evaluate_flight(task, partial(progress.update, task.name))
        progress.update(task.name, 1.0)


class _Progress:
    """Who is how far."""

    def __init__(
        self,
        tasks: Sequence[FlightTask],
        todo: Sequence[FlightTask],
        on_progress: OnProgress | None,
    ) -> None:
        self._shares = {task.name: 1.0 for task in tasks} | {task.name: 0.0 for task in todo}
        self._on_progress = on_progress

    def update(self, name: str, share: float) -> None:
        self._shares[name] = share
        self.tell()

    def tell(self) -> None:
        if self._on_progress and self._shares:
            shares = self._shares.values()
            self._on_progress(sum(shares) / len(shares), sum(share >= 1.0 for share in shares))


def _evaluate_in_processes(todo: Sequence[FlightTask], count: int, progress: _Progress) -> None:
    waiting = deque(todo)
    working: dict[Connection, _Worker] = {}
    try:
        while waiting or working:
            while waiting and len(working) < count:
                connection, worker = _begin(waiting.popleft())
                working[connection] = worker
            for ready in wait(list(working)):
                assert isinstance(ready, Connection)
                if _has_ended(ready, working[ready], progress):
                    ready.close()
                    working.pop(ready).process.join()
    finally:
        for worker in working.values():
            worker.process.terminate()
        for worker in working.values():
            worker.process.join(_LAST_WORDS_SECONDS)
            if worker.process.is_alive():
                worker.process.kill()
                worker.process.join()


def _begin(task: FlightTask) -> tuple[Connection, _Worker]:
    # A fresh interpreter: nothing of this one's threads and signal handlers is inherited.
    context = multiprocessing.get_context('spawn')
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_work, args=(theirs, task), name=task.name)
    process.start()
    # The end of the pipe then tells that the process has ended.
    theirs.close()
    return ours, _Worker(process, task)


def _has_ended(connection: Connection, worker: _Worker, progress: _Progress) -> bool:
    """Take in what a worker says; True after its last word."""
    name = worker.task.name
    try:
        word = connection.recv()
    except (EOFError, OSError) as err:
        worker.process.join()
        raise EvaluationError(
            f'flight {name}: its process ended with code {worker.process.exitcode} (out of '
            'memory, or killed); run the same command again, what is done is kept'
        ) from err
    if isinstance(word, str):
        raise EvaluationError(word)
    progress.update(name, 1.0 if word is None else word)
    return word is None


def _work(connection: Connection, task: FlightTask) -> None:
    """Evaluate one flight; says the share done (float), then None, or why it failed (str)."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _leave)
    cv2.setNumThreads(1)
    told = 0.0

    def tell(share: float) -> None:
        nonlocal told
        if share >= told + _TELL_STEP:
            told = share
            # Whole it is when the last word says so.
            _say(connection, min(share, 0.999))

    try:
        evaluate_flight(task, tell)
    except (EncodingError, EvaluationError, FusionError, ReplayError) as err:
        text = str(err)
        _say(connection, text if task.name in text else f'flight {task.name}: {text}')
    else:
        _say(connection, None)


def _say(connection: Connection, word: float | str | None) -> None:
    try:
        connection.send(word)
    except OSError as err:
        # Nobody listens any more: the parent was killed.
        raise SystemExit(1) from err


def _leave(number: int, _: object) -> NoReturn:
    raise SystemExit(128 + number)
