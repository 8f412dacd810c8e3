"""Folders that are either whole or not there, however a run ends.

A flight is written into a hidden folder beside its place and renamed when nothing is missing
any more. The hidden folder is locked while it is written, so what a killed run left differs from
work in progress, and is removed by the next run for the same place.
"""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from mmedge_lab.simulation import SimulationError
from mmedge_ros.core.untrusted_files import PlainYamlError, load_plain_yaml

FLIGHT_FILE = 'flight.yaml'
_METADATA = 'metadata.yaml'
_FLIGHT_FILES = (_METADATA, '*.mcap', '*.db3')
_REPLACED = 'replaced'
_MAX_BYTES = 100_000
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)

# Counts changes after which a seed no longer gives the same flight.
SIMULATOR_VERSION = 1


@dataclass(frozen=True)
class FlightDescription:
    """What a flight was made from: enough to make it again, byte for byte.

    ``trace_only``: it holds the states of computer and battery, and no sensor's data.
    ``patrol`` and ``condition``: as `build_world` has them.
    """

    scenario: str
    seed: int
    seconds: float
    simulator: int = SIMULATOR_VERSION
    trace_only: bool = False
    patrol: bool = False
    condition: str = ''

    def values(self) -> dict[str, Any]:
        """Return what is stored with the flight; what is not so is not mentioned."""
        return {
            name: value
            for name, value in asdict(self).items()
            if value is not False and value != ''
        }


def read_description(folder: Path) -> FlightDescription | None:
    """Return what a whole flight was made from; None if the folder holds none of ours."""
    needed = (_METADATA, f'{folder.name}.mcap')
    return _described(folder) if all((folder / name).is_file() for name in needed) else None


def _described(folder: Path) -> FlightDescription | None:
    try:
        content: dict[Any, Any] = load_plain_yaml(folder / FLIGHT_FILE, _MAX_BYTES)
        return FlightDescription(
            str(content['scenario']),
            int(content['seed']),
            float(content['seconds']),
            int(content['simulator']),
            bool(content.get('trace_only', False)),
            bool(content.get('patrol', False)),
            str(content.get('condition', '')),
        )
    except (PlainYamlError, KeyError, TypeError, ValueError):
        return None


@contextmanager
def whole_folder(target: Path) -> Iterator[Path]:
    """Yield a path to write a flight folder to; it takes its place when the block ends well.

    A flight that was there before is replaced, and stays as it was when the block fails.

    :raises SimulationError: if the place is taken by something else or by another run, or
        cannot be written; also, in place of an OSError, from within the block
    """
    target = Path(os.path.abspath(target))  # noqa: PTH100 (a link is replaced, not followed)
    part = target.parent / f'.{target.name}.simulating'
    try:
        require_free(target)
        target.parent.mkdir(parents=True, exist_ok=True)
        lock = _claim(part)
        try:
            _clear(part, target)
        except OSError:
            os.close(lock)
            raise
    except (OSError, ValueError) as err:
        raise _cannot_write(target, err) from err
    try:
        yield part / target.name
        _put_in_place(part, target)
    except OSError as err:
        raise _cannot_write(target, err) from err
    finally:
        shutil.rmtree(part, ignore_errors=True)
        os.close(lock)


def require_free(target: Path) -> None:
    """Make sure that a flight may be put there.

    :raises SimulationError: if that would overwrite something that is no flight of ours
    """
    if not os.path.lexists(target):
        return
    if target.is_dir() and not target.is_symlink():
        names = [path.name for path in target.iterdir()]
        if not names:
            return
        ours = {FLIGHT_FILE, _METADATA, f'{target.name}.mcap'}
        foreign = [name for name in names if name not in ours]
        if _described(target) is not None and not foreign:
            return
        what = f'holds {sorted(foreign)[0]!r}' if foreign else 'is no simulated flight'
    else:
        what = 'is no folder'
    raise SimulationError(
        f'{target} exists and {what}, so nothing was written; name another folder, or move away '
        'what is there'
    )


def _claim(part: Path) -> int:
    """Make and lock the hidden folder."""
    for _ in range(2):
        part.mkdir(exist_ok=True)
        lock = os.open(part, os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(lock)
            break
        # The run that held it may have removed the folder in between.
        if part.exists() and os.path.samestat(os.fstat(lock), part.stat()):
            return lock
        os.close(lock)
    raise SimulationError(
        f'another run is writing this flight ({part}); wait for it, or name another folder'
    )


def _clear(part: Path, target: Path) -> None:
    """Remove what a killed run left."""
    replaced = part / _REPLACED
    if replaced.exists() and not os.path.lexists(target):
        # Killed between two renames: the earlier flight is still whole.
        replaced.rename(target)
    for path in part.iterdir():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()


def _put_in_place(part: Path, target: Path) -> None:
    whole = part / target.name
    for path in whole.iterdir():
        _flush(path)
    require_free(target)
    if target.exists():
        # Out of sight in one step; from here on it is either the old flight or the new one.
        target.rename(part / _REPLACED)
    whole.rename(target)
    _flush(target.parent)


def _flush(path: Path) -> None:
    """Have the system write a file or folder to the disk: a full one fails now."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _cannot_write(target: Path, err: OSError | ValueError) -> SimulationError:
    if isinstance(err, SimulationError):
        return SimulationError(*err.args)
    reason = err.strerror if isinstance(err, OSError) and err.strerror else str(err)
    remedy = 'name a folder that can be written'
    if isinstance(err, OSError) and err.errno in _NO_ROOM:
        remedy = 'a flight takes about 3 MB per second: free that room, or name another disk'
    return SimulationError(
        f'cannot write the flight {str(target)!r}: {reason}; nothing of it was kept; {remedy}'
    )


def flights_in(folder: Path) -> tuple[Path, ...]:
    """Return the flights of a set, by name; a folder that is itself a flight is its only one.

    :raises SimulationError: if there is none
    """
    try:
        if _is_flight(folder):
            return (folder,)
        below = sorted(folder.iterdir()) if folder.is_dir() else []
        # Hidden folders are flights that are just being written, or were cut short.
        flights = tuple(p for p in below if not p.name.startswith('.') and _is_flight(p))
    except OSError as err:
        raise SimulationError(f'{folder} cannot be read: {err.strerror or err}') from err
    if not flights:
        raise SimulationError(
            f'{folder} holds no flights; name a folder with one folder per flight, as '
            '`mmedge simulate` writes them'
        )
    return flights


def _is_flight(folder: Path) -> bool:
    return folder.is_dir() and any(True for name in _FLIGHT_FILES for _ in folder.glob(name))
