"""Arrays made of the flights of several sets, each flight in one of them only; kept on disk."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TypeAlias

import numpy as np

from mmedge_lab.flight_workers import do_flight_works
from mmedge_lab.judging.bundle_under_test import flight_digest
from mmedge_lab.training import Report, TrainingError
from mmedge_lab.training.checkpoint import whole_folder
from mmedge_lab.worker_processes import OnShare
from mmedge_ros.core.data_types import NS_PER_S, Unit
from mmedge_ros.geometry.sensor_rig import RigReport
from mmedge_ros.replay.recording import Recording

Arrays: TypeAlias = Mapping[str, np.ndarray]
# Makes arrays of a flight, which has a number among those of all sets.
MakeArrays: TypeAlias = Callable[[Path, int, OnShare], Arrays]


class FlightArrays:
    """Makes arrays of flights in processes; what is there already is not made again.

    :param work: folder that keeps them
    :param made_from: a text of all that they depend on beside the flights
    :param sets: flights by the name of their set
    :param jobs: processes to use; 0 for one per processor
    :raises TrainingError: if a flight is in two sets
    """

    def __init__(
        self, work: Path, made_from: str, sets: Mapping[str, Sequence[Path]], jobs: int
    ) -> None:
        self._work, self._jobs, self._sets = work, jobs, sets
        self._folder = work / hashlib.sha256(made_from.encode()).hexdigest()[:12]
        self._folders: dict[Path, Path] = {}
        known: dict[str, Path] = {}
        for path in (path for flights in sets.values() for path in flights):
            digest = flight_digest(path)
            if digest in known:
                raise TrainingError(
                    f'{path} is the same flight as {known[digest]}; give each flight once: what '
                    'was learnt from certifies and judges nothing'
                )
            known[digest] = path
            self._folders[path] = self._folder / digest[:12]

    def of(
        self, name: str, make: MakeArrays, report: Report, words: str = 'samples', kind: str = ''
    ) -> dict[Path, Arrays]:
        """Return the arrays of each flight of a set, by the folder that keeps them.

        :param make: it must be one that can be pickled
        :param words: what comes of the flights, for the progress
        :param kind: tells apart what is made of one flight
        :raises TrainingError: if they cannot be made or read
        :raises ReportError: if they cannot be written
        """
        numbers = {path: number for number, path in enumerate(self._folders)}
        folders = {path: self._folders[path] / (kind or words) for path in self._sets[name]}
        works = {
            f'{numbers[path]}/{path.name}': partial(_make, make, path, numbers[path], folder)
            for path, folder in folders.items()
            if not folder.is_dir()
        }

        def on_progress(share: float, whole: int) -> None:
            report(share, f'{words}: {whole} of {len(folders)} flights')

        whole = len(folders) - len(works)
        do_flight_works(works, self._jobs, on_progress, TrainingError, whole)
        return {folder: read_arrays(folder) for folder in folders.values()}

    def remove(self) -> None:
        """Remove what was kept; the folder stays where others keep something there."""
        shutil.rmtree(self._folder, ignore_errors=True)
        with suppress(OSError):
            self._work.rmdir()


def _make(make: MakeArrays, path: Path, number: int, folder: Path, on_share: OnShare) -> None:
    """Make and write arrays: a process that is killed leaves no folder that lacks some."""
    arrays = make(path, number, on_share)
    with whole_folder(folder) as part:
        for name, values in arrays.items():
            # Written as a stream: a memory map would end the process where the disk is full.
            np.save(part / f'{name}.npy', values, allow_pickle=False)
    on_share(1.0)


def read_arrays(folder: Path) -> Arrays:
    """Open the arrays that a folder keeps; they stay on disk.

    :raises TrainingError: if one is damaged
    """
    arrays = {}
    for path in sorted(folder.glob('*.npy')):
        try:
            values = np.load(path, mmap_mode='r', allow_pickle=False)
        except (OSError, ValueError, EOFError) as err:
            raise TrainingError(
                f'{path} cannot be read ({err}); delete {folder} and run the same command again'
            ) from err
        arrays[path.stem] = np.asarray(values)
    return arrays


class FlightBeginning(Recording):
    """A recording of which only the first seconds are read, or all for 0."""

    def __init__(self, path: Path, seconds: float) -> None:
        super().__init__(path)
        self._length_ns = round(seconds * NS_PER_S)

    def events(self) -> Iterator[Unit | RigReport]:
        end_ns: int | None = None
        for event in super().events():
            if end_ns is None and self._length_ns and isinstance(event, Unit):
                end_ns = event.available_ns + self._length_ns
            if end_ns is not None and event.available_ns > end_ns:
                return
            yield event
