"""What a flight memory should find: the objects that flights had in view, and words for them.

An object is in view where a picture shows at least half of it, 14 px high or more. Whether it was
ever detected does not matter: what was not is missed.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from mmedge_lab.simulation.appearance import MoverLook
from mmedge_lab.simulation.world import Mover
from mmedge_ros.core.data_types import NS_PER_S, Box
from mmedge_ros.geometry.box_overlap import overlap
from mmedge_ros.memory.views import LEAST_HEIGHT
from mmedge_ros.replay.ground_truth import TrueFrame, TrueScene
from mmedge_ros.report.truth_matching import MINIMUM_VISIBILITY

# A view lies on an object that shares so much (IoU) with its box.
LEAST_OVERLAP = 0.3
# Words that fit more of a gallery than this are no question: any answer is right.
MOST_FITTING = 0.03
NOBODY = -1


class RememberedObject(NamedTuple):
    """An object of a flight; ``height`` is the largest it was in view, px.

    ``scrubbed``: who looks at one picture for each second of the flight, from its begin, sees it
    in this one, counted from 1; 0: in none.
    """

    flight: str
    seed: str
    light: str
    id: int
    look: MoverLook
    height: float
    scrubbed: int = 0


class MemoryQuestion(NamedTuple):
    """Words, and the objects of a gallery that look so."""

    text: str
    fitting: tuple[RememberedObject, ...]


def heights_in_view(scenes: Iterable[TrueScene]) -> dict[int, float]:
    """Return the largest height (px) of each object that was in view, by id."""
    heights: dict[int, float] = {}
    for scene in scenes:
        for number, height in _in_view(scene):
            heights[number] = max(heights.get(number, 0.0), height)
    return heights


def scrubbed_until(scenes: Iterable[TrueScene]) -> dict[int, int]:
    """Return at which picture each object is first seen, of one picture a second, from 1."""
    found: dict[int, int] = {}
    begin_ns, looked = None, 0
    for scene in scenes:
        begin_ns = scene.stamp_ns if begin_ns is None else begin_ns
        if scene.stamp_ns - begin_ns < looked * NS_PER_S:
            continue
        looked += 1
        for number, _ in _in_view(scene):
            found.setdefault(number, looked)
    return found


def _in_view(scene: TrueScene) -> Iterator[tuple[int, float]]:
    """Yield the objects that are in view, and how high they are (px)."""
    for item in scene.objects:
        if item.box is None or item.visibility < MINIMUM_VISIBILITY:
            continue
        if item.box.height >= LEAST_HEIGHT:
            yield item.id, item.box.height


def owner_of(frame: TrueFrame | None, box: Box) -> int:
    """Return the id of the object that a view lies on, the one it overlaps most; or `NOBODY`."""
    if frame is None:
        return NOBODY
    shares = [overlap(box, true) if np.isfinite(true).all() else 0.0 for true in frame.boxes]
    best = int(np.argmax(shares)) if shares else 0
    return int(frame.ids[best]) if shares and shares[best] >= LEAST_OVERLAP else NOBODY


def words_of(look: MoverLook) -> str:
    """Say what an object looks like, as a searcher would."""
    if not look.wears:
        return f'{look.colour} {look.label}'
    return f'{look.label} in a {look.colour} top and {look.bottom} trousers'


def questions(
    gallery: Sequence[RememberedObject], most: float = MOST_FITTING
) -> list[MemoryQuestion]:
    """Return the words for each object of a gallery that fit at most a share of it."""
    fitting: dict[str, list[RememberedObject]] = defaultdict(list)
    for one in gallery:
        fitting[words_of(one.look)].append(one)
    return [
        MemoryQuestion(text, tuple(objects))
        for text, objects in sorted(fitting.items())
        if len(objects) <= most * len(gallery)
    ]


def galleries(seeds: Mapping[str, str]) -> list[tuple[str, ...]]:
    """Draw one flight of each seed for each gallery, until all flights are used.

    Flights of one seed show the same people, who must not be in a gallery twice.

    :param seeds: of flights, by name
    """
    random = np.random.default_rng(0)
    flights: dict[str, list[str]] = defaultdict(list)
    for name in sorted(seeds):
        flights[seeds[name]].append(name)
    drawn = [[names[i] for i in random.permutation(len(names))] for names in flights.values()]
    count = max(map(len, drawn), default=0)
    return [tuple(names[i % len(names)] for names in drawn) for i in range(count)]


def cast_digest(movers: Sequence[Mover]) -> str:
    """Return what is the same of two flights with the same movers on the same ways."""
    digest = hashlib.sha256()
    for mover in movers:
        place = np.round(mover.state(0.0).position, 3).tolist()
        digest.update(f'{mover.id} {mover.label} {place} {mover.body(0.0).colours}\n'.encode())
    return digest.hexdigest()
