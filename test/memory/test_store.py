"""What was kept is there again, what was forgotten is gone, and whatever fails says why."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hand_made_moments import HEADER, JPEG, LENGTH, direction, key_frame, memory_of, view

from mmedge_ros.core.data_types import NS_PER_S, Box
from mmedge_ros.memory import FlightMemoryError, store
from mmedge_ros.memory.moment import DronePose, FlightPhase, Spot
from mmedge_ros.memory.store import (
    Displaced,
    MemoryReader,
    MemoryWriter,
    memory_folder,
)
from mmedge_ros.memory.store_file import FILE_NAME, StoreHeader, remove_older

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / 'test/support/remember_until_killed.py'
SECRET = b'\xff\xd8 nobody may read this any more'


def folder_of(tmp_path: Path) -> Path:
    return memory_folder(tmp_path / 'flight_7')


def stamps(reader: MemoryReader) -> list[int]:
    return [int(stamp // NS_PER_S) for stamp in reader.table().integers['stamp']]


def bytes_on_disk(folder: Path) -> bytes:
    return b''.join(path.read_bytes() for path in sorted(folder.iterdir()))


# --------------------------------------------------------------------------- keeping


def test_a_view_comes_back_as_it_was(tmp_path: Path) -> None:
    kept = view(
        7,
        position=Spot(1.5, -2.0, 0.25),
        velocity=Spot(0.5, 0.0, 0.0),
        drone=DronePose(10.0, 20.0, 15.0, 0.5),
        phase=FlightPhase.CLIMBING,
        brightness=0.5,
        size=100.0,
        sharpness=0.25,
        visibility=0.75,
        bag_offset_ns=123_456_789,
        level='medium',
        exit=2,
        tap=direction(0.0, 2.0, 1.0),
    )
    with memory_of(folder_of(tmp_path), kept) as reader:
        number, run, back = reader.table().item(0)
        assert reader.name == 'flight_7'
        assert reader.thumbnail(number) == JPEG
        (tap,) = reader.table().taps(np.array([0]))
    for name in kept.__dataclass_fields__:
        if name not in ('vector', 'tap', 'thumbnail', 'score'):
            assert getattr(back, name) == getattr(kept, name), name
    assert back.score == pytest.approx(kept.score)
    # Four bits a value: half a step of a seventh of the largest.
    for read, given in ((back.vector, kept.vector), (tap, kept.tap)):
        step = float(np.abs(given).max()) / 7.0
        assert np.abs(read - given).max() <= 0.501 * step
    assert run == 0


def test_a_reader_sees_each_batch_as_soon_as_it_is_kept(tmp_path: Path) -> None:
    folder = folder_of(tmp_path)
    with MemoryWriter(folder, HEADER) as writer:
        writer.add([view(seconds=1.0)])
        with MemoryReader(folder) as reader:
            first = reader.table()
            assert stamps(reader) == [1]
            assert reader.table() is first
            writer.add([view(seconds=2.0), view(seconds=3.0)])
            assert stamps(reader) == [1, 2, 3]


def test_a_better_view_takes_the_place_of_another(tmp_path: Path) -> None:
    folder = folder_of(tmp_path)
    with MemoryWriter(folder, HEADER) as writer:
        writer.add([view(1, 1.0), view(1, 2.0), view(2, 1.0), key_frame(1.0)])
        writer.add([view(1, 3.0)], displaced=[Displaced(1, NS_PER_S), Displaced(0, NS_PER_S)])
    with MemoryReader(folder) as reader:
        table = reader.table()
        assert table.integers['track'].tolist() == [1, 2, 0, 1]
        assert stamps(reader) == [2, 1, 1, 3]


@pytest.mark.parametrize(
    ('changes', 'words'),
    [
        ({'manifest': 'other'}, "bundle 'other'"),
        ({'vector': np.zeros(LENGTH + 1, np.float32)}, 'shapes of vector and tap'),
        ({'tap': np.zeros(0, np.float32)}, 'shapes of vector and tap'),
        ({'vector': np.full(LENGTH, np.nan, np.float32)}, 'no number'),
        ({'thumbnail': bytes(20_000)}, 'bytes of thumbnail'),
        ({'label': 'x' * 65}, 'label'),
        ({'level': 'a\x00b'}, 'level'),
        ({'label': '\ud800'}, 'label'),
        ({'stamp_ns': 2**63}, 'stamp'),
        ({'track_id': -1}, 'track'),
        ({'image_size': (70_000, 1)}, 'picture size'),
        ({'box': Box(0.0, 0.0, float('nan'), 1.0)}, 'box'),
        ({'position': Spot(1e12, 0.0, 0.0)}, 'place'),
        ({'exit': 2000}, 'exit'),
        ({'bag_offset_ns': -2}, 'bag offset'),
    ],
)
def test_a_batch_with_a_view_that_is_none_is_refused_as_a_whole(
    tmp_path: Path, changes: dict[str, object], words: str
) -> None:
    folder = folder_of(tmp_path)
    with MemoryWriter(folder, HEADER) as writer:
        with pytest.raises(FlightMemoryError, match=words):
            writer.add([view(1), replace(view(2), **changes)])
        writer.add([view(3)])
    with MemoryReader(folder) as reader:
        assert reader.table().integers['track'].tolist() == [3]


def test_a_memory_that_has_as_many_views_as_it_can_hold_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, 'MOST_ITEMS', 2)
    with MemoryWriter(folder_of(tmp_path), HEADER) as writer:
        writer.add([view(1), view(2)])
        with pytest.raises(FlightMemoryError, match='holds 2 views of at most 2'):
            writer.add([view(3)])
        writer.forget_track(1)
        writer.add([view(3)])


# ---------------------------------------------------------------------------- killed


@pytest.mark.parametrize(('role', 'lines'), [('between', 3), ('within', 3), ('steadily', 20)])
def test_a_killed_program_loses_at_most_its_open_batch(
    tmp_path: Path, role: str, lines: int
) -> None:
    folder = folder_of(tmp_path)
    process = subprocess.Popen(
        [sys.executable, str(SCRIPT), str(folder), role],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, 'PYTHONPATH': str(ROOT)},
    )
    assert process.stdout is not None
    said = [process.stdout.readline().strip() for _ in range(lines)]
    process.send_signal(signal.SIGKILL)
    said += process.stdout.read().split()
    process.communicate()
    batches = sum(line.isdigit() for line in said)
    with MemoryReader(folder) as reader:
        tracks = reader.table().integers['track'].tolist()
    # A batch may have been kept before its line was said.
    whole = [
        [number for number in range(1, 1 + n) for _ in range(3)] for n in (batches, batches + 1)
    ]
    assert tracks in whole
    with MemoryWriter(folder, HEADER) as writer:
        writer.add([view(50)])


def test_a_program_that_was_killed_before_its_first_batch_leaves_nothing_in_the_way(
    tmp_path: Path,
) -> None:
    folder = folder_of(tmp_path)
    folder.mkdir()
    (folder / FILE_NAME).touch()
    with pytest.raises(FlightMemoryError, match='is empty'):
        MemoryReader(folder)
    with pytest.raises(FlightMemoryError, match='is empty'):
        MemoryWriter(folder)
    with memory_of(folder, view()) as reader:
        assert len(reader.table()) == 1


# -------------------------------------------------------------------------- forgetting


def test_what_is_forgotten_is_gone_from_the_files_as_well(tmp_path: Path) -> None:
    folder = folder_of(tmp_path)
    with MemoryWriter(folder, HEADER) as writer:
        writer.add([view(1, seconds) for seconds in range(1, 60)])
        writer.add([view(2, 5.0, thumbnail=SECRET, label='a shy person')])
        writer.add([view(3, 6.0)])
        assert SECRET in bytes_on_disk(folder)
        assert writer.forget_track(2) == 1
        assert SECRET not in bytes_on_disk(folder)
        assert b'a shy person' not in bytes_on_disk(folder)
        assert JPEG in bytes_on_disk(folder)
    with MemoryReader(folder) as reader:
        assert set(reader.table().integers['track'].tolist()) == {1, 3}


def test_forgetting_says_so_while_a_reader_keeps_the_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr('mmedge_ros.memory.store_file._PATIENCE', 0.0)
    folder = folder_of(tmp_path)
    memory_of(folder, view(thumbnail=SECRET)).close()
    with MemoryReader(folder) as reader, MemoryWriter(folder) as writer:
        # A statement that has not ended holds what it reads.
        cursor = reader._connection.execute('SELECT id FROM items UNION ALL SELECT 2')
        assert cursor.fetchone()
        with pytest.raises(FlightMemoryError, match=r'keeps bytes that were deleted.*try again'):
            writer.forget_all()
        cursor.close()
        assert writer.forget_all() == 0
        assert SECRET not in bytes_on_disk(folder)


# ---------------------------------------------------------------------------- failures


def test_a_full_disk_gets_one_sentence_and_costs_one_batch(tmp_path: Path) -> None:
    folder = folder_of(tmp_path)
    with MemoryWriter(folder, HEADER) as writer:
        writer.add([view(1)])
        (pages,) = writer._connection.execute('PRAGMA page_count').fetchone()
        writer._connection.execute(f'PRAGMA max_page_count = {pages + 1}')
        with pytest.raises(FlightMemoryError, match=r'disk is full.*free some space'):
            writer.add([view(2, thumbnail=JPEG * 100) for _ in range(20)])
        writer._connection.execute('PRAGMA max_page_count = 100000')
        writer.add([view(3)])
    with MemoryReader(folder) as reader:
        assert reader.table().integers['track'].tolist() == [1, 3]


def test_only_a_memory_of_another_version_is_removed(tmp_path: Path) -> None:
    folder = folder_of(tmp_path)
    remove_older(folder)  # there is none
    memory_of(folder, view()).close()
    remove_older(folder)
    assert (folder / FILE_NAME).exists()
    connection = sqlite3.connect(folder / FILE_NAME)
    connection.execute('PRAGMA user_version = 1')
    connection.close()
    remove_older(folder)
    assert list(folder.iterdir()) == []
    (folder / FILE_NAME).write_bytes(b'something else')
    with pytest.raises(FlightMemoryError, match='damaged'):
        remove_older(folder)
    assert (folder / FILE_NAME).exists(), 'what is not ours stays'


def test_a_store_of_another_version_gets_one_sentence(tmp_path: Path) -> None:
    folder = folder_of(tmp_path)
    memory_of(folder, view()).close()
    with sqlite3.connect(folder / FILE_NAME) as connection:
        connection.execute('PRAGMA user_version = 7')
    for kind in (MemoryReader, MemoryWriter):
        with pytest.raises(FlightMemoryError, match=r'format 7; this one reads 2.*build'):
            kind(folder)


def test_an_empty_memory_takes_the_vectors_of_another_bundle_and_a_full_one_does_not(
    tmp_path: Path,
) -> None:
    folder, other = folder_of(tmp_path), StoreHeader('b' * 64, 12, 12)
    with memory_of(folder, view()):
        pass
    with pytest.raises(FlightMemoryError, match='forget what it holds first'):
        MemoryWriter(folder, other)
    with MemoryWriter(folder) as writer:
        writer.forget_all()
    with MemoryWriter(folder, other):
        pass
    with MemoryReader(folder) as reader:
        assert reader.header == other
