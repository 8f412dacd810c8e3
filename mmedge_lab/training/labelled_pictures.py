"""Pictures in a folder for each class, divided into those that are fitted and those held out."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from mmedge_lab.training import TrainingError
from mmedge_ros.sensing import SensingError
from mmedge_ros.sensing.camera.video_reader import PICTURE_SUFFIXES, picture_files
from mmedge_ros.untrusted_files import read_bounded, shown

# Every so many pictures one is held out, so each class needs as many.
HELD_OUT_EVERY = 3
_LARGEST_LIST_BYTES = 1 << 20


class LabelledPictures(NamedTuple):
    """The files of each class, in the order of the classes."""

    classes: tuple[str, ...]
    files: tuple[tuple[Path, ...], ...]


def labelled_pictures(
    folder: Path, outputs: int, names: Sequence[str] | None = None, most: int = 0
) -> LabelledPictures:
    """List the pictures of ``folder/<class>/``.

    Hidden folders and files that are no pictures are passed over.

    :param outputs: so many classes there must be
    :param names: of the classes, in the order of the outputs; None: of the folders, sorted
    :param most: so many of each class, evenly from all of them; 0: all
    :raises TrainingError: if folders and classes do not fit together, or a class has too few
    """
    try:
        folders = {f.name: f for f in sorted(folder.iterdir()) if f.is_dir() and f.name[0] != '.'}
    except OSError as err:
        raise TrainingError(f'{folder}: {err.strerror or err}; name a folder of folders') from err
    for name in folders:
        _require_text(name, f'the folder {name!r} in {folder}')
    classes = tuple(sorted(folders) if names is None else names)
    if len(classes) != outputs:
        source = (
            f'{folder} has {len(classes)} folders'
            if names is None
            else (f'--labels names {len(classes)} classes')
        )
        raise TrainingError(
            f'{source}, the classifier tells {outputs} classes; there must be one for each, '
            'also for those you do not care about'
        )
    missing = [name for name in classes if name not in folders]
    others = sorted(set(folders) - set(classes))
    if missing or others:
        wrong = missing or others
        lack = 'no folder for' if missing else 'folders that are none of the classes:'
        raise TrainingError(
            f'{folder} has {lack} {_listed(wrong)}; name the folders as the classes'
        )
    return LabelledPictures(classes, tuple(_files(folders[name], most) for name in classes))


def class_names(path: Path) -> tuple[str, ...]:
    """Read the names of classes, one a line; empty lines at the end do not count.

    :raises TrainingError: if it cannot be read, or a name is empty, no text, or twice there
    """
    raw = read_bounded(path, _LARGEST_LIST_BYTES, TrainingError, 'one name of a class a line')
    try:
        text = raw.decode('utf-8-sig')
    except UnicodeDecodeError as err:
        raise TrainingError(f'{path} is no UTF-8 text; save it as such') from err
    names = [line.strip() for line in text.rstrip().split('\n')]
    first: dict[str, int] = {}
    for number, name in enumerate(names, start=1):
        _require_text(name, f'{path}, line {number}, {shown(name)}')
        if first.setdefault(name, number) != number:
            raise TrainingError(
                f'{path} has {shown(name)} in lines {first[name]} and {number}; classes need '
                'names that differ'
            )
    return tuple(names)


def require_enough(name: str, readable: int, first_error: str) -> None:
    """Make sure that a class has enough pictures that can be read.

    :param first_error: why the first of the others cannot; empty where all can
    :raises TrainingError: if it has not
    """
    if readable < HELD_OUT_EVERY:
        why = f' (the first that cannot: {first_error})' if first_error else ''
        raise TrainingError(
            f'the class {shown(name)} has {readable} pictures that can be read{why}; it needs at '
            f'least {HELD_OUT_EVERY}, and 50 are better'
        )


def _require_text(name: str, what: str) -> None:
    try:
        name.encode()
    except UnicodeEncodeError:
        raise TrainingError(f'{what} has a name that is not UTF-8; rename it') from None
    if not name or not name.isprintable():
        raise TrainingError(f'{what} is no name of a class; use letters, digits and signs')


def _files(folder: Path, most: int) -> tuple[Path, ...]:
    try:
        files = [file for file in picture_files(folder) if file.is_file()]
    except SensingError as err:
        raise TrainingError(
            f'{err}; each class needs at least {HELD_OUT_EVERY} pictures '
            f'({", ".join(PICTURE_SUFFIXES)})'
        ) from err
    require_enough(folder.name, len(files), '')
    if most and len(files) > most:
        files = [files[number * len(files) // most] for number in range(most)]
    return tuple(files)


def _listed(names: Sequence[str]) -> str:
    more = f' and {len(names) - 3} more' if len(names) > 3 else ''
    return ', '.join(shown(name) for name in names[:3]) + more
