"""What the page of a memory holds: moments to look at, and vectors and facts to search in."""

from __future__ import annotations

import base64
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mmedge_ros.flight_memory.int4 import packed
from mmedge_ros.flight_memory.item_table import Integers, ItemTable
from mmedge_ros.flight_memory.memory_store import MemoryReader
from mmedge_ros.flight_memory.moment import (
    FlightPhase,
    Light,
    MemoryItem,
    Motion,
    ViewKind,
    lights_of,
    moves,
)
from mmedge_ros.flight_memory.query import vocabulary
from mmedge_ros.flight_memory.relations import limits
from mmedge_ros.flight_memory.scorers import Space
from mmedge_ros.flight_memory.search import groups_of
from mmedge_ros.flight_memory.thumbnail import picture_of
from mmedge_ros.flight_memory.view_choice import ViewQuality

# A page is to open on a phone; of larger memories it holds what is seen best.
MOST_MOMENTS, MOST_PICTURE_BYTES = 3000, 16 << 20


@dataclass(frozen=True)
class Picture:
    """A thumbnail: JPEG in base64 and its size, px."""

    jpeg: str
    width: int
    height: int


@dataclass(frozen=True)
class PageMoment:
    """A moment as a card, a mark in the map and a bar in the timeline.

    ``number`` is its place among all cards. ``begin`` and ``end`` in s; ``place`` (x, y) in m,
    None where it is not known; ``label`` is '' of a key frame.
    """

    number: int
    what: str
    label: str
    begin: float
    end: float
    place: tuple[float, float] | None
    views: int
    picture: Picture | None


@dataclass(frozen=True)
class PageFlight:
    """A flight in the page: its moments in the order of time.

    ``drone`` are places (x, y, yaw; m, rad) in the order of time. ``is_in_recording`` says whether
    times count from the begin of a recording, or from the first view. ``data`` is what its search
    needs.
    """

    name: str
    moments: tuple[PageMoment, ...]
    drone: tuple[tuple[float, float, float], ...]
    is_in_recording: bool
    data: dict[str, Any]


@dataclass(frozen=True)
class PageContent:
    """All of a page. ``left_out`` moments of the memories are not in it.

    ``needs_text`` says that looks of some are rated by a text network, which a page cannot run.
    """

    flights: tuple[PageFlight, ...]
    data: dict[str, Any]
    left_out: int
    damaged: int
    needs_text: bool = False

    @property
    def moments(self) -> list[PageMoment]:
        return [moment for flight in self.flights for moment in flight.moments]


def page_content(memories: Sequence[MemoryReader], spaces: Sequence[Space]) -> PageContent:
    """Read what a page holds of memories; ``spaces`` are those of their bundles or pairs.

    :raises FlightMemoryError: if a memory cannot be read
    """
    flights = [_Flight(memory, memory.table()) for memory in memories]
    left_out = _keep_best(flights)
    begins = [flight.first_ns for flight in flights if len(flight.rows)]
    places: list[dict[str, Any]] = []
    room, number, written = MOST_PICTURE_BYTES, 0, []
    for flight, space in zip(flights, spaces, strict=True):
        # Taps of two bundles are never compared, though their heads may say the same.
        header = flight.memory.header
        own = {'bundle': header.manifest, 'length': header.length, 'taps': header.tap_length}
        own |= space.places()
        if own not in places:
            places.append(own)
        pictures, room = flight.pictures(room)
        about = {
            'name': flight.memory.name,
            'space': places.index(own),
            # Without loss, where flights are not years apart.
            'begin': flight.first_ns - min(begins, default=0),
        }
        written.append(flight.written(number, pictures, about))
        number += len(written[-1].moments)
    data = {
        'vocabulary': vocabulary(),
        'spaces': places,
        'limits': limits(),
        'lights': [light.name.lower() for light in Light],
        'phases': [phase.name.lower() for phase in FlightPhase],
        'motion_names': {str(int(motion)): motion.name.lower() for motion in Motion},
        'flights': [flight.data for flight in written],
    }
    damaged = sum(flight.table.damaged for flight in flights)
    needs_text = any(space.knows_all_words for space in spaces)
    return PageContent(tuple(written), data, left_out, damaged, needs_text)


@dataclass
class _Flight:
    """A memory that is put into a page.

    ``rows`` are those of its table that are kept, in the order of time; ``groups`` (N,) say which
    moment a row belongs to, and ``quality`` (N,) how well it shows it.
    """

    memory: MemoryReader
    table: ItemTable
    rows: Integers = field(init=False)
    groups: Integers = field(init=False)
    quality: NDArray[np.float64] = field(init=False)

    def __post_init__(self) -> None:
        self.groups = groups_of(self.table) if len(self.table) else np.zeros(0, np.int64)
        self.rows = np.argsort(self.table.integers['stamp'], kind='stable')
        looks = self.table.reals('size', 'sharpness', 'visibility').tolist()
        self.quality = np.array([ViewQuality(*look).score for look in looks], float)

    @property
    def first_ns(self) -> int:
        stamps = self.table.integers['stamp']
        return int(stamps[self.rows].min()) if len(self.rows) else 0

    def best(self) -> dict[int, int]:
        """Return the best view (row) of each moment."""
        found: dict[int, int] = {}
        for row in self.rows.tolist():
            group = int(self.groups[row])
            if group not in found or self.quality[row] > self.quality[found[group]]:
                found[group] = row
        return found

    def pictures(self, room: int) -> tuple[dict[int, Picture], int]:
        """Return pictures by row as far as there is room (bytes) for them; return what is left.

        The best one of each moment goes first.
        """
        found = {}
        best = list(self.best().values())
        for row in dict.fromkeys((*best, *self.rows.tolist())):
            content = self.memory.thumbnail(int(self.table.integers['id'][row]))
            picture = picture_of(content) if 0 < len(content) <= room else None
            if picture is not None:
                room -= len(content)
                jpeg = base64.b64encode(content).decode()
                found[row] = Picture(jpeg, picture.shape[1], picture.shape[0])
        return found, room

    def written(
        self, number: int, pictures: dict[int, Picture], about: dict[str, Any]
    ) -> PageFlight:
        """Return the flight for the page; its cards count from ``number``."""
        offsets = self.table.facts['bag_offset'][self.rows]
        is_in_recording = bool((offsets >= 0).all())
        stamps = self.table.integers['stamp'][self.rows] - self.first_ns
        times = (offsets if is_in_recording else stamps) / 1e9
        best = self.best()
        # Moments are numbered by their first view.
        order = {group: place for place, group in enumerate(best)}
        members = np.array([order[int(group)] for group in self.groups[self.rows]], np.int64)
        moments = []
        for group, shown in best.items():
            own = times[members == order[group]]
            item = self.table.item(shown).item
            moments.append(
                PageMoment(
                    number + order[group],
                    f'{item.label} {item.track_id}' if item.label else 'key frame',
                    item.label,
                    float(own.min()),
                    float(own.max()),
                    _place(item),
                    len(own),
                    pictures.get(shown),
                )
            )
        # A picture that stands in a card is not written twice.
        in_cards = set(best.values())
        others = [
            pictures[row].jpeg if row in pictures and row not in in_cards else ''
            for row in self.rows.tolist()
        ]
        return PageFlight(
            about['name'],
            tuple(moments),
            self._drone(),
            is_in_recording,
            {
                **about,
                'first': number,
                'times': [round(float(time), 3) for time in times],
                'shown': [int(np.flatnonzero(self.rows == row)[0]) for row in best.values()],
                'pictures': others,
                **self._searched(members),
            },
        )

    def _drone(self) -> tuple[tuple[float, float, float], ...]:
        drones = self.table.drones[self.rows][:, [0, 1, 3]]
        known = drones[np.isfinite(drones).all(axis=1)]
        return tuple((float(x), float(y), float(yaw)) for x, y, yaw in known)

    def _searched(self, moments: Integers) -> dict[str, Any]:
        """Return labels, vectors, and facts of views as columns; null where nothing is known."""
        table, rows = self.table, self.rows
        labels, label = np.unique(table.texts['label'][rows], return_inverse=True)
        integers = {name: table.integers[name][rows] for name in ('id', 'run', 'track')}
        facts = table.facts[rows]
        columns = {
            **integers,
            'stamp': table.integers['stamp'][rows] - self.first_ns,
            'label': label.reshape(-1),
            'moment': moments,
            'light': lights_of(table.reals('brightness')[rows, 0]),
            'phase': facts['phase'],
        }
        reals = ('x', 'y', 'drone_x', 'drone_y', 'x0', 'x1', 'size', 'score')
        return {
            'labels': labels.tolist(),
            'vectors': _text_of(packed(table.vectors[rows])),
            'taps': _text_of(table.packed_taps[rows]),
            'items': {
                **{name: values.tolist() for name, values in columns.items()},
                **{name: _rounded(facts[name]) for name in reals},
                'motions': self._motions(),
            },
        }

    def _motions(self) -> list[int | None]:
        """Return for each view the ways in which it moves as bits; None: not known."""
        table, rows = self.table, self.rows
        velocities = table.velocities[rows]
        bits = np.zeros(len(rows), np.int64)
        for motion in Motion:
            how = moves(motion, table.positions[rows], velocities, table.drones[rows])
            bits |= how.astype(np.int64) << int(motion)
        known = (np.isfinite(velocities[:, 0]) & np.isfinite(velocities[:, 1])).tolist()
        return [
            bit if is_known else None for bit, is_known in zip(bits.tolist(), known, strict=True)
        ]


def _keep_best(flights: Sequence[_Flight]) -> int:
    """Leave out the moments that are seen worst where they are too many; return how many."""
    ranked = sorted(
        (-flight.quality[row], place, group)
        for place, flight in enumerate(flights)
        for group, row in flight.best().items()
    )
    chosen = {(place, group) for _, place, group in ranked[:MOST_MOMENTS]}
    for place, flight in enumerate(flights):
        groups = flight.groups[flight.rows].tolist()
        flight.rows = flight.rows[[(place, group) in chosen for group in groups]]
    return max(len(ranked) - MOST_MOMENTS, 0)


def _place(item: MemoryItem) -> tuple[float, float] | None:
    x, y = item.position[:2]
    is_known = item.kind is ViewKind.TRACK and math.isfinite(x) and math.isfinite(y)
    return (x, y) if is_known else None


def _text_of(rows: NDArray[np.uint8]) -> str:
    return base64.b64encode(rows.tobytes()).decode()


def _rounded(values: NDArray[np.floating]) -> list[float | None]:
    return [round(value, 3) if math.isfinite(value) else None for value in values.tolist()]
