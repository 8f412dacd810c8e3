"""Pictures and boxes in a folder, in the layout ultralytics trains from.

``images/NAME.jpg`` (or .png) beside ``labels/NAME.txt`` with a line ``class x y w h`` per object
(centre and size as shares of the picture), and ``data.yaml``: any ultralytics network can be
trained from such a folder. ``ignored/NAME.txt`` may hold, in the same form, objects that are too
small or too hidden to be required, but must not be taught to be background.
"""

from __future__ import annotations

import hashlib
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
from mmedge_lab.training import TrainingError
from mmedge_lab.training.checkpoint import read_index
from mmedge_ros.replay.ground_truth import TrueFrame
from mmedge_ros.report.truth_matching import MINIMUM_HEIGHT, MINIMUM_VISIBILITY
from mmedge_ros.sensing.camera.image import Picture

CLASSES = LABELS
# What a simulated set was made from.
FACTS = 'index.json'
_PICTURES = ('.jpg', '.jpeg', '.png')

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
    """A folder of pictures. ``digest`` (SHA-256) stands for its content.

    ``files`` are those of the pictures, ``flights`` describe what they were made from, and
    ``objects`` counts those to be detected by class.
    """

    folder: Path
    digest: str
    files: Sequence[str]
    flights: Sequence[dict[str, Any]]
    objects: dict[str, int]

    def __len__(self) -> int:
        return len(self.files)

    def load(self, number: int) -> Labelled:
        """Read one picture and its labels; one without a file of labels shows nothing.

        :raises TrainingError: if a file is missing or damaged
        """
        path = self.folder / 'images' / self.files[number]
        try:
            raw = np.frombuffer(path.read_bytes(), np.uint8)
            image = cv2.imdecode(raw, cv2.IMREAD_COLOR) if len(raw) else None
            rows = [_rows(self.folder / kind / path.name) for kind in ('labels', 'ignored')]
        except (OSError, ValueError) as err:
            raise _damaged(path, str(err)) from err
        if image is None:
            raise _damaged(path, 'no picture')
        height, width = image.shape[:2]
        objects, ignored = (_corners(r, width, height) for r in rows)
        return Labelled(np.asarray(image, np.uint8), objects, ignored)


def begin_pictures(folder: Path) -> None:
    """Make the folders of a set, and say of it what ultralytics wants to know.

    :raises OSError: if they cannot be written
    """
    for name in ('images', 'labels', 'ignored'):
        (folder / name).mkdir(parents=True, exist_ok=True)
    description = {'path': '.', 'train': 'images', 'val': 'images'}
    (folder / 'data.yaml').write_text(
        yaml.safe_dump({**description, 'names': dict(enumerate(CLASSES))}, sort_keys=False)
    )


def open_pictures(folder: Path) -> PictureSet:
    """Open a folder of pictures and labels, our own or any in that layout.

    :raises TrainingError: if it holds none, or classes that are not ours
    """
    paths = sorted(p for p in (folder / 'images').glob('*') if p.suffix in _PICTURES)
    if not paths:
        raise TrainingError(
            f'{folder} holds no pictures to learn from; `mmedge simulate FOLDER --set scenes` '
            'makes some, or name a folder with images/NAME.jpg beside labels/NAME.txt'
        )
    counts, digest = dict.fromkeys(CLASSES, 0), hashlib.sha256()
    for path in paths:
        file = (folder / 'labels' / path.name).with_suffix('.txt')
        try:
            labels = _rows(file)
            for row in labels.tolist():
                counts[CLASSES[int(row[0])]] += 1
        except (ValueError, IndexError) as err:
            classes = ', '.join(f'{n} {label}' for n, label in enumerate(CLASSES))
            raise _damaged(file, f'{err}; classes are {classes}') from err
        digest.update(f'{path.name} {path.stat().st_size} {labels.tolist()}'.encode())
    facts = read_index(folder / FACTS) or {'name': folder.name}
    return PictureSet(folder, digest.hexdigest(), [p.name for p in paths], [facts], counts)


def _rows(path: Path) -> Labels:
    """Read the labels of a picture: rows of class, centre and size; none where there is no file.

    :param path: named as the picture, in the folder of the labels
    """
    file = path.with_suffix('.txt')
    lines = file.read_text().splitlines() if file.is_file() else []
    return np.array([line.split() for line in lines], np.float32).reshape(-1, 5)


def _damaged(path: Path, why: str) -> TrainingError:
    return TrainingError(f'{path} cannot be used ({why}); mend it, or leave it out')


def picture_files(
    number: int, jpeg: bytes, shape: Sequence[int], truth: TrueFrame
) -> dict[str, bytes]:
    """Return the files of a picture by their places in the folder.

    :param shape: of the picture, height and width first
    """
    known = np.isin(truth.labels, CLASSES) & np.isfinite(truth.boxes).all(axis=1)
    clear = is_clear(truth)
    height, width = shape[:2]
    return {
        f'images/{number:06d}.jpg': jpeg,
        f'labels/{number:06d}.txt': _lines(truth, known & clear, width, height),
        f'ignored/{number:06d}.txt': _lines(truth, known & ~clear, width, height),
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


def is_clear(truth: TrueFrame) -> NDArray[np.bool_]:
    """Mark (N,) the objects that are to be detected; the others need not be."""
    mask: NDArray[np.bool_] = truth.heights >= MINIMUM_HEIGHT
    return mask & (truth.visibility >= MINIMUM_VISIBILITY)


def _lines(truth: TrueFrame, chosen: NDArray[np.bool_], width: int, height: int) -> bytes:
    lines = []
    for label, (x0, y0, x1, y1) in zip(truth.labels[chosen], truth.boxes[chosen], strict=True):
        shares = (x0 + x1) / 2 / width, (y0 + y1) / 2 / height, (x1 - x0) / width
        numbers = ' '.join(f'{share:.6f}' for share in (*shares, (y1 - y0) / height))
        lines.append(f'{CLASSES.index(str(label))} {numbers}\n')
    return ''.join(lines).encode()


def _corners(rows: Labels, width: int, height: int) -> Labels:
    size = np.array((width, height), np.float32)
    centre, half = rows[:, 1:3] * size, rows[:, 3:5] * size / 2
    return np.concatenate((rows[:, :1], centre - half, centre + half), axis=1)
