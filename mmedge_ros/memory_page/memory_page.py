"""Draws the page of a flight memory: cards, maps and timelines are seen without a script."""

from __future__ import annotations

import math
import shlex
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

from mmedge_ros.flight_memory.memory_store import MemoryReader, memories_of
from mmedge_ros.flight_memory.query import LONGEST_QUERY
from mmedge_ros.flight_memory.scorers import scorer_for
from mmedge_ros.flight_memory.search import NO_ABSENCE
from mmedge_ros.memory_page.page_content import (
    PageContent,
    PageFlight,
    PageMoment,
    page_content,
)
from mmedge_ros.report.page import Tile, render_page
from mmedge_ros.report.report_files import write_files

_SCRIPTS = ('memory_search.js.j2', 'memory_page.js.j2')
_COLOURS = 7  # of page.css.j2
_BAGS = ('.mcap', '.db3')
# Height of a map as a share of its width, how much is left around what it shows, and the least it
# shows, m.
_FLATTEST, _TALLEST, _AROUND, _LEAST_METRES = 0.55, 1.0, 0.06, 10.0
_MOST_LANES, _MOST_PATH = 8, 1000
_STEPS = [step * 10**power for power in range(-1, 10) for step in (1, 2, 5)]


class Mark(NamedTuple):
    """Something at a place of a picture; ``left`` and ``top`` in percent."""

    left: float
    top: float
    words: str = ''


class MapView(NamedTuple):
    """A map, x to the right and y up.

    ``aspect`` is its width by its height. ``path`` are points of the drone, and ``turn`` is where
    it headed at last, in degrees clockwise from up. ``across`` and ``up`` are lines of the grid.
    """

    aspect: float
    dots: Sequence[tuple[PageMoment, Mark]]
    path: Sequence[Mark]
    turn: float
    across: Sequence[Mark]
    up: Sequence[Mark]


class Bar(NamedTuple):
    """A moment in the timeline: where it begins and how long it is, in percent; its lane."""

    moment: PageMoment
    left: float
    width: float
    lane: int


class TimeRow(NamedTuple):
    """What bears one label in a timeline."""

    label: str
    lanes: int
    bars: Sequence[Bar]


class ShownFlight(NamedTuple):
    """A flight as the template has it; ``files`` is where it is recorded, ``play`` a command."""

    flight: PageFlight
    map: MapView | None
    rows: Sequence[TimeRow]
    ticks: Sequence[Mark]
    files: str
    play: str


def write_memory_page(places: Sequence[Path], bundles: Sequence[Path], out: Path) -> PageContent:
    """Write the page of flights into a file; say what it holds.

    :param places: recordings with a memory, or memories
    :param bundles: where the bundles that made them may be
    :raises FlightMemoryError: if a memory or its bundle cannot be read
    :raises ReportError: if the page cannot be written
    """
    folders = memories_of(places)
    with ExitStack() as stack:
        memories = [stack.enter_context(MemoryReader(folder)) for folder in folders]
        find = scorer_for(bundles)
        content = page_content(memories, [find(memory.header) for memory in memories])
    page = render_memory_page(content, folders)
    write_files(out.parent, {out.name: page.encode(errors='replace')})
    return content


def render_memory_page(content: PageContent, folders: Sequence[Path]) -> str:
    """Render the page; ``folders`` are those of the memories."""
    flights = [
        ShownFlight(flight, _map(flight), *_timeline(flight), *_recorded(folder, flight.name))
        for flight, folder in zip(content.flights, folders, strict=True)
    ]
    counts = Counter(moment.label for moment in content.moments)
    labels = [label for label, _ in counts.most_common() if label]
    data = {
        **content.data,
        'flights': [
            {
                **one.flight.data,
                'files': one.files,
                'play': one.play,
                'ask': _quoted(one.flight.name),
            }
            for one in flights
        ],
        'in_recording': [one.flight.is_in_recording for one in flights],
    }
    return render_page(
        'memory.html.j2',
        {},
        (),
        scripts=_SCRIPTS,
        title=', '.join(flight.name for flight in content.flights[:3])
        + (f' and {len(flights) - 3} more' if len(flights) > 3 else ''),
        tiles=_tiles(content, counts, labels),
        flights=flights,
        content=content,
        colours={label: f'--c{place % _COLOURS}' for place, label in enumerate(labels)},
        suggestions=labels[:4] if content.needs_text else _suggestions(labels),
        longest=LONGEST_QUERY,
        no_absence=NO_ABSENCE,
        data=data,
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


def _map(flight: PageFlight) -> MapView | None:
    """Return the map of a flight; None where no place is known."""
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

    def at(x: float, y: float, words: str = '') -> Mark:
        left, top = (x - middle_x + half_x) / half_x, (middle_y + half_y - y) / half_y
        return Mark(round(50.0 * left, 2), round(50.0 * top, 2), words)

    return MapView(
        round(half_x / half_y, 3),
        [(moment, at(*place)) for moment, place in placed],
        [at(x, y) for x, y, _ in path],
        round(90.0 - math.degrees(path[-1][2]), 1) if path else 0.0,
        [at(x, middle_y, f'{x:g}') for x in _lines(middle_x, half_x, 2.0 * half_x)],
        [at(middle_x, y, f'{y:g}') for y in _lines(middle_y, half_y, 2.0 * half_x)],
    )


def _lines(middle: float, half: float, whole: float) -> list[float]:
    """Return where the lines of a grid lie that has at most seven over the whole, m."""
    step = next((step for step in _STEPS if whole / step <= 7.0), _STEPS[-1])
    first, last = math.ceil((middle - half) / step), math.floor((middle + half) / step)
    return [round(number * step, 6) for number in range(first, min(last, first + 9) + 1)]


def _timeline(flight: PageFlight) -> tuple[list[TimeRow], list[Mark]]:
    """Return the rows of a timeline, the commonest label first, and its ticks."""
    end = max((moment.end for moment in flight.moments), default=0.0) or 1.0
    counts = Counter(moment.label for moment in flight.moments)
    rows = []
    for label in sorted(counts, key=lambda label: (not label, -counts[label], label)):
        free: list[float] = []
        bars = []
        for moment in flight.moments:
            if moment.label == label:
                lane = _lane(free, moment, 0.012 * end)
                left = 100.0 * moment.begin / end
                width = 100.0 * (moment.end - moment.begin) / end
                bars.append(Bar(moment, round(left, 2), round(width, 2), lane))
        rows.append(TimeRow(label or 'key frames', len(free), bars))
    step = next((step for step in _STEPS if end / step <= 5.0), _STEPS[-1])
    ticks = [
        Mark(round(100.0 * number * step / end, 2), 0.0, f'{number * step:g}')
        for number in range(int(end / step) + 1)
    ]
    return rows, ticks[:7]


def _lane(free: list[float], moment: PageMoment, apart: float) -> int:
    """Return the first lane that is free, and take it; the one that ends first where none is."""
    lane = next((n for n, until in enumerate(free) if until <= moment.begin), len(free))
    if lane == len(free) < _MOST_LANES:
        free.append(0.0)
    elif lane == len(free):
        lane = free.index(min(free))
    free[lane] = max(free[lane], moment.end + apart)
    return lane
