"""Tiny flights and pictures of painted ground: coloured bars stand for people, cars and the like.

Each class has a shape and colour of its own on noisy ground, so that a small network learns
them within a few dozen steps.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray

from mmedge_lab.simulation.flight_bag import CAMERA, GROUND_TRUTH, FlightRecord, write_flight
from mmedge_lab.simulation.flight_folder import FlightDescription
from mmedge_lab.simulation.flight_messages import FlightMessages
from mmedge_lab.training.picture_set import (
    FACTS,
    PictureSet,
    begin_pictures,
    open_pictures,
    picture_files,
)
from mmedge_ros.core.data_types import Box
from mmedge_ros.geometry.transforms import Transform
from mmedge_ros.replay.ground_truth import GroundTruth, TrueObject, TrueScene

BEGIN_NS = 1_700_000_000_000_000_000
PERIOD_NS = 100_000_000


class Kind(NamedTuple):
    width: int
    height: int
    colour: tuple[int, int, int]


KINDS = {
    'person': Kind(20, 48, (40, 40, 230)),
    'cyclist': Kind(44, 44, (230, 60, 40)),
    'car': Kind(90, 40, (40, 220, 220)),
    'dog': Kind(30, 18, (230, 230, 230)),
}
ORIGIN = np.zeros(3)


class Seen(NamedTuple):
    """An object in a picture: its label, box and visibility."""

    label: str
    box: tuple[float, float, float, float]
    visibility: float = 1.0


def paint(
    seen: list[Seen], rng: np.random.Generator, size: tuple[int, int] = (320, 240)
) -> NDArray[np.uint8]:
    """Paint objects on noisy ground: (H, W, 3) BGR."""
    image = rng.integers(70, 130, (size[1], size[0], 3), np.uint8)
    for label, (x0, y0, x1, y1), _ in seen:
        image[int(y0) : int(y1), int(x0) : int(x1)] = KINDS[label].colour
    return image


def scattered(rng: np.random.Generator, size: tuple[int, int] = (320, 240)) -> list[Seen]:
    """Place one object of each kind in a column of its own, at a random height."""
    names = [*KINDS, 'person']
    column = size[0] // len(names)
    found = []
    for place, label in enumerate(rng.permutation(names).tolist()):
        kind = KINDS[label]
        scale = rng.uniform(0.6, 1.0)
        width, height = round(min(kind.width, column) * scale), round(kind.height * scale)
        x = place * column + int(rng.integers(0, column - width + 1))
        y = int(rng.integers(0, size[1] - height))
        found.append(Seen(label, (x, y, x + width, y + height)))
    return found


def scene_of(seen: list[Seen], stamp_ns: int, light: str = 'day') -> TrueScene:
    objects = tuple(
        TrueObject(number, label, Box(*box), visibility, ORIGIN + number, ORIGIN)
        for number, (label, box, visibility) in enumerate(seen)
    )
    return TrueScene(stamp_ns, 'odom', objects, 'meadow', light, 'near')


def write_painted_flight(
    folder: Path, pictures: int = 8, seed: int = 0, seen: list[Seen] | None = None
) -> Path:
    """Write a flight with pictures and ground truth only; ``seen`` is in all its pictures."""
    rng = np.random.default_rng(seed)
    messages = FlightMessages()
    here = Transform(np.eye(3), np.array((0.0, 0.0, 3.0)))
    records = []
    for number in range(pictures):
        stamp_ns = BEGIN_NS + number * PERIOD_NS
        objects = scattered(rng) if seen is None else seen
        picture = messages.compressed_image(stamp_ns, paint(objects, rng))
        truth = messages.ground_truth(scene_of(objects, stamp_ns), here, ORIGIN, ORIGIN)
        for topic, message in ((CAMERA, picture), (GROUND_TRUTH, truth)):
            records.append(FlightRecord(stamp_ns + 5_000_000, topic, messages.serialized(message)))
    write_flight(folder, FlightDescription('meadow_day_near', seed, pictures / 10.0), records)
    return folder


def write_painted_set(folder: Path, flights: int = 3, pictures: int = 16, seed: int = 0) -> Path:
    """Write a set of flights with different seeds."""
    folder.mkdir(parents=True)
    for number in range(flights):
        write_painted_flight(folder / f'flight_{number}', pictures, seed + number)
    return folder


def write_painted_pictures(
    folder: Path, pictures: int, seed: int = 0, seen: list[Seen] | None = None
) -> PictureSet:
    """Write pictures with labels, as the simulator's scenes lie in a folder."""
    rng = np.random.default_rng(seed)
    begin_pictures(folder)
    for number in range(pictures):
        objects = scattered(rng) if seen is None else seen
        image = paint(objects, rng)
        frame = GroundTruth([scene_of(objects, BEGIN_NS)]).frame_at(BEGIN_NS)
        assert frame is not None
        jpeg = cv2.imencode('.jpg', image, (cv2.IMWRITE_JPEG_QUALITY, 95))[1].tobytes()
        for name, content in picture_files(number, jpeg, image.shape, frame).items():
            (folder / name).write_bytes(content)
    facts = {'name': 'painted', 'scenes': pictures, 'simulator': 1}
    (folder / FACTS).write_text(json.dumps(facts))
    return open_pictures(folder)
