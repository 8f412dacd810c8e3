"""Many flights at once: those that are already whole are kept, the rest is simulated."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections import deque
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import NamedTuple, NoReturn

import cv2

from mmedge_ros.simulation.errors import SimulationError
from mmedge_ros.simulation.flight import simulate_flight
from mmedge_ros.simulation.flight_folder import FlightDescription, read_description

_TELL_STEP = 0.01
_LAST_WORDS_SECONDS = 10.0


class PlannedFlight(NamedTuple):
    """A flight to simulate: the name of its folder, and what it is made from."""

    name: str
    scenario: str
    seed: int
    seconds: float


class SetProgress(NamedTuple):
    """How far a set is: share of its seconds 0..1, flights that are whole, and of how many."""

    share: float
    whole: int
    flights: int


def simulate_set(
    folder: Path,
    flights: Sequence[PlannedFlight],
    jobs: int = 1,
    on_progress: Callable[[SetProgress], None] | None = None,
) -> list[Path]:
    """Simulate flights into folders below ``folder`` and return these, in the given order.

    A whole flight of the same description is kept, so a stopped run goes on where it was.

    :param jobs: processes to use; 0 for one per processor
    :raises SimulationError: if a flight cannot be simulated; the others' processes are ended
    """
    _require_different([flight.name for flight in flights])
    tally = _Tally(folder, flights, on_progress)
    todo = [flight for flight in flights if not tally.is_whole(flight)]
    tally.tell()
    count = min(jobs or _processors(), len(todo))
    if count > 1:
        _simulate_in_processes(folder, todo, count, tally)
    else:
        for flight in todo:
            _simulate_here(folder, flight, tally)
    return [folder / flight.name for flight in flights]


class _Tally:
    """Who is how far."""

    def __init__(
        self,
        folder: Path,
        flights: Sequence[PlannedFlight],
        on_progress: Callable[[SetProgress], None] | None,
    ) -> None:
        self._seconds = {flight.name: flight.seconds for flight in flights}
        self._on_progress = on_progress
        self._shares = {flight.name: float(_is_whole(folder, flight)) for flight in flights}

    def is_whole(self, flight: PlannedFlight) -> bool:
        return self._shares[flight.name] >= 1.0

    def update(self, flight: PlannedFlight, share: float, whole: bool = False) -> None:
        # A flight whose messages are all there has yet to take its place.
        self._shares[flight.name] = 1.0 if whole else min(share, 0.999)
        self.tell()

    def tell(self) -> None:
        if self._on_progress is None:
            return
        total = sum(self._seconds.values()) or 1.0
        done = sum(self._seconds[name] * share for name, share in self._shares.items())
        whole = sum(share >= 1.0 for share in self._shares.values())
        self._on_progress(SetProgress(done / total, whole, len(self._shares)))


def _is_whole(folder: Path, flight: PlannedFlight) -> bool:
    expected = FlightDescription(flight.scenario, flight.seed, flight.seconds)
    return read_description(folder / flight.name) == expected


def _require_different(names: list[str]) -> None:
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise SimulationError(f'the set has two flights named {twice[0]!r}; rename one')


def _processors() -> int:
    return len(os.sched_getaffinity(0))


def _simulate_here(folder: Path, flight: PlannedFlight, tally: _Tally) -> None:
    simulate_flight(
        folder / flight.name,
        flight.scenario,
        flight.seed,
        flight.seconds,
        lambda share: tally.update(flight, share),
    )
    tally.update(flight, 1.0, whole=True)


class _Worker(NamedTuple):
    process: BaseProcess
    flight: PlannedFlight


def _simulate_in_processes(
    folder: Path, todo: Sequence[PlannedFlight], count: int, tally: _Tally
) -> None:
    waiting = deque(todo)
    working: dict[Connection, _Worker] = {}
    try:
        while waiting or working:
            while waiting and len(working) < count:
                connection, worker = _begin(folder, waiting.popleft())
                working[connection] = worker
            for ready in wait(list(working)):
                assert isinstance(ready, Connection)
                if _has_ended(ready, working[ready], tally):
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


def _begin(folder: Path, flight: PlannedFlight) -> tuple[Connection, _Worker]:
    # A fresh interpreter: nothing of this one's threads and signal handlers is inherited.
    context = multiprocessing.get_context('spawn')
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_work, args=(theirs, folder, flight), name=flight.name)
    process.start()
    # The end of the pipe then tells that the process has ended.
    theirs.close()
    return ours, _Worker(process, flight)


def _has_ended(connection: Connection, worker: _Worker, tally: _Tally) -> bool:
    """Take in what a worker says; True after its last word."""
    name = worker.flight.name
    try:
        word = connection.recv()
    except (EOFError, OSError) as err:
        worker.process.join()
        raise SimulationError(
            f'flight {name}: its process ended with code {worker.process.exitcode}; run the '
            'same command again, whole flights are kept'
        ) from err
    if isinstance(word, str):
        raise SimulationError(f'flight {name}: {word}')
    tally.update(worker.flight, word or 0.0, whole=word is None)
    return word is None


def _work(connection: Connection, folder: Path, flight: PlannedFlight) -> None:
    """Simulate one flight; says the share done (float), then None, or why it failed (str)."""
    # Unwinds the stack, so that nothing half-written stays.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _leave)
    cv2.setNumThreads(1)
    told = 0.0

    def tell(share: float) -> None:
        nonlocal told
        if share >= told + _TELL_STEP:
            told = share
            _say(connection, share)

    try:
        target = folder / flight.name
        simulate_flight(target, flight.scenario, flight.seed, flight.seconds, tell)
    except SimulationError as err:
        _say(connection, str(err))
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
