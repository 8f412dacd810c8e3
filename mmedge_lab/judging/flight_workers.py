"""Flights of an evaluation in parallel, a process each; finished cases are kept."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Protocol, TypeVar

from mmedge_lab.judging import EvaluationError
from mmedge_lab.judging.flight_cases import FlightTask, evaluate_flight
from mmedge_lab.ray_workers import Files, FolderWork, do_works_on_ray
from mmedge_lab.worker_processes import OnShare, Work, WorkError, do_works
from mmedge_ros import MmedgeError
from mmedge_ros.report.report_files import write_files

OnProgress = Callable[[float, int], None]


class FlightWork(Protocol):
    """The cases of one flight, and those still without a result."""

    @property
    def name(self) -> str: ...

    def pending(self) -> Sequence[object]: ...


AnyWork = TypeVar('AnyWork', bound=FlightWork)


def evaluate_flights(
    tasks: Sequence[FlightTask],
    jobs: int = 1,
    on_progress: OnProgress | None = None,
    ray: str = '',
) -> None:
    """Evaluate flights for a bundle's report, see `work_through`."""
    work_through(tasks, evaluate_flight, jobs, on_progress, ray)


def work_through(
    tasks: Sequence[AnyWork],
    evaluate: Callable[[AnyWork, OnShare], None],
    jobs: int = 1,
    on_progress: OnProgress | None = None,
    ray: str = '',
) -> None:
    """Evaluate flights; those whose results are all there take no time.

    :param evaluate: evaluates what is pending and keeps it, and reports the share done; it must
        be picklable for processes
    :param ray: address of a cluster that does it, where tasks are dataclasses with flight,
        bundle, cases and folder; '' for processes here
    :raises ClusterError: if the cluster cannot be used
    :raises EvaluationError: if a flight cannot be evaluated or its process was killed
    """
    pending = {task.name: task for task in tasks if task.pending()}
    whole = len(tasks) - len(pending)
    if not ray:
        works = {name: partial(evaluate, task) for name, task in pending.items()}
        do_flight_works(works, jobs, on_progress, EvaluationError, whole)
        return
    folders: dict[str, Path] = {name: shipped(task).folder for name, task in pending.items()}
    do_flight_works_on_ray(
        ray,
        {name: partial(_evaluated_in, evaluate, shipped(task)) for name, task in pending.items()},
        lambda name, files: keep_files(folders[name], files),
        on_progress,
        EvaluationError,
        whole,
    )


def shipped(task: Any) -> Any:
    """Return a task for another machine: only what is pending, under paths that hold there."""
    bundle = replace(task.bundle, folder=task.bundle.folder.absolute())
    return replace(task, flight=task.flight.absolute(), bundle=bundle, cases=task.pending())


def _evaluated_in(evaluate: Callable[[Any, OnShare], None], task: Any, folder: Path) -> None:
    evaluate(replace(task, folder=folder), lambda _: None)


def keep_files(folder: Path, files: Files) -> None:
    """Write what came from another machine.

    :raises ReportError: if that is not possible
    """
    for name, content in files.items():
        path = folder / name
        write_files(path.parent, {path.name: content})


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
    update = _progress(works, on_progress, whole)
    with _said_of_flights(error):
        do_works(works, jobs, (MmedgeError,), update)


def do_flight_works_on_ray(
    address: str,
    works: Mapping[str, FolderWork],
    keep: Callable[[str, Files], None],
    on_progress: OnProgress | None,
    error: type[MmedgeError],
    whole: int = 0,
) -> None:
    """Do the works of flights on a cluster, see `do_works_on_ray` and `do_flight_works`."""
    update = _progress(works, on_progress, whole)

    def keep_and_report(name: str, files: Files) -> None:
        keep(name, files)
        update(name, 1.0)

    with _said_of_flights(error):
        do_works_on_ray(address, works, (MmedgeError,), keep_and_report)


def _progress(
    names: Iterable[str], on_progress: OnProgress | None, whole: int
) -> Callable[[str, float], None]:
    """Return what takes the share done of a flight, and report that nothing is done yet."""
    shares = dict.fromkeys(names, 0.0)
    flights = len(shares) + whole

    def report() -> None:
        if on_progress and flights:
            ended = whole + sum(share >= 1.0 for share in shares.values())
            on_progress((whole + sum(shares.values())) / flights, ended)

    def update(name: str, share: float) -> None:
        shares[name] = share
        report()

    report()
    return update


@contextmanager
def _said_of_flights(error: type[MmedgeError]) -> Iterator[None]:
    """Name the flight in an error, where its own words do not."""
    try:
        yield
    except WorkError as err:
        text = str(err)
        raise error(text if err.name in text else f'flight {err.name}: {text}') from err
