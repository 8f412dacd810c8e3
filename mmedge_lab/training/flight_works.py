"""Flights of several sets, each in one of them only; what is made of each is kept on disk."""

from __future__ import annotations

import hashlib
import io
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from mmedge_lab.judging.bundle_under_test import flight_digest
from mmedge_lab.judging.flight_workers import do_flight_works
from mmedge_lab.training import Report, TrainingError
from mmedge_lab.worker_processes import Work
from mmedge_ros.data_types import NS_PER_S, Unit
from mmedge_ros.geometry.ego_motion import EgoReport
from mmedge_ros.replay.recording import Recording


class FlightFolders:
    """Folders for the results of flights, each of which may be given once.

    :param made_from: a text of all that these results depend on beside the flights
    """

    def __init__(self, work: Path, made_from: str) -> None:
        self._folder = work / hashlib.sha256(made_from.encode()).hexdigest()[:12]
        self._known: dict[str, Path] = {}

    def __len__(self) -> int:
        """How many flights were given so far."""
        return len(self._known)

    def of(self, path: Path) -> Path:
        """Return the folder of one more flight.

        :raises TrainingError: if it was given before
        """
        digest = flight_digest(path)
        if digest in self._known:
            raise TrainingError(
                f'{path} is the same flight as {self._known[digest]}; what was learnt from '
                'certifies and judges nothing: give each set flights of its own'
            )
        self._known[digest] = path
        return self._folder / digest[:12]


class FlightBeginning(Recording):
    """A recording of which only the first seconds are read, or all for 0."""

    def __init__(self, path: Path, seconds: float) -> None:
        super().__init__(path)
        self._length_ns = round(seconds * NS_PER_S)

    def events(self) -> Iterator[Unit | EgoReport]:
        end_ns: int | None = None
        for event in super().events():
            if end_ns is None and self._length_ns and isinstance(event, Unit):
                end_ns = event.available_ns + self._length_ns
            if end_ns is not None and event.available_ns > end_ns:
                return
            yield event


def make_of_flights(
    works: Mapping[str, Work], jobs: int, report: Report, words: str = 'samples'
) -> None:
    """Do the works of flights, each given by the flight's name.

    :param jobs: processes to use; 0 for one per processor
    :param words: what comes of the flights, for the progress
    :raises TrainingError: if one cannot be done
    """

    def on_progress(share: float, whole: int) -> None:
        report(share, f'{words}: {whole} of {len(works)} flights')

    do_flight_works(works, jobs, on_progress, TrainingError)


def keep_arrays(path: Path, arrays: Mapping[str, Any]) -> None:
    """Write arrays by name, whole or not at all.

    :raises TrainingError: if they cannot be written
    """
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)
    write_whole(path, buffer.getvalue())


def kept_arrays(path: Path) -> dict[str, np.ndarray] | None:
    """Read arrays by name; None where there are none.

    :raises TrainingError: if they are damaged
    """
    try:
        with np.load(path, allow_pickle=False) as file:
            return dict(file)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as err:
        raise TrainingError(
            f'{path} cannot be read ({err}); delete it and run the same command again'
        ) from err


def missing(path: Path) -> TrainingError:
    """Return the error for results of a flight that should be there."""
    return TrainingError(
        f'{path} is missing or of another version; delete it and run the same command again'
    )


def write_whole(path: Path, data: bytes) -> None:
    """Write a file as a whole: a process that is killed leaves none that is cut.

    :raises TrainingError: if it cannot be written
    """
    partial = path.with_name(f'{path.name}.part')
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        partial.write_bytes(data)
        partial.replace(path)
    except OSError as err:
        raise TrainingError(f'{path} cannot be written: {err.strerror or err}') from err
