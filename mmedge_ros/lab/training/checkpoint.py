"""Checkpoints of a training: whole or not there, and read without running code from them."""

from __future__ import annotations

import io
import os
import pickle
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from mmedge_ros.lab.training import TrainingError


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


def _difference(found: Any, wanted: Any) -> str:
    if isinstance(found, dict) and isinstance(wanted, dict):
        other = [key for key in wanted if found.get(key) != wanted[key]]
        return ', '.join(f'{key} {found.get(key)!r}, not {wanted[key]!r}' for key in other[:4])
    return f'{str(found)[:20]}, not {str(wanted)[:20]}'
