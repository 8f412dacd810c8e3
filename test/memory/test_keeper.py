"""What comes in flight is embedded, written and forgotten beside the flight."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hand_made_moments import HEADER, JPEG, direction, view

from mmedge_ros.core.data_types import NS_PER_S
from mmedge_ros.encoding import EncodingError
from mmedge_ros.memory.keeper import MemoryKeeper
from mmedge_ros.memory.moment import MemoryItem
from mmedge_ros.memory.store import MemoryReader
from mmedge_ros.memory.views import ChosenView

LOOK = direction(0.0, 1.0)
HOUR = 3600 * NS_PER_S


class Embedding:
    """Embeds everything alike; fails on what is called broken."""

    header = HEADER

    def embedded(self, items: Sequence[MemoryItem]) -> list[MemoryItem]:
        if any(item.label == 'broken' for item in items):
            raise EncodingError('the network failed')
        return [
            replace(item, vector=LOOK, tap=LOOK, manifest=HEADER.manifest, exit=3)
            for item in items
        ]


def bare(track: int = 1, seconds: float = 1.0, label: str = 'person') -> MemoryItem:
    """A view as it leaves the encoder."""
    empty = np.zeros(0, np.float32)
    return view(track, seconds, label=label, manifest='', vector=empty)


def keep(folder: Path, *views: ChosenView, now_ns: int = 0, **options) -> MemoryKeeper:
    """Keep views and end."""
    keeper = MemoryKeeper(folder, Embedding(), lambda: now_ns, **options)  # type: ignore[arg-type]
    keeper.start()
    for one in views:
        keeper.offer(one)
    keeper.stop()
    return keeper


def stored(folder: Path) -> list[tuple[int, int]]:
    with MemoryReader(folder) as reader:
        integers = reader.table().integers
    stamps = (integers['stamp'] // NS_PER_S).tolist()
    return list(zip(integers['track'].tolist(), stamps, strict=True))


def test_what_is_offered_is_embedded_and_written_when_the_node_ends(tmp_path: Path) -> None:
    folder = tmp_path / 'flight.memory'
    keeper = keep(folder, ChosenView(bare(1)), ChosenView(bare(2)))
    assert keeper.kept == 2
    with MemoryReader(folder) as reader:
        table = reader.table()
        assert table.integers['exit'].tolist() == [3, 3]
        assert reader.thumbnail(1) == JPEG
    assert np.argmax(table.vectors[0]) == 1


def test_a_view_that_a_better_one_displaces_goes_whether_it_was_written_or_waits(
    tmp_path: Path,
) -> None:
    folder = tmp_path / 'flight.memory'
    first = [ChosenView(bare(1, 1.0)), ChosenView(bare(1, 3.0)), ChosenView(bare(2, 3.0))]
    displacing = ChosenView(bare(1, 5.0), 3 * NS_PER_S)
    keep(folder, *first, displacing)
    assert stored(folder) == [(1, 1), (2, 3), (1, 5)]
    again = tmp_path / 'again.memory'
    # More than one batch: what is displaced is on the disk by then.
    crowd = [ChosenView(bare(number, 4.0)) for number in range(10, 70)]
    keep(again, *first, *crowd, displacing)
    assert (1, 3) not in stored(again)
    assert len(stored(again)) == 63


def test_what_is_older_than_asked_for_is_forgotten(tmp_path: Path) -> None:
    folder = tmp_path / 'flight.memory'
    old, new = ChosenView(bare(1, 10.0)), ChosenView(bare(2, 3 * 3600.0))
    keep(folder, old, new, now_ns=3 * HOUR + HOUR // 2, keep=1.0)
    assert [track for track, _ in stored(folder)] == [2]


def test_a_full_disk_loses_views_but_not_the_node(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from mmedge_ros.memory import store

    opened = store.open_to_write

    def small(folder: Path) -> sqlite3.Connection:
        connection = opened(folder)
        connection.execute('PRAGMA max_page_count = 12')
        return connection

    monkeypatch.setattr(store, 'open_to_write', small)
    folder = tmp_path / 'flight.memory'
    large = [replace(bare(n), thumbnail=JPEG + bytes(4000)) for n in range(1, 60)]
    keeper = keep(folder, *map(ChosenView, large))
    assert keeper.kept < 59
    assert any('full' in words for words in keeper.failures)


def test_a_flood_is_dropped_and_counted(tmp_path: Path) -> None:
    keeper = MemoryKeeper(tmp_path / 'flight.memory', Embedding(), lambda: 0)  # type: ignore[arg-type]
    for _ in range(510):  # nobody takes them yet
        keeper.offer(ChosenView(bare()))
    assert keeper.dropped == 10


def test_what_flies_loads_nothing_that_reads_recordings() -> None:
    code = (
        'import sys, mmedge_ros.memory.keeper, mmedge_ros.memory.search; '
        'print([name for name in ("rosbags", "mmedge_ros.replay") if name in sys.modules])'
    )
    loaded = subprocess.run([sys.executable, '-c', code], capture_output=True, check=True)
    assert loaded.stdout.split() == [b'[]']
