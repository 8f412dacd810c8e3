"""Flights of an evaluation in parallel, a process each; finished cases are kept."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Protocol, TypeVar

from mmedge_lab.judging import EvaluationError
from mmedge_lab.judging.flight_cases import FlightTask, evaluate_flight
from mmedge_lab.worker_processes import OnShare, Work, WorkError, do_works
from mmedge_ros import MmedgeError

OnProgress = Callable[[float, int], None]


class FlightWork(Protocol):
    """The cases of one flight, and those still without a result."""

    @property
    def name(self) -> str: ...

    def pending(self) -> Sequence[object]: ...


AnyWork = TypeVar('AnyWork', bound=FlightWork)


def evaluate_flights(
    tasks: Sequence[FlightTask], jobs: int = 1, on_progress: OnProgress | None = None
) -> None:
    """Evaluate flights for a bundle's report, see `work_through`."""
    work_through(tasks, evaluate_flight, jobs, on_progress)


def work_through(
    tasks: Sequence[AnyWork],
    evaluate: Callable[[AnyWork, OnShare], None],
    jobs: int = 1,
    on_progress: OnProgress | None = None,
) -> None:
    """Evaluate flights; those whose results are all there take no time.

    :param evaluate: evaluates what is pending and keeps it, and reports the share done; it must
        be picklable for processes
    :raises EvaluationError: if a flight cannot be evaluated or its process was killed
    """
    pending = {task.name: task for task in tasks if task.pending()}
    works = {name: partial(evaluate, task) for name, task in pending.items()}
    do_flight_works(works, jobs, on_progress, EvaluationError, len(tasks) - len(pending))


def do_flight_works(
    works: Mapping[str, Work],
    jobs: int,
    on_progress: OnProgress | None,
    error: type[MmedgeError],
    whole: int = 0,
) -> None:
    """Do the works of flights, each given by the flight's name.

    :param jobs: processes to use; 0 for one per processor
    :param on_progress: called with the share done (0..1) and the number of whole flights
    :param error: raised if a work fails or its process was killed; the others' are ended
    :param whole: flights without a work
    """
    shares = dict.fromkeys(works, 0.0)
    flights = len(shares) + whole

    def update(name: str = '', share: float = 0.0) -> None:
        if name:
            shares[name] = share
        if on_progress and flights:
            ended = whole + sum(share >= 1.0 for share in shares.values())
            on_progress((whole + sum(shares.values())) / flights, ended)

    update()
    try:
        do_works(works, jobs, (MmedgeError,), update)
    except WorkError as err:
        text = str(err)
        raise error(text if err.name in text else f'flight {err.name}: {text}') from err
