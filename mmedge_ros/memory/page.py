"""The page of a flight memory: cards, maps and timelines are seen without a script."""

from __future__ import annotations

import base64
import math
import shlex
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mmedge_ros.memory.int4 import packed
from mmedge_ros.memory.moment import (
    FlightPhase,
    Light,
    MemoryItem,
    Motion,
    ViewKind,
    lights_of,
    moves,
)
from mmedge_ros.memory.query import LONGEST_QUERY, vocabulary
from mmedge_ros.memory.relations import limits
from mmedge_ros.memory.search import NO_ABSENCE, groups_of
from mmedge_ros.memory.spaces import Space, scorer_for
from mmedge_ros.memory.store import Integers, MemoryReader, memories_of
from mmedge_ros.memory.view_choice import ViewQuality
from mmedge_ros.memory.views import picture_of
from mmedge_ros.report.page import Tile, render_page
from mmedge_ros.report.report_files import write_files

# A page is to open on a phone; of larger memories it holds what is seen best.
MOST_ON_PAGE, MOST_PICTURE_BYTES = 3000, 16 << 20
_SCRIPTS = ('memory_search.js.j2', 'memory_page.js.j2')
_COLOURS = 7  # of page.css.j2
_BAGS = ('.mcap', '.db3')
# Height of a map as a share of its width, how much is left around what it shows, and the least it
# shows, m.
_FLATTEST, _TALLEST, _AROUND, _LEAST_METRES = 0.55, 1.0, 0.06, 10.0
_MOST_LANES, _MOST_PATH = 8, 1000
_STEPS = [step * 10**power for power in range(-1, 10) for step in (1, 2, 5)]


class Picture(NamedTuple):
    """A thumbnail: JPEG in base64 and its size, px."""

    jpeg: str
    width: int
    height: int


class PageMoment(NamedTuple):
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


class PageFlight(NamedTuple):
    """A flight in the page: its moments in the order of time.

    ``drone`` are places (x, y, yaw; m, rad) in the order of time. ``is_in_recording`` says whether
    times count from the begin of a recording, or from the first view. ``files`` is where it is
    recorded. ``data`` is what its search needs.
    """

    name: str
    moments: tuple[PageMoment, ...]
    drone: tuple[tuple[float, float, float], ...]
    is_in_recording: bool
    files: str
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


def write_memory_page(places: Sequence[Path], bundles: Sequence[Path], out: Path) -> PageContent:
    """Write the page of flights into a file; say what it holds.

    :param places: recordings with a memory, or memories
    :param bundles: where the bundles that made them may be
    :raises FlightMemoryError: if a memory or its bundle cannot be read
    :raises ReportError: if the page cannot be written
    """
    with ExitStack() as stack:
        memories = {p: stack.enter_context(MemoryReader(p)) for p in memories_of(places)}
        find = scorer_for(bundles)
        spaces = [find(memory.header) for memory in memories.values()]
        content = _content([_Flight(folder, of) for folder, of in memories.items()], spaces)
    page = _rendered(content)
    write_files(out.parent, {out.name: page.encode(errors='replace')})
    return content


def _content(flights: Sequence[_Flight], spaces: Sequence[Space]) -> PageContent:
    left_out = _keep_best(flights)
    first_ns = min((flight.first_ns for flight in flights if len(flight.rows)), default=0)
    places: list[dict[str, Any]] = []
    room, written = MOST_PICTURE_BYTES, list[PageFlight]()
    for flight, space in zip(flights, spaces, strict=True):
        # Taps of two bundles are never compared, though their heads may say the same.
        header = flight.memory.header
        own = {'bundle': header.manifest, 'length': header.length, 'taps': header.tap_length}
        own |= space.places()
        if own not in places:
            places.append(own)
        pictures, room = flight.pictures(room)
        number = sum(len(one.moments) for one in written)
        # Without loss, where flights are not years apart.
        about = {'space': places.index(own), 'begin': flight.first_ns - first_ns}
        written.append(flight.written(number, pictures, about))
    data = {
        'vocabulary': vocabulary(),
        'spaces': places,
        'limits': limits(),
        'lights': [light.name.lower() for light in Light],
        'phases': [phase.name.lower() for phase in FlightPhase],
        'motion_names': {str(int(motion)): motion.name.lower() for motion in Motion},
        'flights': [flight.data for flight in written],
        'in_recording': [flight.is_in_recording for flight in written],
    }
    damaged = sum(flight.table.damaged for flight in flights)
    needs_text = any(space.knows_all_words for space in spaces)
    return PageContent(tuple(written), data, left_out, damaged, needs_text)


class _Flight:
    """A memory that is put into a page.

    ``rows`` are those of its table that are kept, in the order of time; ``groups`` (N,) say which
    moment a row belongs to, and ``quality`` (N,) how well it shows it.
    """

    def __init__(self, folder: Path, memory: MemoryReader) -> None:
        self.folder, self.memory, self.table = folder, memory, memory.table()
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
        name = self.memory.name
        files, play = _recorded(self.folder, name)
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
            name,
            tuple(moments),
            self._drone(),
            is_in_recording,
            files,
            {
                'name': name,
                'files': files,
                'play': play,
                'ask': _quoted(name),
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
    chosen = {(place, group) for _, place, group in ranked[:MOST_ON_PAGE]}
    for place, flight in enumerate(flights):
        groups = flight.groups[flight.rows].tolist()
        flight.rows = flight.rows[[(place, group) in chosen for group in groups]]
    return max(len(ranked) - MOST_ON_PAGE, 0)


def _place(item: MemoryItem) -> tuple[float, float] | None:
    x, y = item.position[:2]
    is_known = item.kind is ViewKind.TRACK and math.isfinite(x) and math.isfinite(y)
    return (x, y) if is_known else None


def _text_of(rows: NDArray[np.uint8]) -> str:
    return base64.b64encode(rows.tobytes()).decode()


def _rounded(values: NDArray[np.floating]) -> list[float | None]:
    return [round(value, 3) if math.isfinite(value) else None for value in values.tolist()]


def _rendered(content: PageContent) -> str:
    flights = content.flights
    counts = Counter(moment.label for moment in content.moments)
    labels = [label for label, _ in counts.most_common() if label]
    more = f' and {len(flights) - 3} more' if len(flights) > 3 else ''
    return render_page(
        'memory.html.j2',
        {},
        (),
        scripts=_SCRIPTS,
        title=', '.join(flight.name for flight in flights[:3]) + more,
        tiles=_tiles(content, counts, labels),
        flights=[
            {'flight': flight, 'map': _map(flight), 'files': flight.files, **_timeline(flight)}
            for flight in flights
        ],
        content=content,
        colours={label: f'--c{place % _COLOURS}' for place, label in enumerate(labels)},
        suggestions=labels[:4] if content.needs_text else _suggestions(labels),
        longest=LONGEST_QUERY,
        no_absence=NO_ABSENCE,
        data=content.data,
    )


def _tiles(content: PageContent, counts: Counter[str], labels: Sequence[str]) -> list[Tile]:
    moments = content.moments
    views = sum(moment.views for moment in moments)
    tiles = [Tile('moments', str(len(moments)), f'{views} kept views')]
    tiles += [Tile(label, str(counts[label]), 'tracks with a view') for label in labels[:4]]
    if counts['']:
        tiles.append(Tile('key frames', str(counts['']), 'where the scene changed'))
    return tiles


def _suggestions(labels: Sequence[str]) -> list[str]:
    asked = {
        'person': ('person in a red top', 'person walking'),
        'car': ('white car', 'person near a car'),
        'cyclist': ('cyclist leaving',),
        'dog': ('dog near a person',),
    }
    return [words for label in labels for words in asked.get(label, ())][:4]


def _recorded(folder: Path, name: str) -> tuple[str, str]:
    """Return where a flight is recorded, and the command that plays it; '' where none does."""
    recording = folder.absolute().with_name(name)
    files = sorted(path.name for path in recording.glob('*') if path.suffix in _BAGS)
    if files:
        more = f' (and {len(files) - 1} more)' if len(files) > 1 else ''
        return f'{name}/{files[0]}{more}', f'ros2 bag play {_quoted(name)}'
    if recording.is_file():
        return name, f'ros2 bag play {_quoted(name)}' if recording.suffix in _BAGS else ''
    return f'{name} (it was not beside the memory)', ''


def _quoted(name: str) -> str:
    return shlex.quote(f'./{name}' if name.startswith('-') else name)


def _map(flight: PageFlight) -> dict[str, Any] | None:
    """Return the map of a flight, x to the right and y up; None where no place is known.

    ``aspect`` is its width by its height; all else lies in percent from its left and its top:
    ``dots`` of moments, the ``path`` of the drone, and the lines of the grid ``across`` and
    ``up``. ``turn`` is where the drone headed at last, in degrees clockwise from up.
    """
    placed = [(m, m.place) for m in flight.moments if m.place is not None]
    step = -(-len(flight.drone) // _MOST_PATH) or 1
    path = [*flight.drone[::step], *flight.drone[-1:]]
    points = [place for _, place in placed] + [(x, y) for x, y, _ in path]
    if not points:
        return None
    spans = []
    for values in zip(*points, strict=True):
        low, high = min(values), max(values)
        half = max((0.5 + _AROUND) * (high - low), _LEAST_METRES / 2.0)
        spans.append([0.5 * (low + high), half])
    (middle_x, half_x), (middle_y, half_y) = spans
    half_y = max(half_y, _FLATTEST * half_x)
    half_x = max(half_x, half_y / _TALLEST)

    def at(x: float, y: float, words: str = '') -> dict[str, Any]:
        left, top = (x - middle_x + half_x) / half_x, (middle_y + half_y - y) / half_y
        return {'left': round(50.0 * left, 2), 'top': round(50.0 * top, 2), 'words': words}

    return {
        'aspect': round(half_x / half_y, 3),
        'dots': [(moment, at(*place)) for moment, place in placed],
        'path': [at(x, y) for x, y, _ in path],
        'turn': round(90.0 - math.degrees(path[-1][2]), 1) if path else 0.0,
        'across': [at(x, middle_y, f'{x:g}') for x in _lines(middle_x, half_x, 2.0 * half_x)],
        'up': [at(middle_x, y, f'{y:g}') for y in _lines(middle_y, half_y, 2.0 * half_x)],
    }


def _lines(middle: float, half: float, whole: float) -> list[float]:
    """Return where the lines of a grid lie that has at most seven over the whole, m."""
    step = next((step for step in _STEPS if whole / step <= 7.0), _STEPS[-1])
    first, last = math.ceil((middle - half) / step), math.floor((middle + half) / step)
    return [round(number * step, 6) for number in range(first, min(last, first + 9) + 1)]


def _timeline(flight: PageFlight) -> dict[str, Any]:
    """Return the rows of a timeline, the commonest label first, and its ticks.

    Bars begin at ``left`` and are so wide, in percent, each in a lane of its row.
    """
    end = max((moment.end for moment in flight.moments), default=0.0) or 1.0
    counts = Counter(moment.label for moment in flight.moments)
    rows = []
    for label in sorted(counts, key=lambda label: (not label, -counts[label], label)):
        free: list[float] = []
        bars = [
            {
                'moment': moment,
                'left': round(100.0 * moment.begin / end, 2),
                'width': round(100.0 * (moment.end - moment.begin) / end, 2),
                'lane': _lane(free, moment, 0.012 * end),
            }
            for moment in flight.moments
            if moment.label == label
        ]
        rows.append({'label': label or 'key frames', 'lanes': len(free), 'bars': bars})
    step = next((step for step in _STEPS if end / step <= 5.0), _STEPS[-1])
    ticks = [
        {'left': round(100.0 * number * step / end, 2), 'words': f'{number * step:g}'}
        for number in range(int(end / step) + 1)
    ]
    return {'rows': rows, 'ticks': ticks[:7]}


def _lane(free: list[float], moment: PageMoment, apart: float) -> int:
    """Return the first lane that is free, and take it; the one that ends first where none is."""
    lane = next((n for n, until in enumerate(free) if until <= moment.begin), len(free))
    if lane == len(free) < _MOST_LANES:
        free.append(0.0)
    elif lane == len(free):
        lane = free.index(min(free))
    free[lane] = max(free[lane], moment.end + apart)
    return lane
