"""The ring between processes: whole pictures or none, and nothing is lost without a count."""

from __future__ import annotations

import gc
import os
import random
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from ring_processes import SIDE, header, pixels, ring_process, words_of
from tries import tries

from mmedge_ros.transport import TransportError, shared_segment
from mmedge_ros.transport.picture_ring import RingReader, RingWriter, Written
from mmedge_ros.transport.ring_layout import SlotHeader, embedding_header, embedding_of
from mmedge_ros.transport.shared_segment import FOLDER, remove_leftovers

SIZE = SIDE * SIDE


@pytest.fixture
def make() -> Iterator[Callable[..., RingWriter]]:
    made: list[RingWriter] = []

    def make_writer(slots: int = 3, **options: int) -> RingWriter:
        made.append(RingWriter(SIZE, slots, **options))
        return made[-1]

    yield make_writer
    for writer in made:
        writer.close()
        assert not (FOLDER / writer.name).exists()


def put(writer: RingWriter, number: int, patience: float = 0.0) -> Written:
    written = writer.write(pixels(number), header(number), patience)
    assert written is not None
    return written


def value_of(reader: RingReader, written: Written) -> int | None:
    copied = reader.copy(*written)
    return None if copied is None else copied[1][0]


def test_a_picture_arrives_with_its_header_in_memory_of_its_own(
    make: Callable[..., RingWriter],
) -> None:
    writer = make()
    given_header = SlotHeader(-5, SIDE // 2, SIDE, 'yuv422_yuy2', SIDE, True, 3)
    written = writer.write(np.arange(SIZE, dtype=np.uint16).astype(np.uint8), given_header)
    reader = RingReader(writer.name)
    assert written is not None
    copied = reader.copy(*written)
    assert copied is not None
    for number in range(5):
        put(writer, number)
    assert copied[0] == given_header
    assert copied[1][:300].tolist() == [number % 256 for number in range(300)]
    reader.close()


def test_the_ring_wraps_around_and_a_reader_that_keeps_up_misses_nothing(
    make: Callable[..., RingWriter],
) -> None:
    writer = make()
    reader = RingReader(writer.name)
    for number in range(20):
        written = put(writer, number)
        assert value_of(reader, written) == number
    assert (writer.counts.written, writer.counts.dropped) == (20, 0)
    assert (reader.counts.read, reader.counts.missed, reader.counts.torn) == (20, 0, 0)


def test_a_slow_reader_loses_the_oldest_and_both_sides_count_it(
    make: Callable[..., RingWriter],
) -> None:
    writer = make()
    reader = RingReader(writer.name)
    assert value_of(reader, put(writer, 0)) == 0
    written = [put(writer, number) for number in range(1, 7)]
    assert [value_of(reader, w) for w in written] == [None, None, None, 4, 5, 6]
    assert writer.counts.dropped == 3
    assert reader.counts.missed == 3


def test_two_readers_read_independently_and_a_slot_is_free_after_both(
    make: Callable[..., RingWriter],
) -> None:
    writer = make()
    fast, slow = RingReader(writer.name), RingReader(writer.name)
    written = [put(writer, number) for number in range(3)]
    assert [value_of(fast, w) for w in written] == [0, 1, 2]
    with slow.bind(*written[0]) as content:
        assert content is not None
        last = put(writer, 3)  # not into the slot that is read
        assert (content.data == 0).all()
    assert last.slot == written[1].slot
    assert writer.counts.dropped == 1
    assert value_of(fast, last) == 3
    assert (fast.counts.missed, value_of(slow, written[1])) == (0, None)
    assert (value_of(slow, last), slow.counts.missed) == (3, 2)


def test_while_all_slots_are_read_nothing_is_overwritten(make: Callable[..., RingWriter]) -> None:
    writer = make(2)
    readers = [RingReader(writer.name) for _ in range(2)]
    written = [put(writer, number) for number in range(2)]
    with readers[0].bind(*written[0]) as one, readers[1].bind(*written[1]) as other:
        assert one is not None
        assert other is not None
        assert writer.write(pixels(9), header(9)) is None
        assert (one.data[0], other.data[0]) == (0, 1)
    assert writer.counts.overrun == 1
    assert put(writer, 10)


def test_replay_waits_for_the_reader_and_then_goes_on(make: Callable[..., RingWriter]) -> None:
    writer = make(2)
    count = 200
    with ring_process('read', writer.name, count) as process:
        assert words_of(process) == ['ready']
        assert process.stdin is not None
        for number in range(1, count + 1):
            written = put(writer, number, patience=30.0)
            process.stdin.write(f'{written.slot} {written.sequence}\n')
            process.stdin.flush()
        assert words_of(process) == [str(count), '0', '0']
    assert writer.counts.dropped == 0
    # The reader has ended without a word: its last claims count for nothing.
    assert put(writer, 1, patience=0.0)


def test_a_live_writer_never_hands_out_a_torn_picture(make: Callable[..., RingWriter]) -> None:
    writer = make(2)
    count = 3000
    with ring_process('read', writer.name, count) as process:
        assert words_of(process) == ['ready']
        assert process.stdin is not None
        for number in range(1, count + 1):
            written = put(writer, number)
            process.stdin.write(f'{written.slot} {written.sequence}\n')
            process.stdin.flush()
        whole, missed, torn = map(int, words_of(process))
    assert 0 < whole <= count
    assert torn == 0
    assert whole + missed <= count
    assert writer.counts.dropped <= count - whole


def test_a_writer_killed_while_writing_leaves_no_half_picture_and_no_memory() -> None:
    with ring_process('write') as process:
        name, slot, sequence, half = words_of(process)
        reader = RingReader(name)
        assert reader.is_alive
        process.kill()
        process.wait()
        assert not reader.is_alive
        assert value_of(reader, Written(int(slot), int(sequence))) == 1
        assert reader.copy(int(half), int(sequence) + 1) is None
        reader.close()
    RingWriter(10).close()
    assert not (FOLDER / name).exists()


@pytest.mark.parametrize('seed', range(tries(3)))
def test_a_writer_killed_at_any_moment_leaves_whole_pictures_or_none(seed: int) -> None:
    with ring_process('pour') as process:
        (name,) = words_of(process)
        reader = RingReader(name)
        moment = random.Random(seed).randrange(1, 500)
        written = [Written(*map(int, words_of(process))) for _ in range(moment)]
        process.kill()
        rest, _ = process.communicate()
        written += [Written(*map(int, line.split())) for line in rest.splitlines() if ' ' in line]
        for at in written[-20:]:
            with suppress(TransportError):
                copied = reader.copy(*at)
                assert copied is None or set(copied[1]) == {at.sequence % 256}
        assert not reader.is_alive
        reader.close()
    RingWriter(10).close()
    assert not (FOLDER / name).exists()


def test_the_slot_of_a_reader_killed_while_reading_is_taken_back_and_counted(
    make: Callable[..., RingWriter],
) -> None:
    writer = make(2)
    written = put(writer, 1)
    with ring_process('hold', writer.name, *written) as process:
        assert words_of(process) == ['reading']
        for number in range(2, 6):
            assert put(writer, number).slot != written.slot
        assert writer.counts.reclaimed == 0
        process.kill()
        process.wait()
    assert {put(writer, number).slot for number in (7, 8)} == {0, 1}
    assert writer.counts.reclaimed == 1


def test_a_lease_that_is_over_gives_the_slot_back_and_the_reader_is_told(
    make: Callable[..., RingWriter],
) -> None:
    writer = make(2)
    reader = RingReader(writer.name)
    written = put(writer, 1)
    with pytest.raises(TransportError, match='overwritten'), reader.bind(*written, lease=0.0):
        assert {put(writer, number).slot for number in (2, 3)} == {0, 1}
    assert (writer.counts.reclaimed, reader.counts.torn, reader.counts.read) == (1, 1, 0)


def test_a_slot_given_up_by_an_error_of_its_writer_is_taken_back(
    make: Callable[..., RingWriter],
) -> None:
    writer = make(2)
    reader = RingReader(writer.name)
    slot = writer.claim(SIZE)
    assert slot is not None
    assert reader.copy(slot, 1) is None
    assert [value_of(reader, put(writer, number)) for number in (1, 2, 3)] == [1, 2, 3]
    assert writer.counts.reclaimed == 1


def test_embeddings_are_admitted_by_tokens(make: Callable[..., RingWriter]) -> None:
    writer = make(4, token_budget=100)
    reader = RingReader(writer.name)
    dimension = 4

    def write(tokens: int) -> Written:
        data = np.full((tokens, dimension), tokens, np.float32)
        head = embedding_header(1, tokens, dimension)
        written = writer.write(data.reshape(-1).view(np.uint8), head)
        assert written is not None
        return written

    first, second = write(60), write(40)
    third = write(30)  # of four slots two are free, but not so many tokens
    assert writer.counts.dropped == 1
    assert reader.copy(*first) is None
    for written, tokens in ((second, 40), (third, 30)):
        with reader.bind(*written) as content:
            assert content is not None
            assert embedding_of(content).tolist() == [[float(tokens)] * dimension] * tokens
    write(100)
    assert writer.counts.dropped == 1
    with pytest.raises(TransportError, match='101 tokens'):
        write(101)


@pytest.mark.parametrize(
    'about',
    [
        SlotHeader(1, 2**32, 1, 'mono8', 1),
        SlotHeader(2**63, 1, 1, 'mono8', 1),
        SlotHeader(1, 1, 1, 'an_encoding_of_more_bytes', 1),
        SlotHeader(1, 1, -1, 'mono8', 1),
    ],
)
def test_what_a_header_has_no_room_for_is_refused_and_the_ring_goes_on(
    make: Callable[..., RingWriter], about: SlotHeader
) -> None:
    writer = make(2)
    reader = RingReader(writer.name)
    for _ in range(3):
        with pytest.raises(TransportError):
            writer.write(pixels(1), about)
    assert value_of(reader, put(writer, 4)) == 4
    assert writer.counts.reclaimed == 3


def test_a_picture_is_no_embedding(make: Callable[..., RingWriter]) -> None:
    writer = make()
    reader = RingReader(writer.name)
    with reader.bind(*put(writer, 1)) as content:
        assert content is not None
        with pytest.raises(TransportError, match='mono8'):
            embedding_of(content)


def test_a_closed_ring_stays_readable_for_who_is_in_it_and_has_no_name(
    make: Callable[..., RingWriter],
) -> None:
    writer = make()
    reader = RingReader(writer.name)
    written = put(writer, 5)
    writer.close()
    assert not reader.is_alive
    assert value_of(reader, written) == 5
    with pytest.raises(TransportError, match='not on this machine'):
        RingReader(writer.name)


def test_nobody_else_may_enter(
    make: Callable[..., RingWriter], monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = make()
    assert (FOLDER / writer.name).stat().st_mode & 0o777 == 0o600
    monkeypatch.setattr(os, 'geteuid', lambda: 12345)
    with pytest.raises(TransportError, match='same user'):
        RingReader(writer.name)
    monkeypatch.undo()

    def refuse(*_: object) -> int:
        raise PermissionError(13, 'Permission denied')

    monkeypatch.setattr(os, 'open', refuse)
    with pytest.raises(TransportError, match='same user'):
        RingReader(writer.name)


def test_a_ninth_reader_is_told(make: Callable[..., RingWriter]) -> None:
    writer = make()
    readers = [RingReader(writer.name) for _ in range(8)]
    with pytest.raises(TransportError, match='8 readers'):
        RingReader(writer.name)
    readers.pop().close()
    assert RingReader(writer.name).copy(*put(writer, 1)) is not None


def test_memory_that_is_not_there_is_said_and_not_crashed_into() -> None:
    free = os.statvfs(FOLDER)
    with pytest.raises(TransportError, match='room'):
        RingWriter(free.f_blocks * free.f_frsize, 2)


def test_leftovers_are_removed_and_what_is_in_use_is_not(make: Callable[..., RingWriter]) -> None:
    writer = make()
    leftover = FOLDER / f'{shared_segment.PREFIX}1_00000000'
    leftover.write_bytes(b'half a ring')
    remove_leftovers()
    assert not leftover.exists()
    assert (FOLDER / writer.name).exists()


def test_a_ring_that_another_process_cuts_short_ends_neither_reader_nor_writer(
    make: Callable[..., RingWriter],
) -> None:
    writer = make()
    reader, written = RingReader(writer.name), put(writer, 1)
    os.truncate(FOLDER / writer.name, 100)
    with pytest.raises(TransportError, match='cut short by another process'):
        reader.copy(*written)
    with pytest.raises(TransportError, match='cut short by another process'):
        put(writer, 2)
    reader.close()


@pytest.mark.parametrize('name', ['', '../etc/passwd', 'mmedge_ring_../x', 'mmedge_ring_' * 40])
def test_a_name_leads_nowhere_else(name: str) -> None:
    with pytest.raises(TransportError):
        RingReader(name or 'x')


@pytest.mark.parametrize('content', [b'', b'x', b'MMEDGERB' + bytes(10), bytes(5000)])
def test_memory_that_is_no_ring_is_refused(content: bytes) -> None:
    path = FOLDER / f'{shared_segment.PREFIX}hostile'
    path.write_bytes(content)
    try:
        with pytest.raises(TransportError):
            RingReader(path.name)
    finally:
        # Another process may have taken it for a leftover, as it is.
        path.unlink(missing_ok=True)


def test_a_link_is_not_followed(tmp_path: Path, make: Callable[..., RingWriter]) -> None:
    link = FOLDER / f'{shared_segment.PREFIX}link'
    link.symlink_to(FOLDER / make().name)
    try:
        with pytest.raises(TransportError):
            RingReader(link.name)
    finally:
        link.unlink()


EDGES = [b'\xff' * 8, bytes(8), b'\xff' * 7 + b'\x7f', b'\xfe' + b'\xff' * 7, b'\1' + bytes(7)]
DAMAGE = st.tuples(
    st.one_of(st.integers(0, 700), st.integers(0, 80).map(lambda step: 4 * step)),
    st.one_of(st.binary(min_size=1, max_size=64), st.sampled_from(EDGES)),
)


# Each example makes a ring, and collects what a refused reader leaves.
@example(damages=[(24, EDGES[0])], is_in_use=True, slot=0, sequence=2**64 - 1)
@settings(max_examples=tries(60))
@given(
    damages=st.lists(DAMAGE, min_size=1, max_size=4),
    is_in_use=st.booleans(),
    slot=st.integers(-1, 5),
    sequence=st.integers(0, 2**64 - 1),
)
def test_whatever_a_ring_says_of_itself_a_reader_stays_inside_and_a_writer_goes_on(
    damages: list[tuple[int, bytes]], is_in_use: bool, slot: int, sequence: int
) -> None:
    writer = RingWriter(SIZE, 3)
    readers = [RingReader(writer.name)] if is_in_use else []
    try:
        written = put(writer, 1)
        segment = writer._segment
        for where, what in damages:
            segment.memory[where : where + len(what)] = what
        with suppress(TransportError):
            readers = readers or [RingReader(writer.name)]
        for at in (written, Written(slot, sequence)):
            for reader in readers:
                with suppress(TransportError):
                    copied = reader.copy(*at)
                    assert copied is None or 0 < len(copied[1]) <= segment.size
        # The writer goes on with its own sizes.
        for value in range(2, 6):
            writer.write(pixels(value), header(value))
    finally:
        for reader in readers:
            reader.close()
        writer.close()
        gc.collect()
