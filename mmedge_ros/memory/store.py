"""A flight memory on disk, in a folder beside the recording."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mmedge_ros.core.data_types import Box, FloatArray
from mmedge_ros.core.untrusted_files import shown
from mmedge_ros.memory import FlightMemoryError
from mmedge_ros.memory.int4 import packed, row_bytes, scales_of, sound_scales, unpacked
from mmedge_ros.memory.moment import (
    DronePose,
    FlightPhase,
    MemoryItem,
    Spot,
    StoredItem,
    Vectors,
    ViewKind,
)
from mmedge_ros.memory.store_file import (
    COLUMNS,
    FACTS,
    FILE_NAME,
    KNOWN_REALS,
    LARGEST_EXIT,
    LARGEST_NUMBER,
    LARGEST_REAL,
    LARGEST_THUMBNAIL,
    LAST_STAMP_NS,
    LONGEST_MANIFEST,
    LONGEST_TEXT,
    LONGEST_VECTOR,
    MOST_ITEMS,
    REALS,
    SOUND,
    StoreHeader,
    create_tables,
    explained,
    open_to_read,
    open_to_write,
    read_header,
    transaction,
)

Integers = NDArray[np.int64]
_NUMBERS = ('id', 'run', 'kind', 'track', 'stamp', 'exit')
_TEXTS = ('label', 'level')
_TINY = 1e-12


@dataclass(frozen=True, slots=True, eq=False)
class ItemTable:
    """The sound items of a store, in the order of their numbers.

    ``integers`` (N,) and ``texts`` (N,) by the names of their columns; ``facts`` (N,) of the type
    `FACTS`. ``vectors`` (N, D) are those of the encoder, 0 where the item has none; `taps` returns
    the others. ``damaged`` is how many items were left out because they hold what no item can
    hold.
    """

    integers: dict[str, Integers]
    texts: dict[str, NDArray[np.str_]]
    facts: NDArray[np.void]
    vectors: Vectors
    manifest: str
    damaged: int
    packed_taps: NDArray[np.uint8]
    tap_length: int

    def __len__(self) -> int:
        return len(self.facts)

    def reals(self, *names: str) -> FloatArray:
        """Return facts beside each other, (N, number of names)."""
        return np.stack([self.facts[name] for name in names], axis=1).astype(float)

    @property
    def positions(self) -> FloatArray:
        return self.reals('x', 'y', 'z')

    @property
    def velocities(self) -> FloatArray:
        return self.reals('velocity_x', 'velocity_y', 'velocity_z')

    @property
    def drones(self) -> FloatArray:
        return self.reals('drone_x', 'drone_y', 'drone_z', 'drone_yaw')

    def taps(self, rows: Integers | NDArray[np.bool_]) -> Vectors:
        """Return what examples are compared by, (M, T) of rows (M,); 0 where there is nothing."""
        return unpacked(self.packed_taps[rows], self.tap_length)

    def item(self, row: int) -> StoredItem:
        """Return an item, without its thumbnail and tap, which are read where wanted."""
        whole = {name: int(values[row]) for name, values in self.integers.items()}
        facts = self.facts[row]
        reals = [float(facts[name]) for name in REALS]
        item = MemoryItem(
            kind=ViewKind(whole['kind']),
            track_id=whole['track'],
            label=str(self.texts['label'][row]),
            stamp_ns=whole['stamp'],
            box=Box(*reals[:4]),
            image_size=(int(facts['width']), int(facts['height'])),
            score=reals[4],
            position=Spot(*reals[5:8]),
            velocity=Spot(*reals[8:11]),
            drone=DronePose(*reals[11:15]),
            brightness=reals[15],
            size=reals[16],
            sharpness=reals[17],
            visibility=reals[18],
            phase=FlightPhase(int(facts['phase'])),
            bag_offset_ns=int(facts['bag_offset']),
            level=str(self.texts['level'][row]),
            exit=whole['exit'],
            manifest=self.manifest,
            vector=self.vectors[row],
        )
        return StoredItem(whole['id'], whole['run'], item)


def read_table(connection: sqlite3.Connection, header: StoreHeader) -> ItemTable:
    """Read all items, but at most `MOST_ITEMS`.

    :raises sqlite3.Error: if the file cannot be read
    """
    sizes = (row_bytes(header.length), row_bytes(header.tap_length))
    rows = connection.execute(
        f'SELECT {", ".join((*_NUMBERS, *_TEXTS))}, facts, vector, tap FROM items '
        f'WHERE {SOUND} ORDER BY id LIMIT ?',
        (*sizes, MOST_ITEMS),
    ).fetchall()
    (stored,) = connection.execute('SELECT count(*) FROM items NOT INDEXED').fetchone()
    columns = list(zip(*rows, strict=True)) or [()] * (len(_NUMBERS) + len(_TEXTS) + 3)
    facts = np.frombuffer(b''.join(columns[-3]), FACTS)
    packed, taps = (
        np.frombuffer(b''.join(column), np.uint8).reshape(len(rows), size)
        for column, size in zip(columns[-2:], sizes, strict=True)
    )
    sound = _sound(facts) & sound_scales(scales_of(packed)) & sound_scales(scales_of(taps))
    return ItemTable(
        integers=_columns(_NUMBERS, columns, np.int64, sound),
        texts=_columns(_TEXTS, columns[len(_NUMBERS) :], np.str_, sound),
        facts=facts[sound],
        vectors=unpacked(packed[sound], header.length),
        manifest=header.manifest,
        damaged=stored - int(np.count_nonzero(sound)),
        packed_taps=taps[sound],
        tap_length=header.tap_length,
    )


def _columns(
    names: Sequence[str], columns: Sequence[tuple[Any, ...]], kind: Any, sound: NDArray[np.bool_]
) -> dict[str, Any]:
    return {
        name: np.array(values, kind)[sound]
        for name, values in zip(names, columns[: len(names)], strict=True)
    }


def _sound(facts: NDArray[np.void]) -> NDArray[np.bool_]:
    """Mark the facts (N,) that a view can have."""
    sound: NDArray[np.bool_] = (facts['phase'] <= max(FlightPhase)) & (facts['bag_offset'] >= -1)
    for name in REALS:
        sound &= ~(np.abs(facts[name]) > LARGEST_REAL)
    for name in KNOWN_REALS:
        sound &= np.isfinite(facts[name])
    return sound


def unit(vectors: Vectors) -> Vectors:
    """Return vectors (N, D) with length 1; those without a length stay without."""
    lengths = np.sqrt(np.einsum('ij,ij->i', vectors, vectors))[:, None]
    return np.asarray(vectors / np.maximum(lengths, _TINY), np.float32)


SUFFIX = '.memory'
# A page that was made of a memory lies in its folder.
PAGE = 'page.html'
_JPEG = b'\xff\xd8'
_LAST_INTEGER = 2**63 - 1
_UPDATE_HEADER = 'UPDATE header SET manifest = ?, length = ?, tap_length = ?'
_INSERT = f'INSERT INTO items ({", ".join(COLUMNS)}) VALUES ({", ".join("?" * len(COLUMNS))})'


class Displaced(NamedTuple):
    """A view of a track that a better one replaces."""

    track_id: int
    stamp_ns: int


def memory_folder(recording: str | Path) -> Path:
    """Return where the memory of a recording lies: ``FLIGHT.memory`` beside ``FLIGHT``."""
    path = Path(recording).absolute()
    return path.with_name(f'{path.name}{SUFFIX}')


def memories_of(places: Iterable[Path]) -> list[Path]:
    """Return the folders of memories: places that are one, or those beside recordings."""
    return [p if p.suffix == SUFFIX else memory_folder(p) for p in places]


class MemoryWriter:
    """Writes a flight memory; a batch is kept as a whole or not at all.

    :param header: what the vectors have in common, which an empty memory takes over; None: the
        memory must be there
    :raises FlightMemoryError: if it cannot be opened, or has vectors of another bundle
    """

    def __init__(self, folder: Path, header: StoreHeader | None = None) -> None:
        self._path = folder / FILE_NAME
        if header is None and not self._path.exists():
            raise FlightMemoryError(f'{folder} holds no flight memory; name a folder that does')
        if header is not None:
            _require_sound_header(header)
        self._connection = open_to_write(folder)
        try:
            with explained(self._path):
                self.header = self._entered(header)
                (runs,) = self._connection.execute('SELECT max(run) FROM items').fetchone()
                (self._items,) = self._connection.execute('SELECT count(*) FROM items').fetchone()
        except BaseException:
            self.close()
            raise
        self._run = runs + 1 if isinstance(runs, int) and runs < MOST_ITEMS else 0

    def __enter__(self) -> MemoryWriter:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._connection.close()

    def add(self, items: Sequence[MemoryItem], displaced: Sequence[Displaced] = ()) -> list[int]:
        """Keep a batch in one transaction; return the numbers of the items.

        :param displaced: views that this program kept before, and that go
        :raises FlightMemoryError: if an item is not sound, or the disk is full; nothing of the
            batch is kept then
        """
        if self._items + len(items) > MOST_ITEMS:
            raise FlightMemoryError(
                f'{self._path} holds {self._items} views of at most {MOST_ITEMS}; forget old ones'
            )
        for item in items:
            _require_sound(item, self.header)
        rows = [
            _row(item, self._run, vector, tap)
            for item, vector, tap in zip(
                items,
                _rows([item.vector for item in items]),
                _rows([item.tap for item in items]),
                strict=True,
            )
        ]
        with explained(self._path), transaction(self._connection):
            gone = sum(
                self._connection.execute(
                    'DELETE FROM items WHERE track = ? AND stamp = ? AND run = ? AND kind = ?',
                    (*one, self._run, ViewKind.TRACK),
                ).rowcount
                for one in displaced
            )
            ids = [int(self._connection.execute(_INSERT, row).lastrowid or 0) for row in rows]
        self._items += len(rows) - gone
        return ids

    def forget_all(self) -> int:
        """Forget every item; return how many that were.

        :raises FlightMemoryError: see `forget_before`
        """
        return self._forget('1', ())

    def forget_before(self, stamp_ns: int) -> int:
        """Forget what was seen before an instant; return how many items that were.

        Their bytes are gone from the files of the memory afterwards, and so is a page in its
        folder. What the file system or a flash chip keeps of freed blocks is beyond our reach.

        :raises FlightMemoryError: if it cannot be written, or another program is reading
        """
        return self._forget('stamp < ?', (stamp_ns,))

    def forget_track(self, track_id: int) -> int:
        """Forget all views of a track; return how many items that were.

        :raises FlightMemoryError: see `forget_before`
        """
        return self._forget('track = ? AND kind = ?', (track_id, int(ViewKind.TRACK)))

    def compact(self) -> None:
        """Give back the room of what was displaced and freed; worth it at the end of a flight.

        :raises FlightMemoryError: if the disk is full, or another program is reading or writing
        """
        with explained(self._path):
            self._connection.execute('VACUUM')
            # The log still holds the pages as they were; it is cut to nothing.
            (is_read, *_) = self._connection.execute('PRAGMA wal_checkpoint(TRUNCATE)').fetchone()
        if is_read:
            raise FlightMemoryError(
                f'{self._path}: another program is reading the memory and keeps bytes that were '
                'deleted in its log; end that and try again'
            )

    def _forget(self, condition: str, values: tuple[int, ...]) -> int:
        with explained(self._path):
            with transaction(self._connection):
                gone = self._connection.execute(f'DELETE FROM items WHERE {condition}', values)
            self._items -= gone.rowcount
            # It shows what was forgotten.
            self._path.with_name(PAGE).unlink(missing_ok=True)
        self.compact()
        return gone.rowcount

    def _entered(self, header: StoreHeader | None) -> StoreHeader:
        """Return the header of the file, which gets the given one if it is new."""
        found = read_header(self._connection, self._path)
        if found is None:
            if header is None:
                raise FlightMemoryError(f'{self._path} is empty; build the memory again')
            with transaction(self._connection):
                create_tables(self._connection, header)
            return header
        if header is not None and found != header:
            (items,) = self._connection.execute('SELECT count(*) FROM items').fetchone()
            if not items:
                with transaction(self._connection):
                    self._connection.execute(_UPDATE_HEADER, header)
                return header
            raise FlightMemoryError(
                f'{self._path} has vectors of {found.length} values by the bundle '
                f'{found.manifest[:12]}, and these are of {header.length} by '
                f'{header.manifest[:12]}; forget what it holds first (mmedge memory forget --all)'
            )
        return found


class MemoryReader:
    """Reads a flight memory, also while another program writes it.

    ``name`` is that of the flight.

    :raises FlightMemoryError: if there is none, it is of another version, or it is damaged
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / FILE_NAME
        self.name = folder.absolute().name.removesuffix(SUFFIX)
        self._connection = open_to_read(folder)
        self._table: ItemTable | None = None
        self._version = -1
        try:
            with explained(self._path):
                header = read_header(self._connection, self._path)
        except BaseException:
            self.close()
            raise
        if header is None:
            self.close()
            raise FlightMemoryError(f'{self._path} is empty; build the memory again')
        self.header = header

    def __enter__(self) -> MemoryReader:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._connection.close()

    def table(self) -> ItemTable:
        """Return all items; they are read again only when another program has written.

        :raises FlightMemoryError: if the file cannot be read
        """
        with explained(self._path):
            (version,) = self._connection.execute('PRAGMA data_version').fetchone()
            if self._table is None or version != self._version:
                self._table, self._version = read_table(self._connection, self.header), version
        return self._table

    def thumbnail(self, number: int) -> bytes:
        """Return the JPEG of an item; b'' where there is none, or it is none of ours.

        :raises FlightMemoryError: if the file cannot be read
        """
        with explained(self._path):
            found = self._connection.execute(
                'SELECT thumbnail FROM items WHERE id = ? '
                "AND typeof(thumbnail) = 'blob' AND length(thumbnail) <= ?",
                (number, LARGEST_THUMBNAIL),
            ).fetchone()
        content = bytes(found[0]) if found else b''
        return content if content.startswith(_JPEG) else b''


def _rows(vectors: Sequence[Vectors]) -> list[bytes]:
    """Return vectors as they are stored."""
    return [row.tobytes() for row in packed(np.stack(vectors))] if vectors else []


def _row(item: MemoryItem, run: int, vector: bytes, tap: bytes) -> tuple[object, ...]:
    """Return an item in the order of `COLUMNS`."""
    reals = (
        *(*item.box, item.score, *item.position, *item.velocity, *item.drone),
        *(item.brightness, item.size, item.sharpness, item.visibility),
    )
    facts = np.array([(item.bag_offset_ns, *item.image_size, int(item.phase), *reals)], FACTS)
    return (
        *(run, int(item.kind), item.track_id, item.stamp_ns, item.exit, item.label, item.level),
        *(facts.tobytes(), vector, tap, item.thumbnail),
    )


def _require_sound_header(header: StoreHeader) -> None:
    if not header.is_sound:
        raise FlightMemoryError(
            f'vectors of {header.length} and {header.tap_length} values by the bundle '
            f'{shown(header.manifest)}; at most {LONGEST_VECTOR} values and {LONGEST_MANIFEST} '
            'characters are kept'
        )


def unsound(item: MemoryItem) -> list[str]:
    """Name the fields of a view that could not be read again once it is written."""
    known = (*item.box, item.score)
    unknown = (
        *(*item.position, *item.velocity, *item.drone),
        *(item.brightness, item.size, item.sharpness, item.visibility),
    )
    checks = (
        ('track', item.track_id, 0 <= item.track_id <= LARGEST_NUMBER),
        ('stamp', item.stamp_ns, 0 <= item.stamp_ns <= LAST_STAMP_NS),
        ('bag offset', item.bag_offset_ns, -1 <= item.bag_offset_ns <= _LAST_INTEGER),
        ('exit', item.exit, 0 <= item.exit <= LARGEST_EXIT),
        ('picture size', item.image_size, all(0 <= n < 1 << 16 for n in item.image_size)),
        ('box or score', known, all(abs(value) <= LARGEST_REAL for value in known)),
        ('place or look', unknown, not any(abs(value) > LARGEST_REAL for value in unknown)),
        ('label', item.label, _is_text(item.label)),
        ('level', item.level, _is_text(item.level)),
        ('bytes of thumbnail', len(item.thumbnail), len(item.thumbnail) <= LARGEST_THUMBNAIL),
    )
    return [f'{name} {shown(value)}' for name, value, is_right in checks if not is_right]


def _require_sound(item: MemoryItem, header: StoreHeader) -> None:
    """Make sure that an item can be read again once it is written.

    :raises FlightMemoryError: if not
    """
    wrong = unsound(item)
    if item.manifest != header.manifest:
        wrong.append(f'bundle {shown(item.manifest)}')
    shapes = (item.vector.shape, item.tap.shape)
    if shapes != ((header.length,), (header.tap_length,)):
        wrong.append(f'shapes of vector and tap {shapes}')
    if wrong:
        raise FlightMemoryError(f'a view with {"; ".join(wrong)} is not kept; leave it out')


def _is_text(text: str) -> bool:
    return len(text) <= LONGEST_TEXT and text.isprintable()
