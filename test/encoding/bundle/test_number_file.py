"""Files of numbers: whatever the bytes are, there are arrays or a ValueError."""

from __future__ import annotations

import contextlib
import io
import zipfile

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mmedge_ros.encoding.bundle.number_file import number_bytes, read_numbers, unpacked

SHAPES = {'weights': (2, 'H'), 'bias': ('H',)}
NAMES = {'fields': ('a', 'b')}
WHOLE = number_bytes({'weights': np.ones((2, 3)), 'bias': np.arange(3.0)}, NAMES)


def zipped(name: str, content: bytes) -> bytes:
    buffer = io.BytesIO(WHOLE)
    with zipfile.ZipFile(buffer, 'a', zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(name, content)
    return buffer.getvalue()


def spoiled(content: bytes) -> bytes:
    """Damage compressed data, of which only the decompression can say so."""
    place = content.index(b'more.npy') + len('more.npy')
    return (
        content[:place]
        + bytes(b ^ 0xFF for b in content[place : place + 8])
        + content[place + 8 :]
    )


def locked(content: bytes) -> bytes:
    """Say of the first entry that it is encrypted."""
    flags = content.index(b'PK\x01\x02') + 8
    return content[:flags] + b'\x01' + content[flags + 1 :]


def test_numbers_come_back_as_they_were() -> None:
    read = read_numbers(WHOLE, SHAPES, NAMES)
    assert read['weights'].tolist() == [[1.0] * 3] * 2
    assert read['bias'].tolist() == [0.0, 1.0, 2.0]


@pytest.mark.parametrize(
    ('content', 'words'),
    [
        (zipped('notes.txt', b'no array'), 'is no array'),
        (spoiled(zipped('more.npy', bytes(range(256)) * 9)), 'decompress'),
        (zipped('more.npy', bytes(2 << 20)), 'more than 1 MiB'),
        (locked(WHOLE), 'encrypted'),
    ],
)
def test_what_cannot_be_unpacked_is_a_value_error(content: bytes, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        read_numbers(content, SHAPES, NAMES)


@pytest.mark.parametrize(
    ('numbers', 'names', 'words'),
    [
        ({'bias': np.zeros(3)}, NAMES, 'no weights'),
        ({'weights': np.ones((2, 3)), 'bias': np.zeros(2)}, NAMES, r'bias of float32 \[2\]'),
        ({'weights': np.ones((2, 2000)), 'bias': np.zeros(2000)}, NAMES, r'\[2, 1024\]'),
        ({'weights': np.ones((2, 3)), 'bias': np.full(3, np.inf)}, NAMES, 'not finite'),
        ({'weights': np.ones((2, 3)), 'bias': np.zeros(3)}, {'fields': ('b', 'a')}, 'order'),
    ],
)
def test_other_numbers_than_are_wanted_are_refused(
    numbers: dict[str, np.ndarray], names: dict[str, tuple[str, ...]], words: str
) -> None:
    with pytest.raises(ValueError, match=words):
        read_numbers(number_bytes(numbers, names), SHAPES, NAMES)


@settings(max_examples=200, deadline=None)
@given(st.integers(0, len(WHOLE) - 1), st.binary(max_size=20))
def test_no_damage_raises_anything_else(place: int, damage: bytes) -> None:
    with contextlib.suppress(ValueError):
        unpacked(WHOLE[:place] + damage + WHOLE[place + len(damage) :], 1 << 20)
