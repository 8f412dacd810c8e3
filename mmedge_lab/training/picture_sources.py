"""Reads which pictures there are and what is in them, in the layouts that people keep them in.

- A folder with ``images/NAME.jpg`` (or .png) beside ``labels/NAME.txt``, which holds a line
  ``class x y w h`` per object (centre and size as shares of the picture). ``ignored/NAME.txt``
  may hold, in the same form, what must not be taught to be background: too small, too hidden,
  a crowd.
- A ``data.yaml`` as ultralytics trains from, with names of classes of its own.
- A ``.json`` file as those of the COCO data set (Lin et al. 2014), its pictures beside it.

Classes that this package does not know are left out: to it they are background.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mmedge_lab.simulation.world import LABELS
from mmedge_lab.training import TrainingError
from mmedge_ros.core.untrusted_files import (
    PlainYamlError,
    brief,
    load_plain_yaml,
    read_bounded,
    shown,
)
from mmedge_ros.encoding.class_words import known_class

CLASSES = LABELS
PICTURES = ('.jpg', '.jpeg', '.png')
# Where it says of each ``file`` what ``source`` it comes from.
SOURCES = 'sources.csv'
# Parts of a ``data.yaml``: to learn from, and to be judged by.
TRAIN, JUDGED = 'train', 'val'
_LARGEST_TEXT, _LARGEST_JSON = 1 << 26, 1 << 30

# Rows of class, x0, y0, x1, y1, corners as shares of the picture.
Rows = NDArray[np.float32]
# The source of all simulated pictures.
SIMULATION = 'simulation'


class SourcePicture(NamedTuple):
    """A picture with its ``objects`` (N, 5) and what is ``ignored`` in it (M, 5).

    ``source`` is `SIMULATION` for all that are simulated.
    """

    path: Path
    objects: Rows
    ignored: Rows
    source: str = ''


def read_source(place: Path, part: str = TRAIN) -> list[SourcePicture]:
    """Return the pictures of a place in their order.

    :param place: a folder, a ``data.yaml`` or a ``.json`` file
    :param part: of a ``data.yaml`` that names several
    :raises TrainingError: if there are none, or what is said of them cannot be used
    """
    if place.is_dir() and not (place / 'images').is_dir() and (place / 'data.yaml').is_file():
        place = place / 'data.yaml'
    if place.suffix.lower() == '.json':
        pictures = list(_of_coco(place))
    elif place.is_dir():
        pictures = list(_of_folder(place / 'images', dict(enumerate(CLASSES))))
    else:
        pictures = list(_of_yaml(place, part))
    if not pictures:
        raise TrainingError(
            f'{place} holds no pictures with labels; name a folder with images/NAME.jpg beside '
            'labels/NAME.txt, a data.yaml or a COCO .json file, or make one with '
            '`mmedge simulate FOLDER --set scenes`'
        )
    return pictures


def is_source(place: Path) -> bool:
    """Tell pictures with labels from flights."""
    return place.is_file() or (place / 'images').is_dir() or (place / 'data.yaml').is_file()


def _of_folder(images: Path, names: Mapping[int, str]) -> Iterator[SourcePicture]:
    """Read a folder of pictures; those without a file of labels show nothing."""
    places = {n: CLASSES.index(known) for n, name in names.items() if (known := known_class(name))}
    beside = _beside(images)
    rows = csv.DictReader(sources_text(beside['labels'].parent).splitlines())
    sources = {row.get('file', ''): row.get('source', '') for row in rows}
    for path in sorted(p for p in images.rglob('*') if p.suffix.lower() in PICTURES):
        objects, ignored = (
            _label_rows(
                (folder / path.relative_to(images)).with_suffix('.txt'), places, len(names)
            )
            for folder in beside.values()
        )
        yield SourcePicture(path, objects, ignored, sources.get(path.name, ''))


def _beside(images: Path) -> dict[str, Path]:
    """Return the folders of labels: where ``images`` stood last in the path of the pictures."""
    parts = list(images.parts)
    at = max((n for n, part in enumerate(parts) if part == 'images'), default=len(parts) - 1)
    return {kind: Path(*parts[:at], kind, *parts[at + 1 :]) for kind in ('labels', 'ignored')}


def sources_text(folder: Path) -> str:
    """Return what a folder says of where its pictures come from; '' where it does not."""
    path = folder / SOURCES
    if not path.is_file():
        return ''
    return read_bounded(path, _LARGEST_TEXT, TrainingError).decode(errors='replace')


def _label_rows(file: Path, places: Mapping[int, int], classes: int) -> Rows:
    if not file.is_file():
        return np.zeros((0, 5), np.float32)
    try:
        lines = [line.split() for line in file.read_text().splitlines() if line.strip()]
        rows = np.array(lines, np.float32).reshape(-1, 5)
    except (OSError, ValueError) as err:
        raise damaged(file, f'{brief(err)}; a line reads: class x y w h') from err
    numbers = rows[:, 0].astype(np.int64)
    if not np.isfinite(rows).all() or (numbers < 0).any() or (numbers >= classes).any():
        known = ', '.join(f'{number} {label}' for number, label in enumerate(CLASSES))
        raise damaged(file, f'a class or number that cannot be; classes are {known}')
    kept = np.isin(numbers, list(places))
    half = rows[kept, 3:5] / 2
    own = np.array([[places[n]] for n in numbers[kept].tolist()], np.float32).reshape(-1, 1)
    return np.concatenate((own, rows[kept, 1:3] - half, rows[kept, 1:3] + half), axis=1)


def _of_yaml(file: Path, part: str) -> Iterator[SourcePicture]:
    try:
        described = load_plain_yaml(file, _LARGEST_TEXT)
    except PlainYamlError as err:
        raise TrainingError(f'{err}; name a folder of pictures, a data.yaml or a .json') from err
    names, places = described.get('names'), described.get(part)
    if isinstance(names, list):
        names = dict(enumerate(names))
    if not isinstance(names, dict) or not all(isinstance(n, int) for n in names) or not places:
        raise TrainingError(
            f'{file} must have `names` (of the classes, by number) and `{part}` (the folder of '
            f'its pictures); it has {shown(sorted(map(str, described)))}'
        )
    folder = file.parent / str(described.get('path') or '.')
    for place in [places] if isinstance(places, str) else list(places):
        images = folder / str(place)
        if not images.is_dir():
            raise TrainingError(
                f'{file} names {images}, which is no folder; lists of pictures in a text file are '
                'not read'
            )
        yield from _of_folder(images, {n: str(name) for n, name in names.items()})


def _of_coco(file: Path) -> Iterator[SourcePicture]:
    raw = read_bounded(file, _LARGEST_JSON, TrainingError)
    try:
        content = json.loads(raw)
        images = {int(image['id']): image for image in content['images']}
        rows = _coco_rows(content, images)
        names = {number: str(image['file_name']) for number, image in sorted(images.items())}
    except (ValueError, LookupError, TypeError, AttributeError, ArithmeticError) as err:
        raise TrainingError(
            f'{file} is no list of pictures and boxes as COCO has it ({type(err).__name__}: '
            f'{brief(err)}); it must have images, annotations and categories'
        ) from err
    folders = _coco_folders(file)
    for number, name in names.items():
        path = next((f / name for f in folders if (f / name).is_file()), None)
        if path is None:
            raise TrainingError(
                f'{file} names {shown(name)}, which is neither in {folders[0]} nor in '
                f'{folders[1]}; put the pictures there'
            )
        objects, crowds = (_as_rows(rows.get((number, crowd), ())) for crowd in (False, True))
        yield SourcePicture(path, objects, crowds)


def _coco_rows(
    content: Mapping[str, Any], images: Mapping[int, Mapping[str, Any]]
) -> dict[tuple[int, bool], list[list[float]]]:
    """Return rows by picture and whether they are crowds."""
    labels = {int(of['id']): known_class(str(of['name'])) for of in content['categories']}
    rows: dict[tuple[int, bool], list[list[float]]] = {}
    for each in content['annotations']:
        number, label = int(each['image_id']), labels[int(each['category_id'])]
        if label is None:
            continue
        width, height = float(images[number]['width']), float(images[number]['height'])
        x, y, w, h = map(float, each['bbox'])
        row = [CLASSES.index(label), x / width, y / height, (x + w) / width, (y + h) / height]
        if not np.isfinite(row).all():
            raise ValueError('a box that is not finite')
        rows.setdefault((number, bool(each.get('iscrowd'))), []).append(row)
    return rows


def _coco_folders(file: Path) -> list[Path]:
    """Return where its pictures may be: beside it, or as they are in the archives of COCO."""
    around = (file.parent, file.parent.parent)
    return [
        file.parent,
        *(folder / 'images' for folder in around),
        *(folder / file.stem.rpartition('_')[2] for folder in around),
    ]


def _as_rows(rows: Sequence[Sequence[float]]) -> Rows:
    return np.array(rows, np.float32).reshape(-1, 5)


def damaged(path: Path, why: str) -> TrainingError:
    """Return the error that a file cannot be used."""
    return TrainingError(f'{path} cannot be used ({why}); mend it, or leave it out')


def without_unlabelled(pictures: Sequence[SourcePicture]) -> list[SourcePicture]:
    """Ignore in all pictures of a source the classes that nobody labelled in any of them.

    Else a car in pictures in which only people were labelled would be taught to be background.
    """
    labelled: dict[str, set[int]] = {}
    for picture in pictures:
        known = labelled.setdefault(picture.source, set())
        known.update(map(int, picture.objects[:, 0].tolist()))
    made = []
    for picture in pictures:
        missing = [n for n in range(len(CLASSES)) if n not in labelled[picture.source]]
        whole = _as_rows([[n, 0.0, 0.0, 1.0, 1.0] for n in missing])
        made.append(picture._replace(ignored=np.concatenate((picture.ignored, whole))))
    return made
