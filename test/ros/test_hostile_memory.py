"""Whatever a memory holds and whatever is asked, a query ends with moments or a sentence."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hand_made_moments import direction, key_frame, memory_of, view
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from rclpy.serialization import serialize_message
from tries import tries

from mmedge_ros import srv
from mmedge_ros.core.data_types import FloatArray
from mmedge_ros.memory import FlightMemoryError
from mmedge_ros.memory.moment import Spot, Vectors
from mmedge_ros.memory.query import ParsedQuery
from mmedge_ros.memory.search import find_moments
from mmedge_ros.memory.store import MemoryReader, MemoryWriter
from mmedge_ros.memory.store_file import COLUMNS, FACTS, FILE_NAME, REALS
from mmedge_ros.ros.messages.markers import moment_markers
from mmedge_ros.ros.messages.memory_messages import from_query, to_found_moment

LONGEST = 5.0  # s
EDGES = (0, -1, 1, 2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**53, 2**62, 2**63 - 1, -(2**63))
REAL_EDGES = (0.0, -0.0, 1e-45, 1e9, -1e9, 9.9e8, 3.4e38, np.nan, np.inf, -np.inf)


class FirstValue:
    """Rates views by the first value of their vector."""

    def __init__(self, knows_all_words: bool = False) -> None:
        self.knows_all_words = knows_all_words

    def scores(self, query: ParsedQuery, vectors: Vectors) -> FloatArray:
        return vectors[:, 0].astype(float)


def answer(folder: Path, request: Any) -> None:
    """Answer as the node does."""
    begun, refused = time.monotonic(), ''
    try:
        with MemoryReader(folder) as reader:
            found = find_moments(
                [reader],
                from_query(request),
                lambda _: FirstValue(request.limit % 2 == 1),
                lambda _: direction(0.0, 1.0)[None],
            )
            response = srv.QueryMemory.Response(success=True, notes=list(found.notes))
            response.moments = [
                to_found_moment(moment, reader.thumbnail(moment.shown.id))
                for moment in found.moments
            ]
    except (FlightMemoryError, ValueError) as err:
        refused = str(err)
    else:
        serialize_message(response)
        serialize_message(moment_markers(found.moments, 'odom', 0))
    assert time.monotonic() - begun < LONGEST
    assert len(refused) < 600, 'more than a sentence'


def asking(**values: Any) -> Any:
    return srv.QueryMemory.Request(**{'words': 'person near a car', **values})


@pytest.fixture(scope='module')
def whole(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The bytes of a sound memory."""
    folder = tmp_path_factory.mktemp('whole.memory')
    place = Spot(3.0, 4.0, 0.0)
    items = [view(1, position=place), view(2, 4.0, label='car', position=place), key_frame(2.0)]
    memory_of(folder, *items, view(3, 9.0), view(3, 11.0)).close()
    return (folder / FILE_NAME).read_bytes()


@pytest.fixture(scope='module')
def fresh(tmp_path_factory: pytest.TempPathFactory, whole: bytes) -> Callable[[bytes], Path]:
    """Makes the file of a memory, in the place of the one before."""
    folder = tmp_path_factory.mktemp('tried.memory')

    def make(content: bytes) -> Path:
        for path in folder.iterdir():
            path.unlink()
        (folder / FILE_NAME).write_bytes(content)
        return folder

    return make


def facts() -> st.SearchStrategy[bytes]:
    """Facts of a view with values at the edges of what numbers can be."""

    def packed(reals: dict[str, float], offset: int, phase: int) -> bytes:
        values = np.zeros(1, FACTS)
        values['bag_offset'], values['phase'] = offset, phase
        with np.errstate(over='ignore'):
            for name, value in reals.items():
                values[name] = value
        return values.tobytes()

    reals = st.dictionaries(st.sampled_from(REALS), st.sampled_from(REAL_EDGES))
    return st.builds(packed, reals, st.sampled_from(EDGES), st.integers(0, 5))


ABSURD = st.one_of(
    st.tuples(
        st.sampled_from(['run', 'track', 'stamp', 'kind', 'exit', 'id']), st.sampled_from(EDGES)
    ),
    st.tuples(st.just('facts'), facts()),
    st.tuples(
        st.sampled_from(['label', 'level']),
        st.text(st.characters(exclude_categories=['Cs']), max_size=70),
    ),
    st.tuples(st.sampled_from(['vector', 'tap', 'thumbnail']), st.binary(max_size=12)),
    st.tuples(st.sampled_from(sorted(COLUMNS)), st.sampled_from([None, 'x', b'', 0.5, np.nan])),
)
NO_FIXTURE_CHECK = [HealthCheck.function_scoped_fixture]


@example(rows=[(1, ('track', 2**32))], words='person', more={})
@example(rows=[(1, ('stamp', 2**62))], words='person', more={})
@example(rows=[(1, ('id', 2**40))], words='person', more={})
@settings(max_examples=tries(100), suppress_health_check=NO_FIXTURE_CHECK)
@given(
    rows=st.lists(st.tuples(st.integers(1, 5), ABSURD), min_size=1, max_size=6),
    words=st.sampled_from(['person', 'person near a car', 'walking', 'anyone at night', '']),
    more=st.sampled_from([{}, {'like': 1}, {'like': 4}, {'near': (3.0, 4.0, 1e9)}]),
)
def test_absurd_values_in_well_formed_records_are_left_out_or_answered(
    whole: bytes, fresh: Callable[[bytes], Path], rows: Any, words: str, more: dict[str, Any]
) -> None:
    folder = fresh(whole)
    with closing(sqlite3.connect(folder / FILE_NAME)) as connection, connection:
        for number, (column, value) in rows:
            with suppress(sqlite3.IntegrityError):  # two of one number
                connection.execute(f'UPDATE items SET {column} = ? WHERE id = ?', (value, number))
    answer(folder, asking(words=words, **more))


def damaged(content: bytearray, kind: str, place: float, value: int) -> bytes:
    """Return the bytes of a file that something happened to."""
    at = min(int(place * len(content)), len(content) - 1)
    page, other = at // 512 * 512, value * 512 % len(content)
    if kind == 'flip':
        content[at] ^= 1 << value % 8
    elif kind == 'byte':
        content[at] = value % 256
    elif kind == 'cut':
        del content[at:]
    elif kind == 'lose':
        del content[at : at + value]
    elif kind == 'insert':
        content[at:at] = bytes([value % 256]) * value
    elif kind == 'swap':
        pages = bytes(content[page : page + 512]), bytes(content[other : other + 512])
        content[page : page + 512], content[other : other + 512] = pages[1], pages[0]
    else:
        content[page : page + 512] = bytes(512)
    return bytes(content)


DAMAGE = st.tuples(
    st.sampled_from(['flip', 'byte', 'cut', 'lose', 'insert', 'swap', 'blank']),
    st.floats(0.0, 1.0),
    st.integers(0, 700),
)


@settings(max_examples=tries(100), suppress_health_check=NO_FIXTURE_CHECK)
@given(
    damages=st.lists(DAMAGE, min_size=1, max_size=5),
    pending=st.sampled_from([b'', b'x' * 100, bytes(5000)]),
    writes=st.booleans(),
)
def test_a_damaged_file_is_answered_from_or_refused_and_so_it_is_where_it_is_written_to(
    whole: bytes,
    fresh: Callable[[bytes], Path],
    damages: list[tuple[str, float, int]],
    pending: bytes,
    writes: bool,
) -> None:
    content = whole
    for damage in damages:
        content = damaged(bytearray(content or b'x'), *damage)
    folder = fresh(content)
    if pending:
        (folder / f'{FILE_NAME}-wal').write_bytes(pending)
    answer(folder, asking())
    if writes:
        with suppress(FlightMemoryError), MemoryWriter(folder) as writer:
            writer.add([view(7, 20.0)])
            writer.forget_track(3)
            writer.compact()
        answer(folder, asking())


PIECES = ('person', 'red', 'near', 'not', 'left', 'of', 'the', 't-shirt', '\0', '\n', '😀', 'ı')


@settings(max_examples=tries(200), suppress_health_check=NO_FIXTURE_CHECK)
@given(
    words=st.one_of(
        st.text(max_size=700),
        st.lists(st.sampled_from(PIECES), max_size=300).map(' '.join),
    ).filter(lambda words: words.encode(errors='ignore') == words.encode('utf8', 'ignore')),
    example=st.binary(max_size=200),
    like=st.sampled_from([0, 0, 0, 1, 2**32 - 1]),
    near=st.tuples(*[st.sampled_from([*REAL_EDGES, 5.0, 1e300])] * 3),
    seconds=st.tuples(*[st.sampled_from([0, 1, 20, -1, 2**31 - 1, -(2**31)])] * 2),
    nanoseconds=st.sampled_from([0, 1, 2**32 - 1]),
    limit=st.sampled_from([0, 1, 10, 1000, 1001, 10**9, 2**32 - 1]),
)
def test_absurd_questions_are_answered_or_refused_in_a_sentence(
    whole: bytes,
    fresh: Callable[[bytes], Path],
    words: str,
    example: bytes,
    like: int,
    near: tuple[float, float, float],
    seconds: tuple[int, int],
    nanoseconds: int,
    limit: int,
) -> None:
    request = asking(words=words, example=example, like=like, limit=limit)
    request.near = np.array(near)
    request.begin.sec, request.end.sec = seconds
    request.end.nanosec = nanoseconds
    answer(fresh(whole), request)
