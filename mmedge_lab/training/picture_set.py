"""Pictures and boxes of a set of flights in a folder, in the layout ultralytics trains from.

``images/000000.jpg`` beside ``labels/000000.txt`` with a line ``class x y w h`` per object
(centre and size as shares of the picture), and ``data.yaml``: any ultralytics network can be
trained from such a folder. ``ignored/000000.txt`` holds, in the same form, objects that are too
small or too hidden to be required, but must not be taught to be background.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import cv2
import numpy as np
import yaml
from numpy.typing import NDArray

from mmedge_lab.simulation.flight_folder import read_description
from mmedge_lab.simulation.world import LABELS
from mmedge_lab.training import OnShare, TrainingError
from mmedge_lab.training.checkpoint import read_index, whole_folder
from mmedge_lab.training.flight_pictures import LabelledPicture, count_pictures, labelled_pictures
from mmedge_ros.replay.ground_truth import TrueFrame
from mmedge_ros.report.truth_matching import MINIMUM_HEIGHT, MINIMUM_VISIBILITY
from mmedge_ros.sensing import SensingError
from mmedge_ros.sensing.camera.image import Picture

CLASSES = LABELS
INDEX = 'index.json'
_LAYOUT = 1  # raise it when the files change, so that older folders are not taken for them
_JPEG = b'\xff\xd8'
_INDEXED = ('digest', 'pictures', 'flights', 'objects')

Labels = NDArray[np.float32]


class Labelled(NamedTuple):
    """A picture (H, W, 3) uint8 BGR with its objects, rows of class, x0, y0, x1, y1 in px.

    ``objects`` (N, 5) are to be detected; ``ignored`` (M, 5) need not be.
    """

    image: Picture
    objects: Labels
    ignored: Labels


@dataclass(frozen=True)
class PictureSet:
    """A written folder. ``digest`` (SHA-256) is that of its content."""

    folder: Path
    digest: str
    pictures: int
    flights: Sequence[dict[str, Any]]
    objects: dict[str, int]

    def __len__(self) -> int:
        return self.pictures

    def load(self, number: int) -> Labelled:
        """Read one picture and its labels.

        :raises TrainingError: if a file is missing or damaged
        """
        name = f'{number:06d}'
        path = self.folder / 'images' / f'{name}.jpg'
        try:
            raw = np.frombuffer(path.read_bytes(), np.uint8)
            image = cv2.imdecode(raw, cv2.IMREAD_COLOR) if len(raw) else None
            rows = [self._rows(kind, name) for kind in ('labels', 'ignored')]
        except (OSError, ValueError) as err:
            raise self._damaged(path, str(err)) from err
        if image is None:
            raise self._damaged(path, 'no picture')
        height, width = image.shape[:2]
        objects, ignored = (_corners(r, width, height) for r in rows)
        return Labelled(np.asarray(image, np.uint8), objects, ignored)

    def _rows(self, kind: str, name: str) -> Labels:
        text = (self.folder / kind / f'{name}.txt').read_text()
        rows = np.array([line.split() for line in text.splitlines()], np.float32)
        return rows.reshape(-1, 5)

    def _damaged(self, path: Path, why: str) -> TrainingError:
        return TrainingError(f'{path} cannot be used ({why}); remove {self.folder} and start anew')


def write_picture_set(
    flights: Sequence[Path],
    folder: Path,
    pictures: int,
    on_progress: OnShare | None = None,
) -> PictureSet:
    """Write pictures spread evenly over flights, unless the folder already holds them.

    The folder is written beside its place and renamed when it is whole.

    :param pictures: about so many; all where the flights have fewer
    :raises TrainingError: if a flight has no ground truth, or no picture can be used
    :raises BagError: if a flight cannot be read
    :raises OSError: if the folder cannot be written
    """
    total = count_pictures(flights)
    step = max(1, round(total / max(pictures, 1)))
    described = [describe_flight(flight) for flight in flights]
    key = hashlib.sha256(json.dumps([_LAYOUT, step, described]).encode()).hexdigest()
    known = read_index(folder / INDEX)
    if known.get('key') == key:
        return PictureSet(folder, *(known[name] for name in _INDEXED))
    with whole_folder(folder) as part:
        for name in ('images', 'labels', 'ignored'):
            (part / name).mkdir()
        digest, objects, seen, count = hashlib.sha256(), Counter[str](), 0, 0
        for flight in flights:
            for picture in labelled_pictures(flight, step):
                files = _files(picture, count)
                for name, content in files.items():
                    (part / name).write_bytes(content)
                    digest.update(content)
                if files:
                    count += 1
                    objects.update(picture.truth.labels[_targets(picture.truth)[0]].tolist())
                seen += 1
                if on_progress:
                    on_progress(min(seen * step / max(total, 1), 1.0))
        if not count:
            raise TrainingError('not one picture of the flights can be used; look at them first')
        of_class = {label: objects[label] for label in CLASSES}
        written = PictureSet(folder, digest.hexdigest(), count, described, of_class)
        write_index(part, key, written)
    return written


def write_index(folder: Path, key: str, pictures: PictureSet) -> None:
    """Write what a folder of pictures and labels holds, for ultralytics and for `open_pictures`.

    :raises OSError: if it cannot be written
    """
    description = {'path': '.', 'train': 'images', 'val': 'images'}
    (folder / 'data.yaml').write_text(
        yaml.safe_dump({**description, 'names': dict(enumerate(CLASSES))}, sort_keys=False)
    )
    index = {'key': key, **{name: getattr(pictures, name) for name in _INDEXED}}
    (folder / INDEX).write_text(json.dumps(index, indent=1))


def open_pictures(folder: Path) -> PictureSet | None:
    """Open a folder of pictures and labels that is whole; None for any other."""
    known = read_index(folder / INDEX)
    if not {*_INDEXED} <= set(known):
        return None
    return PictureSet(folder, *(known[name] for name in _INDEXED))


def _files(picture: LabelledPicture, number: int) -> dict[str, bytes]:
    """Return the files of a picture; {} if it is damaged."""
    try:
        image = picture.image
    except SensingError:
        return {}
    return picture_files(number, _jpeg(picture, image), image.shape, picture.truth)


def picture_files(
    number: int, jpeg: bytes, shape: Sequence[int], truth: TrueFrame
) -> dict[str, bytes]:
    """Return the files of a picture by their places in the folder.

    :param shape: of the picture, height and width first
    """
    targets, ignored = _targets(truth)
    height, width = shape[:2]
    return {
        f'images/{number:06d}.jpg': jpeg,
        f'labels/{number:06d}.txt': _lines(truth, targets, width, height),
        f'ignored/{number:06d}.txt': _lines(truth, ignored, width, height),
    }


def describe_flight(flight: Path) -> dict[str, Any]:
    """Return what makes a flight what it is: its seed, or for others the state of its files."""
    made = read_description(flight)
    if made is not None:
        return {
            'name': flight.name,
            'scenario': made.scenario,
            'seed': made.seed,
            'seconds': made.seconds,
            'simulator': made.simulator,
        }
    states = [p.stat() for p in sorted(flight.iterdir()) if p.is_file()]
    size, changed = sum(s.st_size for s in states), max(s.st_mtime_ns for s in states)
    return {'name': flight.name, 'bytes': size, 'changed_ns': changed}


def _targets(truth: TrueFrame) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Mark (N,) the objects to be detected, and those in the picture that need not be."""
    known = np.isin(truth.labels, CLASSES) & np.isfinite(truth.boxes).all(axis=1)
    clear = (truth.heights >= MINIMUM_HEIGHT) & (truth.visibility >= MINIMUM_VISIBILITY)
    return known & clear, known & ~clear


def _lines(truth: TrueFrame, chosen: NDArray[np.bool_], width: int, height: int) -> bytes:
    lines = []
    for label, (x0, y0, x1, y1) in zip(truth.labels[chosen], truth.boxes[chosen], strict=True):
        shares = (x0 + x1) / 2 / width, (y0 + y1) / 2 / height, (x1 - x0) / width
        numbers = ' '.join(f'{share:.6f}' for share in (*shares, (y1 - y0) / height))
        lines.append(f'{CLASSES.index(str(label))} {numbers}\n')
    return ''.join(lines).encode()


def _jpeg(picture: LabelledPicture, image: Picture) -> bytes:
    """Return the recorded JPEG as it is; other pictures are compressed with hardly a loss."""
    data = bytes(getattr(picture.message, 'data', b''))
    if not hasattr(picture.message, 'encoding') and data.startswith(_JPEG):
        return data
    return bytes(cv2.imencode('.jpg', image, (cv2.IMWRITE_JPEG_QUALITY, 95))[1])


def _corners(rows: Labels, width: int, height: int) -> Labels:
    size = np.array((width, height), np.float32)
    centre, half = rows[:, 1:3] * size, rows[:, 3:5] * size / 2
    return np.concatenate((rows[:, :1], centre - half, centre + half), axis=1)
