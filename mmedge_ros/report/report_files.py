"""Writes the files of a report, so that no half-written one is taken for whole."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from mmedge_ros.report import ReportError

REPORT = 'report.json'
_LARGEST_KEPT = 50 << 20


def require_writable(folder: Path) -> None:
    """Make sure that files can be put into a folder; one that is not there is not left behind.

    :raises ReportError: if they cannot
    """
    trial = folder / f'.{os.getpid()}.part'
    made: list[Path] = []
    try:
        made += [path for path in (folder, *folder.parents) if not path.exists()]
        folder.mkdir(parents=True, exist_ok=True)
        trial.touch()
        trial.unlink()
    except (OSError, ValueError) as err:
        raise ReportError(
            f'nothing can be written to {str(folder)!r}: {_reason(err)}; name another folder '
            'with --out'
        ) from err
    finally:
        for path in made:
            # It was not made, or something lies in it.
            with contextlib.suppress(OSError, ValueError):
                path.rmdir()


def kept_content(path: Path) -> bytes | None:
    """Read a file that was kept; None where there is none that can be read."""
    try:
        if not path.is_file() or path.stat().st_size > _LARGEST_KEPT:
            return None
        return path.read_bytes()
    except OSError:
        return None


def write_files(folder: Path, files: Mapping[str, bytes], obsolete: Iterable[str] = ()) -> None:
    """Put files into a folder, which is made if it is not there.

    All are first written in full under other names and only then renamed, the last of
    ``files`` last: where that one exists, the others belong to it. An earlier report stays as it
    was when the new one cannot be written.

    :param obsolete: names to remove, of an earlier report that held more
    :raises ReportError: when the folder cannot be made or a file cannot be written
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
        raise ReportError(
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
