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


def test_a_vector_of_96_values_takes_no_more_than_54_bytes() -> None:
    assert packed(unit_vectors(3, 96)).shape == (3, row_bytes(96))
    assert row_bytes(96) <= 54


@pytest.mark.parametrize('length', [1, 2, 7, 96])
def test_vectors_come_back_within_half_a_step(length: int) -> None:
    vectors = unit_vectors(200, length)
    back = unpacked(packed(vectors), length)
    steps = np.abs(vectors).max(axis=1, keepdims=True) / 7.0
    assert back.shape == vectors.shape
    assert back.dtype == np.float32
    assert (np.abs(back - vectors) <= 0.5001 * steps).all()


def test_what_is_nearest_stays_so() -> None:
    vectors = unit_vectors(500, 96)
    back = unpacked(packed(vectors), 96)
    assert ((back @ vectors.T).argmax(axis=1) == np.arange(500)).all()


def test_a_vector_without_length_and_no_vectors_at_all_come_back() -> None:
    np.testing.assert_array_equal(unpacked(packed(np.zeros((2, 5), np.float32)), 5), 0.0)
    assert unpacked(packed(np.zeros((0, 5), np.float32)), 5).shape == (0, 5)


def test_a_second_packing_changes_nothing() -> None:
    once = unpacked(packed(unit_vectors(50, 32)), 32)
    np.testing.assert_allclose(unpacked(packed(once), 32), once, rtol=1e-6)


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
