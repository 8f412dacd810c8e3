"""Fast DDS's files in shared memory: killed processes leave theirs behind."""

from __future__ import annotations

import fcntl
import time
from contextlib import suppress
from pathlib import Path

import psutil

_FOLDER = Path('/dev/shm')
_PREFIX = 'fastdds_'
_LOCK = '_el'
# A segment is there a moment before its lock is taken.
_YOUNG = 10.0


def segments_of(pid: int) -> set[Path]:
    """Return the middleware's files a process has mapped: its own, and those of its peers."""
    try:
        lines = Path(f'/proc/{pid}/maps').read_text(errors='replace').splitlines()
    except OSError:
        return set()
    paths = (Path(line.split(maxsplit=5)[5]) for line in lines if _PREFIX in line)
    return {p for p in paths if p.parent == _FOLDER and p.name.startswith(_PREFIX)}


def left_behind() -> set[Path]:
    """Return files that may be of processes killed some time ago: all that are old enough."""
    segments = set()
    for path in _FOLDER.glob(f'{_PREFIX}*'):
        with suppress(OSError):
            if time.time() - path.stat().st_mtime > _YOUNG:
                segments.add(path.with_name(path.name.removesuffix(_LOCK)))
    return segments


def unused(segments: set[Path]) -> set[Path]:
    """Return those whose owner is gone and that no process has mapped.

    The owner's lock is looked at as well, because processes in other containers cannot be seen.
    """
    if not segments:
        return set()
    used: set[Path] = set()
    for pid in psutil.pids():
        used |= segments_of(pid)
    return {s for s in segments - used if not _is_held(s.with_name(s.name + _LOCK))}


def remove_unused(segments: set[Path]) -> None:
    """Remove those that are `unused`, with all that belongs."""
    for segment in unused(segments):
        lock = segment.with_name(segment.name + _LOCK)
        for path in (segment, lock, segment.with_name(f'sem.{segment.name}_mutex')):
            with suppress(PermissionError):
                path.unlink(missing_ok=True)


def _is_held(lock: Path) -> bool:
    try:
        with lock.open('rb') as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except OSError:
        return True
    return False
