"""The file of a flight memory: its tables, and how SQLite opens it and explains itself.

A file may come from anywhere. It must have our tables and nothing else, so that no view and no
trigger runs; what its columns hold is judged where it is read.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import NamedTuple

import numpy as np

from mmedge_ros.core.data_types import NS_PER_S
from mmedge_ros.core.untrusted_files import brief
from mmedge_ros.memory import FlightMemoryError

FILE_NAME = 'memory.sqlite'
# Raised with every change of the tables or of what they mean.
SCHEMA = 2
LARGEST_FILE_BYTES = 1 << 30
# An hour at ten views a second is 36 000.
MOST_ITEMS = 100_000
LONGEST_VECTOR = 1024
LONGEST_TEXT, LONGEST_MANIFEST = 64, 128
LARGEST_THUMBNAIL = 16 << 10  # bytes

_APPLICATION = 0x4D4D464D
_REMEDY = 'delete the folder and build the memory again from the recording'
# Views of about a kilobyte fill small pages best: memories of 30 and 70 views took 1.4 and 1.1 kB
# a view, with SQLite's own 4096 bytes 2.0 and 1.3. Reading 5000 takes 28 ms in place of 20.
_PAGE = 512
# How long another program may write before we give up, s.
_PATIENCE = 5.0
# What SQLite puts beside a file that is read, bytes.
_SHARED_MEMORY = 64 << 10


# Numbers that are only read all together are one blob of this type, which numpy reads at once.
# NaN: not known. No distance, speed or size is larger than `LARGEST_REAL`.
REALS = (
    *('x0', 'y0', 'x1', 'y1', 'score'),
    *('x', 'y', 'z', 'velocity_x', 'velocity_y', 'velocity_z'),
    *('drone_x', 'drone_y', 'drone_z', 'drone_yaw'),
    *('brightness', 'size', 'sharpness', 'visibility'),
)
KNOWN_REALS = REALS[:5]
LARGEST_REAL = 1e9
FACTS = np.dtype(
    [
        ('bag_offset', '<i8'),
        ('width', '<u2'),
        ('height', '<u2'),
        ('phase', 'u1'),
        *((name, '<f4') for name in REALS),
    ]
)
COLUMNS = {
    'run': 'integer',
    'kind': 'integer',
    'track': 'integer',
    'stamp': 'integer',
    'exit': 'integer',
    'label': 'text',
    'level': 'text',
    'facts': 'blob',
    'vector': 'blob',
    'tap': 'blob',
    'thumbnail': 'blob',
}
LARGEST_EXIT = 1000
# As large as messages have them: of views and tracks, and of stamps (19 January 2038).
LARGEST_NUMBER = 2**32 - 1
LAST_STAMP_NS = 2**31 * NS_PER_S - 1
# Rows that hold what `MemoryWriter` may have written, but for the values within blobs.
SOUND = ' AND '.join(
    (
        *(f"typeof({name}) = '{kind}'" for name, kind in COLUMNS.items()),
        'run >= 0',
        f'id BETWEEN 1 AND {LARGEST_NUMBER}',
        f'track BETWEEN 0 AND {LARGEST_NUMBER}',
        f'stamp BETWEEN 0 AND {LAST_STAMP_NS}',
        'kind BETWEEN 0 AND 1',
        f'exit BETWEEN 0 AND {LARGEST_EXIT}',
        *(f'length({name}) <= {LONGEST_TEXT}' for name in ('label', 'level')),
        f'length(facts) = {FACTS.itemsize}',
        'length(vector) = ?',
        'length(tap) = ?',
    )
)
_TABLES = {
    'header': 'CREATE TABLE header (manifest text, length integer, tap_length integer)',
    'items': 'CREATE TABLE items (id integer PRIMARY KEY, '
    + ', '.join(f'{name} {kind}' for name, kind in COLUMNS.items())
    + ')',
    'items_of_track': 'CREATE INDEX items_of_track ON items (track, stamp)',
}


class StoreHeader(NamedTuple):
    """What all vectors of a memory have in common.

    ``manifest`` is the digest of the bundle that made them, ``length`` how many values they have,
    ``tap_length`` how many those that examples are compared by.
    """

    manifest: str
    length: int
    tap_length: int

    @property
    def is_sound(self) -> bool:
        """Whether a memory can have it."""
        lengths = (self.length, self.tap_length)
        return len(self.manifest) <= LONGEST_MANIFEST and all(
            1 <= length <= LONGEST_VECTOR for length in lengths
        )


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """Turn errors of SQLite and of the file system into one sentence.

    :raises FlightMemoryError: for every error of SQLite or of the file system
    """
    try:
        yield
    # What SQLite says may quote bytes of the file that are no text.
    except (sqlite3.Error, OSError, UnicodeDecodeError) as err:
        raise FlightMemoryError(_sentence(path, err)) from err


def _sentence(path: Path, err: Exception) -> str:
    text = str(err).lower()
    if 'full' in text or 'no space' in text:
        return (
            f'{path}: the disk is full, so nothing was written; free some space (to forget all, '
            f'delete {path.parent})'
        )
    if 'i/o error' in text:
        return (
            f'{path} cannot be read or written ({brief(err)}): the disk is full or failing; free '
            'some space and try again'
        )
    if 'locked' in text or 'busy' in text:
        return f'{path}: another program is writing to it; try again when that has ended'
    if isinstance(err, OSError) or any(word in text for word in ('unable to open', 'readonly')):
        return f'{path} cannot be opened ({brief(err)}); check the path and its permissions'
    return f'{path} is damaged ({brief(err)}); {_REMEDY}'


def open_to_write(folder: Path) -> sqlite3.Connection:
    """Open the file of a folder for writing; both are made if they are missing.

    Deleted content is overwritten. A process that is killed loses the open transaction, a
    computer that loses power perhaps the last ones.

    :raises FlightMemoryError: if that is not possible, or it is no flight memory of ours
    """
    path = folder / FILE_NAME
    with explained(path):
        folder.mkdir(parents=True, exist_ok=True)
        if path.exists():
            _require_fitting_file(path)
        connection = sqlite3.connect(path, timeout=_PATIENCE, isolation_level=None)
    try:
        with explained(path):
            connection.execute('PRAGMA secure_delete = ON')
            _harden(connection)
            if not _is_new(connection):
                _require_ours(connection, path)
            connection.execute(f'PRAGMA page_size = {_PAGE}')  # of a new file
            connection.execute('PRAGMA journal_mode = WAL')
            connection.execute('PRAGMA synchronous = NORMAL')
    except BaseException:
        connection.close()
        raise
    return connection


def open_to_read(folder: Path) -> sqlite3.Connection:
    """Open the file of a folder for reading, also while another program writes.

    :raises FlightMemoryError: if that is not possible, or it is no flight memory of ours
    """
    path = folder / FILE_NAME
    with explained(path):
        if not path.exists():
            raise FlightMemoryError(
                f'{folder} holds no flight memory ({FILE_NAME} is missing); build one from the '
                'recording'
            )
        _require_fitting_file(path)
        # Where nothing can be written beside it, nobody writes into it either.
        pending = path.with_name(f'{FILE_NAME}-wal')
        has_room = shutil.disk_usage(folder).free >= _SHARED_MEMORY
        is_fixed = not (os.access(folder, os.W_OK) and has_room)
        is_fixed &= not (pending.exists() and pending.stat().st_size)
        address = f'{path.absolute().as_uri()}?mode=ro{"&immutable=1" * is_fixed}'
        connection = sqlite3.connect(address, uri=True, timeout=_PATIENCE, isolation_level=None)
    try:
        with explained(path):
            _harden(connection)
            _require_ours(connection, path)
    except BaseException:
        connection.close()
        raise
    return connection


def remove_older(folder: Path) -> None:
    """Remove the memory of a folder if another version of mmedge_ros wrote it.

    :raises FlightMemoryError: if it cannot be read or removed
    """
    path = folder / FILE_NAME
    with explained(path):
        if not path.exists():
            return
        _require_fitting_file(path)
        with closing(sqlite3.connect(f'{path.absolute().as_uri()}?mode=ro', uri=True)) as opened:
            is_ours = _pragma(opened, 'application_id') == _APPLICATION
            is_older = is_ours and _pragma(opened, 'user_version') != SCHEMA
        if is_older:
            for name in (FILE_NAME, f'{FILE_NAME}-wal', f'{FILE_NAME}-shm'):
                (folder / name).unlink(missing_ok=True)


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """Do all that is done inside, or nothing of it."""
    connection.execute('BEGIN IMMEDIATE')
    try:
        yield
        connection.execute('COMMIT')
    except BaseException:
        # A full disk has rolled it back already.
        if connection.in_transaction:
            connection.execute('ROLLBACK')
        raise


def create_tables(connection: sqlite3.Connection, header: StoreHeader) -> None:
    """Make the tables in a file that has none; call it inside a transaction."""
    for table in _TABLES.values():
        connection.execute(table)
    connection.execute('INSERT INTO header VALUES (?, ?, ?)', header)
    connection.execute(f'PRAGMA application_id = {_APPLICATION}')
    connection.execute(f'PRAGMA user_version = {SCHEMA}')


def read_header(connection: sqlite3.Connection, path: Path) -> StoreHeader | None:
    """Return the header; None of a file without tables, which a killed program may leave.

    :raises FlightMemoryError: if there is none, or it is not sound
    """
    if _is_new(connection):
        return None
    rows = connection.execute(
        "SELECT manifest, length, tap_length FROM header WHERE typeof(manifest) = 'text' "
        f'AND length(manifest) <= {LONGEST_MANIFEST} LIMIT 2'
    ).fetchall()
    if len(rows) != 1 or not all(isinstance(length, int) for length in rows[0][1:]):
        raise FlightMemoryError(f'{path} is damaged (its header is missing); {_REMEDY}')
    header = StoreHeader(*rows[0])
    if not header.is_sound:
        raise FlightMemoryError(
            f'{path} is damaged (vectors of {header.length} and {header.tap_length} values); '
            f'{_REMEDY}'
        )
    return header


def _harden(connection: sqlite3.Connection) -> None:
    connection.text_factory = lambda raw: raw.decode(errors='replace')
    connection.execute('PRAGMA trusted_schema = OFF')
    connection.execute('PRAGMA cell_size_check = ON')


def _is_new(connection: sqlite3.Connection) -> bool:
    (objects,) = connection.execute('SELECT count(*) FROM sqlite_master').fetchone()
    return not objects and _pragma(connection, 'application_id') in (0, _APPLICATION)


def _pragma(connection: sqlite3.Connection, name: str) -> int:
    return int(connection.execute(f'PRAGMA {name}').fetchone()[0])


def _require_fitting_file(path: Path) -> None:
    if not path.is_file():
        raise FlightMemoryError(f'{path} is no file; {_REMEDY}')
    size = path.stat().st_size
    if size > LARGEST_FILE_BYTES:
        raise FlightMemoryError(
            f'{path} has {size} bytes, more than the {LARGEST_FILE_BYTES} of the largest flight '
            f'memory; {_REMEDY}'
        )


def _require_ours(connection: sqlite3.Connection, path: Path) -> None:
    if _is_new(connection):
        return
    if _pragma(connection, 'application_id') != _APPLICATION:
        raise FlightMemoryError(f'{path} is no flight memory; name a folder FLIGHT.memory')
    version = _pragma(connection, 'user_version')
    if version != SCHEMA:
        raise FlightMemoryError(
            f'{path} was written by another version of mmedge_ros (format {version}; this one '
            f'reads {SCHEMA}); {_REMEDY}'
        )
    found = connection.execute(
        'SELECT name, CASE WHEN length(sql) < 5000 THEN sql END FROM sqlite_master LIMIT 10'
    ).fetchall()
    if dict(found) != _TABLES or len(found) != len(_TABLES):
        raise FlightMemoryError(f'{path} is damaged (its tables are others); {_REMEDY}')
