"""Works on flights in parallel, a process each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager

from mmedge_lab.worker_processes import Work, WorkError, do_works
from mmedge_ros import MmedgeError

OnProgress = Callable[[float, int], None]


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
