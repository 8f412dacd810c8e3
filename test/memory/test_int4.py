"""Vectors in four bits come back nearly as they were, and nothing else is taken for one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from mmedge_ros.memory import FlightMemoryError
from mmedge_ros.memory.int4 import packed, row_bytes, unpacked


def unit_vectors(number: int, length: int) -> np.ndarray:
    vectors = np.random.default_rng(1).normal(size=(number, length))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors.astype(np.float32)


@pytest.mark.parametrize('length', [1, 2, 7, 96])
def test_vectors_come_back_within_half_a_step(length: int) -> None:
    vectors = unit_vectors(200, length)
    back = unpacked(packed(vectors), length)
    steps = np.abs(vectors).max(axis=1, keepdims=True) / 7.0
    assert back.shape == vectors.shape
    assert back.dtype == np.float32
    assert (np.abs(back - vectors) <= 0.5001 * steps).all()


@pytest.mark.parametrize(
    ('vectors', 'words'),
    [
        (np.zeros(96, np.float32), 'shape'),
        (np.zeros((2, 0), np.float32), 'shape'),
        (np.full((1, 4), np.nan, np.float32), 'no number'),
        (np.full((1, 4), np.inf, np.float32), 'no number'),
        (np.full((1, 4), 1e30, np.float32), 'length 1'),
    ],
)
def test_what_is_no_embedding_is_refused(vectors: np.ndarray, words: str) -> None:
    with pytest.raises(FlightMemoryError, match=words):
        packed(vectors)


def test_rows_of_another_size_and_scales_that_are_none_are_refused() -> None:
    rows = packed(unit_vectors(2, 8))
    with pytest.raises(FlightMemoryError, match='take 52 bytes'):
        unpacked(rows, 96)
    for scale in (np.nan, np.inf, -1.0, 1e20):
        spoiled = rows.copy()
        spoiled[1, :4] = np.array([scale], '<f4').view(np.uint8)
        with pytest.raises(FlightMemoryError, match='scale'):
            unpacked(spoiled, 8)


@given(arrays.arrays(np.uint8, st.tuples(st.integers(0, 4), st.just(row_bytes(9)))))
def test_any_bytes_are_numbers_or_refused(rows: np.ndarray) -> None:
    try:
        vectors = unpacked(rows, 9)
    except FlightMemoryError:
        return
    assert np.isfinite(vectors).all()
