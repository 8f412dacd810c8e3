"""A file from anywhere is read as far as it is sound, or refused with one sentence."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hand_made_moments import HEADER, JPEG, memory_of, view

from mmedge_ros.memory import FlightMemoryError, store_file
from mmedge_ros.memory.store import MemoryReader, MemoryWriter
from mmedge_ros.memory.store_file import FACTS, FILE_NAME


def opened(folder: Path) -> sqlite3.Connection:
    return sqlite3.connect(folder / FILE_NAME)


def spoil(folder: Path, statement: str, *values: Any) -> None:
    connection = opened(folder)
    with connection:
        connection.execute(statement, values)
    connection.close()


@pytest.fixture(scope='module')
def whole(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The bytes of a sound memory with three views."""
    folder = tmp_path_factory.mktemp('whole.memory')
    memory_of(folder, view(1), view(2), view(3)).close()
    return (folder / FILE_NAME).read_bytes()


@pytest.fixture
def folder(tmp_path: Path, whole: bytes) -> Path:
    (tmp_path / FILE_NAME).write_bytes(whole)
    return tmp_path


def facts(**changes: Any) -> bytes:
    values = np.zeros(1, FACTS)
    for name, value in changes.items():
        values[name] = value
    return values.tobytes()


@pytest.mark.parametrize(
    ('column', 'value'),
    [
        ('vector', b''),
        ('vector', bytes(5_000_000)),
        ('vector', 'text of 8 b'),
        ('vector', None),
        ('vector', np.array([np.nan], '<f4').tobytes() + bytes(4)),
        ('vector', np.array([1e30], '<f4').tobytes() + bytes(4)),
        ('facts', bytes(3)),
        ('facts', None),
        ('facts', facts(x0=np.nan)),
        ('facts', facts(score=np.inf)),
        ('facts', facts(x=1e30)),
        ('facts', facts(phase=200)),
        ('facts', facts(bag_offset=-5)),
        ('stamp', 'yesterday'),
        ('stamp', -1),
        ('stamp', None),
        ('track', 1.5),
        ('kind', 2),
        ('exit', 10_000),
        ('run', b'\x00'),
        ('label', 'x' * 100_000),
        ('label', None),
        ('level', b'medium'),
    ],
)
def test_a_view_that_is_none_is_left_out_and_counted(
    folder: Path, column: str, value: object
) -> None:
    spoil(folder, f'UPDATE items SET {column} = ? WHERE id = 2', value)
    with MemoryReader(folder) as reader:
        table = reader.table()
    assert table.damaged == 1
    assert table.integers['track'].tolist() == [1, 3]
    assert np.isfinite(table.vectors).all()


def test_huge_and_foreign_pictures_are_not_handed_out(folder: Path) -> None:
    spoil(folder, 'UPDATE items SET thumbnail = ? WHERE id = 1', JPEG + bytes(1_000_000))
    spoil(folder, 'UPDATE items SET thumbnail = ? WHERE id = 2', b'<script>')
    with MemoryReader(folder) as reader:
        assert [reader.thumbnail(number) for number in (1, 2, 3, 4)] == [b'', b'', JPEG, b'']


@pytest.mark.parametrize(
    'statement',
    [
        'CREATE VIEW more AS SELECT 1',
        'CREATE TRIGGER boom AFTER INSERT ON items BEGIN DELETE FROM items; END',
        'CREATE TABLE other (a)',
        'ALTER TABLE items ADD COLUMN more text',
        'DROP TABLE items',
        'DROP INDEX items_of_track',
    ],
)
def test_tables_views_and_triggers_of_others_are_refused(folder: Path, statement: str) -> None:
    spoil(folder, statement)
    for kind in (MemoryReader, MemoryWriter):
        with pytest.raises(FlightMemoryError, match=r'its tables are others.*delete the folder'):
            kind(folder)


@pytest.mark.parametrize(
    'statement',
    [
        'DELETE FROM header',
        "INSERT INTO header VALUES ('more', 8, 8)",
        "UPDATE header SET length = 'eight'",
        'UPDATE header SET length = 1000000',
        "UPDATE header SET manifest = x'00'",
    ],
)
def test_a_header_that_is_none_is_refused(folder: Path, statement: str) -> None:
    spoil(folder, statement)
    for kind in (MemoryReader, MemoryWriter):
        with pytest.raises(FlightMemoryError, match=r'is damaged.*delete the folder'):
            kind(folder)


def test_another_database_is_no_flight_memory(tmp_path: Path) -> None:
    connection = opened(tmp_path)
    connection.execute('CREATE TABLE passwords (word text)')
    connection.commit()
    connection.close()
    for open_it in (MemoryReader, MemoryWriter, lambda folder: MemoryWriter(folder, HEADER)):
        with pytest.raises(FlightMemoryError, match='is no flight memory'):
            open_it(tmp_path)


def test_what_is_no_file_is_not_waited_for(tmp_path: Path) -> None:
    (tmp_path / FILE_NAME).mkdir()
    with pytest.raises(FlightMemoryError, match='is no file'):
        MemoryReader(tmp_path)


def test_a_file_too_large_is_not_opened(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_file, 'LARGEST_FILE_BYTES', 1000)
    with pytest.raises(FlightMemoryError, match='more than the 1000'):
        MemoryReader(folder)
