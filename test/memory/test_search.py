"""Moments that fit best come first, and a question is checked before anything is rated."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from hand_made_moments import LENGTH, direction, key_frame, memory_of, view
from hypothesis import given
from hypothesis import strategies as st

from mmedge_ros.core.data_types import NS_PER_S, Box, FloatArray
from mmedge_ros.encoding.detector import Image
from mmedge_ros.memory import FlightMemoryError
from mmedge_ros.memory.encoders import LARGEST_EXAMPLE, example_picture
from mmedge_ros.memory.moment import (
    DronePose,
    MemoryItem,
    Motion,
    Spot,
    Vectors,
)
from mmedge_ros.memory.query import Filters, MemoryQuery, ParsedQuery, read_query
from mmedge_ros.memory.search import SearchRequest, SearchResult, find_moments, search, taps_of
from mmedge_ros.memory.store import MemoryReader

RED, BLUE = direction(1.0), direction(0.0, 1.0)
LABELS = ('person', 'car')


class ByFirstValues:
    """Red is the first value of a vector, blue the second."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, int]] = []

    def scores(self, query: ParsedQuery, vectors: Vectors) -> FloatArray:
        self.asked.append((query.text, len(vectors)))
        wanted = [value == 'red' for _, value in query.subject.attributes]
        return np.asarray(vectors[:, 0 if any(wanted) else 1], float)


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Any]:
    """Opens memories with views; they are closed at the end."""
    with ExitStack() as stack:

        def open_one(*items: MemoryItem, name: str = 'flight') -> MemoryReader:
            memory: MemoryReader = memory_of(tmp_path / f'{name}.memory', *items)
            return stack.enter_context(memory)

        yield open_one


def found(
    memories: MemoryReader | list[MemoryReader], text: str = '', limit: int = 10, **filters: Any
) -> SearchResult:
    parsed = read_query(text, LABELS)
    query = MemoryQuery(parsed, filters=Filters(**filters))
    listed = memories if isinstance(memories, list) else [memories]
    return search(listed, query, lambda _header: ByFirstValues(), limit)


def tracks(result: SearchResult) -> list[int]:
    return [moment.shown.item.track_id for moment in result.moments]


# ------------------------------------------------------------------------------- rating


def test_the_best_moments_come_first_with_their_scores(opened: Any) -> None:
    memory = opened(view(1, vector=BLUE), view(2, vector=RED), view(3, vector=direction(1.0, 1.0)))
    result = found(memory, 'red person')
    assert tracks(result) == [2, 3, 1]
    scores = [moment.score for moment in result.moments]
    assert scores == pytest.approx([1.0, 0.707, 0.0], abs=0.05)
    assert (result.rated, result.stored) == (3, 3)
    assert tracks(found(memory, 'red person', limit=1)) == [2]


def test_views_of_a_track_are_one_moment_with_their_mean(opened: Any) -> None:
    memory = opened(
        view(1, 5.0, vector=BLUE),
        view(1, 2.0, vector=RED),
        view(2, 3.0, vector=direction(1.0, 0.9)),
        key_frame(1.0, vector=BLUE),
        key_frame(4.0, vector=BLUE),
    )
    result = found(memory, 'red')
    assert tracks(result) == [2, 1, 0, 0]
    one = result.moments[1]
    assert one.score == pytest.approx(0.5, abs=0.05)
    assert (one.begin_ns, one.end_ns) == (2 * NS_PER_S, 5 * NS_PER_S)
    assert one.shown.item.stamp_ns == 2 * NS_PER_S
    assert [len(moment.views) for moment in result.moments] == [1, 2, 1, 1]


def test_several_flights_are_searched_at_once(opened: Any) -> None:
    one = opened(view(1, vector=RED), view(2, vector=BLUE), name='one')
    two = opened(view(1, vector=direction(1.0, 0.5)), name='two')
    result = found([one, two], 'red')
    assert [(m.flight, m.shown.item.track_id) for m in result.moments] == [
        ('one', 1),
        ('two', 1),
        ('one', 2),
    ]


def test_examples_find_what_looks_alike(opened: Any) -> None:
    memory = opened(view(1, vector=BLUE), view(2, vector=RED), view(2, vector=direction(3.0, 1.0)))
    examples = taps_of(memory, 3)
    assert examples.shape == (2, LENGTH)
    query = MemoryQuery(examples=examples)
    result = search([memory], query, lambda _header: ByFirstValues())
    assert tracks(result) == [2, 1]
    both = MemoryQuery(read_query('blue person', LABELS), examples=np.stack([BLUE]))
    assert tracks(search([memory], both, lambda _header: ByFirstValues())) == [1, 2]
    with pytest.raises(FlightMemoryError, match='no view 77'):
        taps_of(memory, 77)
    with pytest.raises(FlightMemoryError, match='examples of 3 values'):
        search([memory], MemoryQuery(examples=np.ones((1, 3), np.float32)), lambda _: None)  # type: ignore[arg-type, return-value]


def test_words_count_as_much_as_examples_whatever_their_scale(opened: Any) -> None:
    class Tiny:
        def scores(self, query: ParsedQuery, vectors: Vectors) -> FloatArray:
            return 1e-6 * ByFirstValues().scores(query, vectors)

    looks = [direction(1.0, 0.0, 0.0), direction(0.8, 0.0, 0.6), direction(0.0, 0.0, 1.0)]
    memory = opened(*(view(n, vector=look) for n, look in enumerate(looks, 1)))
    query = MemoryQuery(read_query('red'), examples=np.stack([direction(0.0, 0.0, 1.0)]))
    assert tracks(search([memory], query, lambda _header: Tiny()))[0] == 2


# ------------------------------------------------------------------------------ filters


def test_filters_for_time_label_and_place(opened: Any) -> None:
    memory = opened(
        view(1, 1.0, position=Spot(0.0, 0.0, 0.0)),
        view(2, 2.0, position=Spot(3.0, 4.0, 50.0)),
        view(3, 3.0, label='car', position=Spot(30.0, 0.0, 0.0)),
        view(4, 4.0),
        key_frame(5.0),
    )
    assert tracks(found(memory, between_ns=(2 * NS_PER_S, 3 * NS_PER_S))) == [2, 3]
    assert tracks(found(memory, labels=('car',))) == [3]
    assert tracks(found(memory, 'car')) == [3]
    near = found(memory, centre=Spot(0.0, 0.0, 0.0), radius=5.0)
    assert tracks(near) == [1, 2]
    assert '2 views without a known place are left out' in near.notes


def test_motion_is_judged_by_speed_and_by_the_drone(opened: Any) -> None:
    here = {'position': Spot(10.0, 0.0, 0.0), 'drone': DronePose(0.0, 0.0, 20.0)}
    memory = opened(
        view(1, 1.0, velocity=Spot(0.1, 0.0, 0.0), **here),
        view(2, 2.0, velocity=Spot(-1.2, 0.0, 0.0), **here),
        view(3, 3.0, velocity=Spot(3.0, 0.0, 0.0), **here),
        view(4, 4.0, velocity=Spot(0.0, 1.2, 0.0), **here),
        view(5, 5.0, velocity=Spot(-1.2, 0.0, 0.0)),
        view(6, 6.0),
    )
    assert tracks(found(memory, 'person standing')) == [1]
    assert tracks(found(memory, 'person walking')) == [2, 4, 5]
    assert tracks(found(memory, 'running person')) == [3]
    assert tracks(found(memory, 'moving person')) == [2, 3, 4, 5]
    assert tracks(found(memory, 'person approaching')) == [2]
    assert tracks(found(memory, motions=(Motion.LEAVING,))) == [3]
    assert '1 views without a known speed are left out' in found(memory, 'running').notes


# ---------------------------------------------------------------------------- relations


def standing(track: int, x: float, y: float, seconds: float = 1.0, **changes: Any) -> MemoryItem:
    made = {'velocity': Spot(0.0, 0.0, 0.0), 'drone': DronePose(0.0, 0.0, 20.0)}
    item: MemoryItem = view(track, seconds, position=Spot(x, y, 0.0), **{**made, **changes})
    return item


def test_near_is_judged_on_the_map_and_the_other_object_must_fit_too(opened: Any) -> None:
    memory = opened(
        standing(1, 10.0, 0.0, vector=RED),
        standing(2, 40.0, 0.0, vector=RED),
        standing(3, 80.0, 0.0, vector=RED),
        standing(4, 12.0, 0.0, 30.0, label='car', vector=BLUE),
        standing(5, 42.0, 0.0, 30.0, label='car', vector=RED),
    )
    result = found(memory, 'red person near a red car')
    assert tracks(result) == [2, 1]
    assert [m.beside.item.track_id for m in result.moments if m.beside] == [5, 4]
    assert result.moments[0].score == pytest.approx(1.0, abs=0.05)
    assert result.moments[1].score == pytest.approx(0.5, abs=0.05)
    assert tracks(found(memory, 'person near a person')) == []


def test_relations_are_judged_among_many(opened: Any) -> None:
    pairs = [
        (standing(n, 30.0 * n, 0.0), standing(2000 + n, 30.0 * n, 3.0 + n % 2 * 4.0, label='car'))
        for n in range(1, 700)
    ]
    memory = opened(*(item for pair in pairs for item in pair))
    result = found(memory, 'person near a car', limit=1000)
    assert sorted(tracks(result)) == list(range(2, 700, 2))
    assert all(
        m.beside is not None and m.beside.item.track_id == 2000 + m.shown.item.track_id
        for m in result.moments
    )


def test_a_moving_object_is_near_only_at_the_same_time(opened: Any) -> None:
    passing = {'label': 'car', 'velocity': Spot(8.0, 0.0, 0.0)}
    memory = opened(
        standing(1, 0.0, 0.0, 10.0),
        standing(2, 50.0, 0.0, 10.0),
        standing(3, 2.0, 0.0, 10.5, **passing),
        standing(4, 52.0, 0.0, 14.0, **passing),
    )
    assert tracks(found(memory, 'person near a car')) == [1]


def test_left_and_right_are_seen_from_the_drone(opened: Any) -> None:
    memory = opened(
        standing(1, 20.0, 5.0, 1.0),
        standing(2, 20.0, -5.0, 1.0),
        standing(3, 20.0, 0.0, 10.0, label='car'),
        standing(4, 20.0, 60.0, 1.0),
    )
    assert tracks(found(memory, 'person left of a car')) == [1]
    assert tracks(found(memory, 'person right of a car')) == [2]


def test_in_one_picture_boxes_say_what_is_left(opened: Any) -> None:
    # On the map it would be the other way round.
    memory = opened(
        standing(1, 20.0, -5.0, box=Box(100.0, 100.0, 140.0, 200.0)),
        standing(2, 20.0, 0.0, label='car', box=Box(300.0, 100.0, 400.0, 200.0)),
        standing(3, 20.0, 5.0, box=Box(330.0, 100.0, 380.0, 200.0)),
    )
    assert tracks(found(memory, 'person left of a car')) == [1]
    assert tracks(found(memory, 'person right of a car')) == []


# -------------------------------------------------------------------------------- notes


def test_what_was_not_understood_or_not_stored_is_said(opened: Any) -> None:
    result = found(opened(view(1)), 'a striped woman near a van')
    assert 'not in the vocabulary: striped' in result.notes
    assert 'woman is searched for as person' in result.notes
    assert 'van is searched for as car' in result.notes
    assert 'no view is stored as car; stored labels: person' in result.notes


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
