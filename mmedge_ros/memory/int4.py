"""Vectors in four bits a value, with one scale each.

A row is the scale (float32, little-endian) and two values a byte, the first one in the low half;
96 values take 52 bytes. Codes are -7 to 7, kept as 1 to 15.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mmedge_ros.memory import FlightMemoryError
from mmedge_ros.memory.moment import Vectors

_MOST, _MIDDLE = 7.0, 8
_SCALE = np.dtype('<f4')
# Values beyond it are none of an embedding, and could not be summed.
_LARGEST_SCALE = 1e6


def row_bytes(length: int) -> int:
    """Return how many bytes a vector of ``length`` values takes."""
    return _SCALE.itemsize + (length + 1) // 2


def packed(vectors: Vectors) -> NDArray[np.uint8]:
    """Return vectors (N, D) in four bits a value, (N, `row_bytes`).

    :raises FlightMemoryError: for another shape, or what is no number
    """
    if vectors.ndim != 2 or not vectors.shape[1]:
        raise FlightMemoryError(f'vectors of shape {vectors.shape}; they must be (number, length)')
    if not np.isfinite(vectors).all():
        raise FlightMemoryError('a vector holds what is no number; leave that view out')
    largest = np.abs(vectors).max(axis=1, initial=0.0)
    scales = (largest / _MOST).astype(_SCALE)
    if (scales > _LARGEST_SCALE).any():
        raise FlightMemoryError(
            f'a vector holds {largest.max():g}, and values of an embedding are small; make '
            'vectors of length 1'
        )
    # A scale below what float32 holds is none.
    safe = np.where(scales > 0.0, scales, 1.0)[:, None]
    codes = np.rint(np.where(scales[:, None] > 0.0, vectors / safe, 0.0))
    halves = np.clip(codes, -_MOST, _MOST).astype(np.int8) + _MIDDLE
    if halves.shape[1] % 2:
        halves = np.pad(halves, ((0, 0), (0, 1)), constant_values=_MIDDLE)
    pairs = halves.astype(np.uint8)
    values = pairs[:, 0::2] | (pairs[:, 1::2] << 4)
    return np.concatenate([scales[:, None].view(np.uint8), values], axis=1)


def unpacked(rows: NDArray[np.uint8], length: int) -> Vectors:
    """Return vectors (N, ``length``) from rows (N, `row_bytes`).

    :raises FlightMemoryError: for rows of another size, or whose scale is none
    """
    if rows.ndim != 2 or rows.dtype != np.uint8 or rows.shape[1] != row_bytes(length):
        raise FlightMemoryError(
            f'rows of shape {rows.shape} and type {rows.dtype}; {length} values take '
            f'{row_bytes(length)} bytes'
        )
    scales = scales_of(rows)
    if not sound_scales(scales).all():
        raise FlightMemoryError(
            'the scale of a stored vector is not valid; build the memory again'
        )
    # A table look-up gives both values of a byte at once.
    pairs = _PAIRS[rows[:, _SCALE.itemsize :]]
    values = pairs.reshape(len(rows), 2 * pairs.shape[1])[:, :length]
    return np.asarray(values * scales[:, None], np.float32)


def scales_of(rows: NDArray[np.uint8]) -> NDArray[np.float32]:
    """Return the scales (N,) of rows (N, `row_bytes`), whatever they are."""
    begin = np.ascontiguousarray(rows[:, : _SCALE.itemsize])
    return begin.view(_SCALE)[:, 0].astype(np.float32)


def sound_scales(scales: NDArray[np.float32]) -> NDArray[np.bool_]:
    """Mark the scales (N,) that `packed` may have made."""
    return (scales >= 0.0) & (scales <= _LARGEST_SCALE)


def _pairs() -> NDArray[np.float32]:
    both = np.arange(256)
    return np.stack([both & 15, both >> 4], axis=1).astype(np.float32) - _MIDDLE


_PAIRS = _pairs()
