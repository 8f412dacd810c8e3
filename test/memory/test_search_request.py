"""A question is checked before anything is rated."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

import cv2
import numpy as np
import pytest
from hand_made_moments import LENGTH, direction, key_frame, memory_of, view
from hypothesis import given
from hypothesis import strategies as st

from mmedge_ros.data_types import FloatArray
from mmedge_ros.encoding.detector import Image
from mmedge_ros.memory import FlightMemoryError
from mmedge_ros.memory.encoders import LARGEST_EXAMPLE, example_picture
from mmedge_ros.memory.moment import Spot, Vectors
from mmedge_ros.memory.query import ParsedQuery
from mmedge_ros.memory.search import SearchRequest, SearchResult, find_moments


class FirstValue:
    """Rates views by the first value of their vector."""

    knows_all_words = False

    def scores(self, query: ParsedQuery, vectors: Vectors) -> FloatArray:
        return vectors[:, 0].astype(float)


def looks_up(_: Image) -> Vectors:
    """Whatever it shows lies in the second direction."""
    return direction(0.0, 1.0)[None]


def answer(folder: Path, question: SearchRequest) -> SearchResult:
    with memory_of(
        folder,
        view(1, 1.0, vector=direction(1.0), position=Spot(0.0, 0.0, 0.0)),
        view(2, 20.0, vector=direction(0.0, 1.0), position=Spot(50.0, 0.0, 0.0)),
        key_frame(5.0, vector=np.zeros(LENGTH, np.float32)),
    ) as memory:
        return find_moments([memory], question, lambda _: FirstValue(), looks_up)


def tracks(found: SearchResult) -> list[int]:
    return [moment.shown.item.track_id for moment in found.moments]


def png(width: int, height: int) -> bytes:
    """The first bytes of a picture that says it is so large."""

    def chunk(name: bytes, content: bytes) -> bytes:
        code = zlib.crc32(name + content)
        return struct.pack('>I', len(content)) + name + content + struct.pack('>I', code)

    begin = chunk(b'IHDR', struct.pack('>IIBBBBB', width, height, 8, 2, 0, 0, 0))
    return b'\x89PNG\r\n\x1a\n' + begin + chunk(b'IDAT', zlib.compress(b'')) + chunk(b'IEND', b'')


def test_words_examples_places_and_times_are_asked_for_together_or_alone(tmp_path: Path) -> None:
    _, content = cv2.imencode('.png', np.full((20, 10, 3), 80, np.uint8))
    example = content.tobytes()
    assert tracks(answer(tmp_path / 'a.memory', SearchRequest('person')))[0] == 1
    assert tracks(answer(tmp_path / 'b.memory', SearchRequest(example=example)))[0] == 2
    assert tracks(answer(tmp_path / 'c.memory', SearchRequest(like=2)))[0] == 2
    assert tracks(answer(tmp_path / 'd.memory', SearchRequest(near=(48.0, 1.0, 5.0)))) == [2]
    only_late = SearchRequest(between_ns=(10 * 10**9, 30 * 10**9))
    assert tracks(answer(tmp_path / 'e.memory', only_late)) == [2]
    both = SearchRequest('person', near=(0.0, 0.0, 5.0))
    assert tracks(answer(tmp_path / 'f.memory', both)) == [1]


@pytest.mark.parametrize(
    ('question', 'words'),
    [
        (SearchRequest(), 'nothing is asked for'),
        (SearchRequest('  '), 'nothing is asked for'),
        (SearchRequest('xyzzy'), 'none of these words is known: xyzzy'),
        (SearchRequest('person ' * 100), 'at most 500 characters'),
        (SearchRequest('person', limit=0), 'ask for 1 to 1000'),
        (SearchRequest('person', limit=2_000_000), 'ask for 1 to 1000'),
        (SearchRequest(near=(0.0, 0.0, -1.0)), 'a radius above 0'),
        (SearchRequest(near=(float('nan'), 0.0, 1.0)), 'a radius above 0'),
        (SearchRequest(between_ns=(5, 4)), 'ends before it begins'),
        (SearchRequest(like=99), 'has no view 99'),
        (SearchRequest(example=b'no picture'), 'no picture that can be read'),
        (SearchRequest(example=png(20_000, 20_000)), 'the product at most'),
        (SearchRequest(example=bytes(LARGEST_EXAMPLE + 1)), 'name a jpg or png'),
    ],
)
def test_what_cannot_be_answered_says_why(
    question: SearchRequest, words: str, tmp_path: Path
) -> None:
    with pytest.raises(FlightMemoryError, match=words):
        answer(tmp_path / 'flight.memory', question)


@given(st.binary(max_size=200))
def test_bytes_that_are_no_picture_are_refused(content: bytes) -> None:
    for begin in (b'', b'\xff\xd8\xff', b'\x89PNG\r\n\x1a\n'):
        with pytest.raises(FlightMemoryError, match='example'):
            example_picture(begin + content)
