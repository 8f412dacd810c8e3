"""Views for a flight memory, made by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from mmedge_ros.core.data_types import NS_PER_S, Box
from mmedge_ros.memory.moment import MemoryItem, ViewKind
from mmedge_ros.memory.store import MemoryReader, MemoryWriter
from mmedge_ros.memory.store_file import StoreHeader

LENGTH = 8
HEADER = StoreHeader('0123456789abcdef', LENGTH, LENGTH)
JPEG = b'\xff\xd8 a small picture \xff\xd9'


def direction(*values: float) -> np.ndarray:
    """A vector of length 1 with these first values."""
    vector = np.zeros(LENGTH, np.float32)
    vector[: len(values)] = values
    length = float(np.linalg.norm(vector))
    return vector / np.float32(length or 1.0)


def view(track_id: int = 1, seconds: float = 1.0, **changes: Any) -> MemoryItem:
    """A view of a person at a time in the flight, s."""
    made: dict[str, Any] = {
        'kind': ViewKind.TRACK,
        'track_id': track_id,
        'label': 'person',
        'stamp_ns': int(seconds * NS_PER_S),
        'box': Box(100.0, 100.0, 140.0, 200.0),
        'image_size': (640, 480),
        'score': 0.8,
        'manifest': HEADER.manifest,
        'vector': direction(1.0, 0.5),
        'thumbnail': JPEG,
    }
    made |= changes
    # Examples find what words would, unless it is said otherwise.
    return MemoryItem(**{'tap': made['vector'], **made})


def key_frame(seconds: float = 1.0, **changes: Any) -> MemoryItem:
    made = {'kind': ViewKind.KEY_FRAME, 'label': '', 'box': Box(0.0, 0.0, 640.0, 480.0)}
    return view(0, seconds, **{**made, **changes})


def memory_of(folder: Path, *items: MemoryItem, header: StoreHeader = HEADER) -> MemoryReader:
    """A memory with these views, opened."""
    with MemoryWriter(folder, header) as writer:
        writer.add(items)
    return MemoryReader(folder)
