"""What a flight memory costs: building, embedding, bytes, and questions to a large one."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from mmedge_lab.judging.memory_cases import EXIT, RememberedFlight
from mmedge_ros.memory.int4 import row_bytes
from mmedge_ros.memory.moment import MemoryItem, ViewKind
from mmedge_ros.memory.query import MemoryQuery, read_query
from mmedge_ros.memory.search import QueryScorer, search
from mmedge_ros.memory.store import MemoryReader, MemoryWriter
from mmedge_ros.memory.store_file import StoreHeader

MANY = 5000
_REPEATED = 20
_LABELS = ('person', 'cyclist', 'car', 'dog')
_TEXT = 'person in a red top and blue trousers'


def memory_costs(
    flights: Sequence[RememberedFlight], scorer: QueryScorer, watts: float
) -> dict[str, Any]:
    """Return costs as plain values.

    :param watts: what a processor at work takes, for joules by that model
    """

    def total(name: str) -> float:
        return sum(flight.costs[name] for flight in flights)

    objects, items = total('objects'), total('objects') + total('key_frames')
    length = flights[0].table.vectors.shape[1]
    exits = sorted(
        {name for f in flights for name in f.vectors if name.startswith(EXIT.format(''))}
    )
    build = total('build_s')
    return {
        'watts': watts,
        'build': {
            'flight_s': total('seconds'),
            'cpu_s': build,
            'joules': watts * build,
            'peak_rss_mb': max(flight.costs['peak_mb'] for flight in flights),
        },
        'embedding': {
            name: {
                'objects_per_s': objects / max(total(f'{name}_s'), 1e-9),
                'ms_per_object': 1e3 * total(f'{name}_s') / max(objects, 1.0),
                'mj_per_object': 1e3 * watts * total(f'{name}_s') / max(objects, 1.0),
            }
            for name in exits
        },
        'bytes': {
            'items': round(items),
            'key_frames': round(total('key_frames')),
            'per_item': total('bytes') / max(items, 1.0),
            'vector': row_bytes(length),
            'tap': row_bytes(flights[0].table.tap_length),
            'object_thumbnail': total('object_thumbnails') / max(objects, 1.0),
            'key_frame_thumbnail': total('key_frame_thumbnails') / max(total('key_frames'), 1.0),
        },
        'query': query_times(flights, scorer),
    }


def query_times(flights: Sequence[RememberedFlight], scorer: QueryScorer) -> dict[str, float]:
    """Ask a memory of `MANY` views, those of flights over and over: processor time, ms."""
    with TemporaryDirectory() as folder:
        place = Path(folder) / 'many.memory'
        table, items = flights[0].table, list(_many(flights))
        header = StoreHeader(table.manifest, table.vectors.shape[1], table.tap_length)
        with MemoryWriter(place, header) as writer:
            writer.add(items)
        words = MemoryQuery(read_query(_TEXT, _LABELS))
        example = MemoryQuery(examples=items[0].tap[None])

        def ask(reader: MemoryReader, query: MemoryQuery) -> None:
            search([reader], query, lambda _: scorer)

        def begin() -> None:
            with MemoryReader(place) as reader:
                ask(reader, words)

        with MemoryReader(place) as reader:
            return {
                'items': MANY,
                'first_ms': _usual(begin),
                'words_ms': _usual(lambda: ask(reader, words)),
                'example_ms': _usual(lambda: ask(reader, example)),
            }


def _many(flights: Sequence[RememberedFlight]) -> Iterator[MemoryItem]:
    """Yield views of all flights, again and again as other tracks."""
    known = [
        (place, replace(flight.table.item(row).item, tap=tap))
        for place, flight in enumerate(flights)
        for row, tap in enumerate(flight.table.taps(np.ones(len(flight.table), bool)))
    ]
    known = [(place, item) for place, item in known if item.kind is ViewKind.TRACK]
    tracks: dict[tuple[int, int, int], int] = {}
    for number, (place, item) in zip(range(MANY), itertools.cycle(known), strict=False):
        track = number // len(known), place, item.track_id
        yield replace(item, track_id=tracks.setdefault(track, len(tracks) + 1))


def _usual(work: Callable[[], None]) -> float:
    return float(np.median([_milliseconds(work) for _ in range(_REPEATED)]))


def _milliseconds(work: Callable[[], None]) -> float:
    begun = time.process_time()
    work()
    return 1e3 * (time.process_time() - begun)
