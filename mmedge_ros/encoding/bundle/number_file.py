"""Small files of numbers: arrays by name, and the names of what they stand for."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

LARGEST_NUMBERS = 1 << 20
_LONGEST_AXIS = 1024


def number_bytes(
    numbers: Mapping[str, NDArray[np.floating]], names: Mapping[str, tuple[str, ...]]
) -> bytes:
    """Return a file of arrays, as float32, with the texts that `read_numbers` compares."""
    buffer = io.BytesIO()
    arrays: dict[str, Any] = {name: np.array(of) for name, of in names.items()}
    arrays |= {name: np.asarray(array, np.float32) for name, array in numbers.items()}
    np.savez(buffer, **arrays)
    return buffer.getvalue()


def unpacked(content: bytes, most_bytes: int) -> dict[str, NDArray[Any]]:
    """Return the arrays of a file by their names; nothing in it is run.

    :param most_bytes: what they may take unpacked
    :raises ValueError: in words, whatever the bytes are
    """
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            # A few kilobytes may claim to unpack to anything.
            if sum(entry.file_size for entry in archive.infolist()) > most_bytes:
                raise ValueError(f'it unpacks to more than {most_bytes >> 20} MiB')
        with np.load(io.BytesIO(content), allow_pickle=False) as file:
            arrays: dict[str, Any] = dict(file)
    except Exception as err:  # zipfile, zlib and numpy raise what fits the damage
        raise ValueError(' '.join(str(err).split())[:200]) from err
    for name, array in arrays.items():
        if not isinstance(array, np.ndarray):
            raise ValueError(f'its entry {name[:80]!r} is no array')
    return arrays


def read_numbers(
    content: bytes,
    shapes: Mapping[str, tuple[int | str, ...]],
    names: Mapping[str, tuple[str, ...]],
) -> dict[str, NDArray[np.float64]]:
    """Return the arrays of a file; nothing in it is run or believed.

    :param shapes: of each array; a letter is any length up to 1024, the same wherever it stands
    :param names: texts that must be there as they are, by entry: for what inputs it was made
    :raises ValueError: in words, whatever the bytes are
    """
    arrays = unpacked(content, LARGEST_NUMBERS)
    for name in (*shapes, *names):
        if name not in arrays:
            raise ValueError(f'it has no {name}')
    for entry, wanted in names.items():
        known = tuple(str(name) for name in arrays[entry].ravel().tolist())
        if known != wanted:
            other = next((name for name in known if name not in wanted), 'another order')
            raise ValueError(f'it was made for other {entry} ({other[:80]!r})')
    lengths: dict[str, int] = {}
    numbers = {}
    for name, shape in shapes.items():
        array = arrays[name]
        for length, side in zip(array.shape, shape, strict=False):
            if isinstance(side, str):
                lengths.setdefault(side, min(length, _LONGEST_AXIS))
        wanted_shape = tuple(lengths.get(s, 0) if isinstance(s, str) else s for s in shape)
        if array.dtype != np.float32 or array.shape != wanted_shape:
            raise ValueError(
                f'it has {name} of {array.dtype} {list(array.shape)}, not float32 '
                f'{list(wanted_shape)}'
            )
        numbers[name] = array.astype(np.float64)
        if not np.isfinite(numbers[name]).all():
            raise ValueError(f'it has numbers in {name} that are not finite')
    return numbers
