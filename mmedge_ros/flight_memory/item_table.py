"""All items of a store as columns, for a search that looks at each of them."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mmedge_ros.data_types import Box, FloatArray
from mmedge_ros.flight_memory.int4 import row_bytes, scales_of, sound_scales, unpacked
from mmedge_ros.flight_memory.moment import (
    DronePose,
    FlightPhase,
    MemoryItem,
    Spot,
    StoredItem,
    Vectors,
    ViewKind,
)
from mmedge_ros.flight_memory.store_file import (
    FACTS,
    KNOWN_REALS,
    LARGEST_REAL,
    MOST_ITEMS,
    REALS,
    SOUND,
    StoreHeader,
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
    the others. ``damaged`` is
    how many items were left out because they hold what no item can hold.
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
        real = {name: float(facts[name]) for name in REALS}
        item = MemoryItem(
            kind=ViewKind(whole['kind']),
            track_id=whole['track'],
            label=str(self.texts['label'][row]),
            stamp_ns=whole['stamp'],
            box=Box(real['x0'], real['y0'], real['x1'], real['y1']),
            image_size=(int(facts['width']), int(facts['height'])),
            score=real['score'],
            position=Spot(real['x'], real['y'], real['z']),
            velocity=Spot(real['velocity_x'], real['velocity_y'], real['velocity_z']),
            drone=DronePose(real['drone_x'], real['drone_y'], real['drone_z'], real['drone_yaw']),
            phase=FlightPhase(int(facts['phase'])),
            brightness=real['brightness'],
            size=real['size'],
            sharpness=real['sharpness'],
            visibility=real['visibility'],
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
    """Say which facts (N,) a view can have."""
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
