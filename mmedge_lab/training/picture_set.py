"""Sets of pictures and boxes that detectors learn from: simulated ones, one's own, or both."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any, NamedTuple

import cv2
import numpy as np
import yaml
from numpy.typing import NDArray

from mmedge_lab.simulation.flight_folder import read_description
from mmedge_lab.training.checkpoint import read_index
from mmedge_lab.training.picture_sources import (
    CLASSES,
    SIMULATION,
    TRAIN,
    SourcePicture,
    damaged,
    read_source,
    sources_text,
    without_unlabelled,
)
from mmedge_ros.replay.ground_truth import TrueFrame
from mmedge_ros.report.truth_matching import MINIMUM_HEIGHT, MINIMUM_VISIBILITY
from mmedge_ros.sensing.camera.image import Picture

# What a simulated set was made from.
FACTS = 'index.json'
# How often a picture is drawn in an epoch, at most.
_MOST_TIMES = 8

Labels = NDArray[np.float32]


class Domain(Enum):
    """A colour photo, a simulated picture, or another one, such as a thermal picture."""

    PHOTO = 'photo'
    SIMULATED = 'simulated'
    OTHER = 'other'


class Labelled(NamedTuple):
    """A picture (H, W, 3) uint8 BGR with its objects, rows of class, x0, y0, x1, y1 in px.

    ``objects`` (N, 5) are to be detected; ``ignored`` (M, 5) need not be.
    """

    image: Picture
    objects: Labels
    ignored: Labels
    domain: Domain = Domain.OTHER


@dataclass(frozen=True)
class PictureSet:
    """Pictures of one or several sources. ``digest`` (SHA-256) stands for their content.

    ``made_from`` describes each place they come from; ``objects`` counts those to be detected by
    class; ``sources`` is the text of the ``sources.csv`` of these places, '' without one.
    """

    digest: str
    pictures: Sequence[SourcePicture]
    made_from: Sequence[dict[str, Any]]
    objects: dict[str, int]
    sources: str = ''

    def __len__(self) -> int:
        return len(self.pictures)

    def load(self, number: int) -> Labelled:
        """Read one picture.

        :raises TrainingError: if its file is missing or damaged
        """
        picture = self.pictures[number]
        try:
            raw = np.frombuffer(picture.path.read_bytes(), np.uint8)
        except OSError as err:
            raise damaged(picture.path, err.strerror or str(err)) from err
        image = cv2.imdecode(raw, cv2.IMREAD_COLOR) if len(raw) else None
        if image is None:
            raise damaged(picture.path, 'no picture')
        height, width = image.shape[:2]
        scale = np.array((1, width, height, width, height), np.float32)
        domain = Domain.SIMULATED if picture.source == SIMULATION else Domain.OTHER
        if domain is Domain.OTHER and (image[..., 0] != image[..., 2]).any():
            domain = Domain.PHOTO
        return Labelled(
            np.asarray(image, np.uint8),
            picture.objects * scale,
            picture.ignored * scale,
            domain,
        )

    def drawn(self, rng: np.random.Generator) -> list[int]:
        """Draw as many pictures as there are: half of them simulated, other sources equally often.

        None is drawn more than eight times over: the rest is drawn from larger sources.
        """
        sizes = Counter(picture.source for picture in self.pictures)
        shares = dict.fromkeys(sizes, 1)
        if SIMULATION in shares:
            shares[SIMULATION] = max(len(sizes) - 1, 1)
        order: list[int] = []
        # The smallest first: what they cannot give is shared by those that follow.
        for source, size in sorted(sizes.items(), key=lambda of: of[1]):
            share = shares[source] / sum(shares.values())
            del shares[source]
            count = min(round((len(self) - len(order)) * share), _MOST_TIMES * size)
            own = [n for n, picture in enumerate(self.pictures) if picture.source == source]
            rounds = [rng.permutation(own).tolist() for _ in range(-(-count // len(own)))]
            order += [number for once in rounds for number in once][:count]
        return [order[place] for place in rng.permutation(len(order)).tolist()]


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


def open_pictures(*places: Path, part: str = TRAIN) -> PictureSet:
    """Open pictures with labels, see `picture_sources`.

    :param part: of places that have one to learn from and one to be judged by
    :raises TrainingError: if a place holds none, or labels that cannot be used
    """
    pictures: list[SourcePicture] = []
    made_from: list[dict[str, Any]] = []
    sources = ''
    for number, place in enumerate(places):
        facts = (read_index(place / FACTS) if place.is_dir() else None) or {}
        is_simulated = 'simulator' in facts
        read = [
            p._replace(
                source=SIMULATION if is_simulated and part == TRAIN else f'{number} {p.source}'
            )
            for p in read_source(place, part)
        ]
        pictures += without_unlabelled(read) if part == TRAIN and not is_simulated else read
        described = facts if is_simulated else {'name': place.stem}
        made_from.append({**described, 'pictures': len(read)})
        sources += sources_text(place if place.is_dir() else place.parent)
    counts, digest = dict.fromkeys(CLASSES, 0), hashlib.sha256()
    for path, objects, ignored, *_ in pictures:
        for label in objects[:, 0].astype(int).tolist():
            counts[CLASSES[label]] += 1
        digest.update(f'{path.name} {path.stat().st_size}'.encode())
        digest.update(objects.tobytes() + b'|' + ignored.tobytes())
    return PictureSet(digest.hexdigest(), pictures, made_from, counts, sources)


def picture_files(
    number: int, jpeg: bytes, shape: Sequence[int], truth: TrueFrame
) -> dict[str, bytes]:
    """Return the files of a picture by their places in the folder.

    :param shape: of the picture, height and width first
    """
    known = np.isin(truth.labels, CLASSES) & np.isfinite(truth.boxes).all(axis=1)
    clear = is_clear(truth) & truth.clear
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
