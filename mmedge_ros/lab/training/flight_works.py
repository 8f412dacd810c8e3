"""Flights of several sets, each in one of them only, and what is made of each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from mmedge_ros.lab.evaluation.bundle_under_test import flight_digest
from mmedge_ros.lab.training import TrainingError
from mmedge_ros.lab.worker_processes import Work, WorkError, do_works

Report = Callable[[float, str], None]


class DistinctFlights:
    """Flights that were given so far."""

    def __init__(self) -> None:
        self._known: dict[str, Path] = {}

    def __len__(self) -> int:
        return len(self._known)

    def digest(self, path: Path) -> str:
        """Return the digest of one more flight.

        :raises TrainingError: if it was given before
        """
        digest = flight_digest(path)
        if digest in self._known:
            raise TrainingError(
                f'{path} is the same flight as {self._known[digest]}; what was learnt from '
                'certifies and judges nothing: give each set flights of its own'
            )
        self._known[digest] = path
        return digest


def do_flight_works(
    works: Mapping[str, Work], jobs: int, expected: tuple[type[Exception], ...], report: Report
) -> None:
    """Do what is to be done for flights, and report the share done and how many are whole.

    :param works: by name of the flight
    :param jobs: processes to use; 0 for one per processor
    :param expected: what a work raises where it cannot be done
    :raises TrainingError: if one cannot be done
    """
    shares: dict[str, float] = {}

    def tell(name: str, share: float) -> None:
        shares[name] = share
        whole = sum(done >= 1.0 for done in shares.values())
        report(sum(shares.values()) / len(works), f'samples of {whole} of {len(works)} flights')

    try:
        do_works(works, jobs, expected, tell)
    except WorkError as err:
        raise TrainingError(f'flight {err.name}: {err}') from err
