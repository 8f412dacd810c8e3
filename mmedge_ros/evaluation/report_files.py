"""Writes the files of a report so that nothing half-written is ever taken for whole."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from mmedge_ros.evaluation.errors import EvaluationError


def require_writable(folder: Path) -> None:
    """Make sure that files can be put into a folder, which is made if it is not there.

    :raises EvaluationError: if they cannot
    """
    trial = folder / f'.{os.getpid()}.part'
    try:
        folder.mkdir(parents=True, exist_ok=True)
        trial.touch()
        trial.unlink()
    except (OSError, ValueError) as err:
        raise EvaluationError(
            f'nothing can be written to {str(folder)!r}: {_reason(err)}; name another folder '
            'with --out'
        ) from err


def write_files(folder: Path, files: Mapping[str, bytes], obsolete: Iterable[str] = ()) -> None:
    """Put files into a folder, which is made if it is not there.

    All are first written in full under other names and only then renamed, the last of
    ``files`` last: where that one is found, the others belong to it. A report that was in the
    folder stays as it was when the new one cannot be written.

    :param obsolete: names to remove, of an earlier report that held more
    :raises EvaluationError: when the folder cannot be made or a file cannot be written
    """
    parts = {name: folder / f'.{name}.{os.getpid()}.part' for name in files}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        try:
            for name, content in files.items():
                _write(parts[name], content)
            _replace(folder, parts, obsolete)
        finally:
            for part in parts.values():
                part.unlink(missing_ok=True)
    except (OSError, ValueError) as err:  # ValueError: a path that holds a null character
        raise EvaluationError(
            f'cannot write the report to {str(folder)!r}: {_reason(err)}; name a folder that can '
            f'be written, on a disk with room for {_megabytes(files)} MB'
        ) from err


def _reason(err: OSError | ValueError) -> str:
    return err.strerror if isinstance(err, OSError) and err.strerror else str(err)


def _write(path: Path, content: bytes) -> None:
    with path.open('wb') as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _replace(folder: Path, parts: Mapping[str, Path], obsolete: Iterable[str]) -> None:
    names = list(parts)
    for name in (*names[-1:], *obsolete):
        (folder / name).unlink(missing_ok=True)
    for name in names:
        parts[name].replace(folder / name)


def _megabytes(files: Mapping[str, bytes]) -> int:
    return 1 + sum(map(len, files.values())) // 1_000_000
