"""Where a training works: a folder for one training at a time, with checkpoints to resume from.

Checkpoints are whole or not there, and are read without running code from them.
"""

from __future__ import annotations

import errno
import fcntl
import io
import json
import os
import pickle
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from mmedge_lab.training import TrainingError


def work_beside(out: Path) -> Path:
    """Return the work folder of a training whose result goes to ``out``."""
    return out.with_name(f'.{out.name}.training')


@contextmanager
def work_folder(work: Path, keep: bool = False) -> Iterator[Path]:
    """Make and lock the work folder; it is removed when the block ends well, unless kept.

    What is there when a training is cut short is what the next one goes on with.

    :raises TrainingError: if another training uses it, or for an error of the disk in the block
    """
    lock = None
    try:
        work.mkdir(parents=True, exist_ok=True)
        lock = os.open(work, os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as err:
            raise TrainingError(
                f'another training is writing to {work}; wait for it, or name another --out'
            ) from err
        yield work
        if not keep:
            shutil.rmtree(work, ignore_errors=True)
    except OSError as err:
        reason = err.strerror or str(err)
        if err.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise TrainingError(
                f'no room left in {work} ({reason}); make some and run the same command again: '
                'it goes on from the last checkpoint'
            ) from err
        raise TrainingError(
            f'{err.filename or work}: {reason}; check the disk and its rights'
        ) from err
    finally:
        with suppress(OSError):
            work.rmdir()  # where nothing was begun
        if lock is not None:
            os.close(lock)


@contextmanager
def whole_folder(folder: Path) -> Iterator[Path]:
    """Give a hidden empty folder to write to, which replaces ``folder`` when the block ends well.

    :raises OSError: if it cannot be made or moved
    """
    part = folder.with_name(f'.{folder.name}.part')
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    yield part
    shutil.rmtree(folder, ignore_errors=True)
    part.rename(folder)


def read_index(path: Path) -> dict[str, Any]:
    """Return what a JSON file holds; {} where there is none."""
    try:
        content = json.loads(path.read_text())
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def save_checkpoint(path: Path, content: dict[str, Any]) -> None:
    """Write a checkpoint in place of the one before, which stays where that fails.

    :raises OSError: if it cannot be written
    """
    import torch

    # torch's own writer turns a full disk into an error without a reason.
    buffer = io.BytesIO()
    torch.save(content, buffer)
    part = path.with_name(f'.{path.name}.part')
    try:
        with part.open('wb') as file:
            file.write(buffer.getbuffer())
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def load_checkpoint(path: Path) -> dict[str, Any]:
    """Read a checkpoint; only tensors and plain values are accepted.

    :raises TrainingError: if it is damaged or none
    """
    import torch

    try:
        content = torch.load(path, map_location='cpu', weights_only=True)
    except (OSError, RuntimeError, ValueError, EOFError, KeyError, pickle.UnpicklingError) as err:
        reason = (str(err).splitlines() or [type(err).__name__])[0][:200]
        raise TrainingError(
            f'the checkpoint {path} cannot be read ({reason}); remove it to begin anew'
        ) from err
    if not isinstance(content, dict):
        raise TrainingError(f'{path} is no checkpoint of a training; remove it to begin anew')
    return content


def resume(
    path: Path, identity: Mapping[str, Any], restore: Callable[[dict[str, Any]], None]
) -> None:
    """Restore a training from its checkpoint, which holds its identity beside its state.

    :raises TrainingError: if the checkpoint is damaged, or of another training
    """
    content = load_checkpoint(path)
    for name, wanted in identity.items():
        if content.get(name) != wanted:
            raise TrainingError(
                f'{path} belongs to a training with other {name}: '
                f'{_difference(content.get(name), wanted)}; go on as it was begun, or remove '
                f'{path.parent} to begin anew'
            )
    try:
        restore(content)
    except (KeyError, RuntimeError, TypeError, ValueError) as err:
        raise TrainingError(
            f'{path} is damaged ({str(err)[:200]}); remove it to begin anew'
        ) from err


def _difference(actual: Any, wanted: Any) -> str:
    if isinstance(actual, dict) and isinstance(wanted, dict):
        other = [key for key in wanted if actual.get(key) != wanted[key]]
        return ', '.join(f'{key} {actual.get(key)!r}, not {wanted[key]!r}' for key in other[:4])
    return f'{str(actual)[:20]}, not {str(wanted)[:20]}'
