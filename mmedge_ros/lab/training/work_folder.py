"""The folder a training works in: one training at a time, and taken up again only when asked."""

from __future__ import annotations

import errno
import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from mmedge_ros.lab.training import TrainingError
from mmedge_ros.lab.training.checkpoint import load_checkpoint


def work_beside(out: Path) -> Path:
    """Return the work folder of a training whose result goes to ``out``."""
    return out.with_name(f'.{out.name}.training')


@contextmanager
def work_folder(work: Path, checkpoint: str, resume: bool) -> Iterator[Path]:
    """Make and lock the work folder; it is removed at the end if nothing was begun in it.

    :param checkpoint: name of the file that a training which was cut short leaves behind
    :raises TrainingError: if another training uses it, or one was cut short and not resumed
    """
    work.mkdir(parents=True, exist_ok=True)
    lock = os.open(work, os.O_RDONLY | os.O_DIRECTORY)
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as err:
            raise TrainingError(
                f'another training is writing to {work}; wait for it, or name another --out'
            ) from err
        if (work / checkpoint).is_file() and not resume:
            raise TrainingError(
                f'{work} holds a training that was cut short{_epoch_of(work / checkpoint)}; go '
                'on with it by --resume, or remove that folder to begin anew'
            )
        yield work
    finally:
        with suppress(OSError):
            work.rmdir()  # where nothing was begun
        os.close(lock)


def disk_error(work: Path, checkpoint: str, err: OSError, room: str = '1 GB') -> TrainingError:
    """Say what a disk error means for a training.

    :param room: what it needs about
    """
    reason = err.strerror or str(err)
    if err.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        kept = (
            'the last checkpoint is kept' if (work / checkpoint).is_file() else 'nothing is lost'
        )
        return TrainingError(
            f'no room left in {work} ({reason}); {kept}: free about {room} and go on with --resume'
        )
    return TrainingError(f'{err.filename or work}: {reason}; check the disk and its rights')


def _epoch_of(checkpoint: Path) -> str:
    try:
        return f' after epoch {int(load_checkpoint(checkpoint)["epoch"])}'
    except (TrainingError, ImportError, KeyError, TypeError, ValueError):
        return ''
