"""Packets are found whatever the pieces they come in and whatever lies between them."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mmedge_ros.sensing.radar.chirp_configuration import UART_BYTES_PER_S
from mmedge_ros.sensing.radar.tlv_packet import HEADER, MAGIC, RANGE_PROFILE, TlvPacket
from mmedge_ros.sensing.radar.tlv_parser import MAX_PACKET_BYTES, MAX_TLVS, TlvParser
from mmedge_ros.sensing.radar.tlv_points import detected_points
from mmedge_ros.sensing.radar.tlv_writer import BoardIdentity, assemble, write_packet

BOARD = BoardIdentity()
OLD_BOARD = BoardIdentity(version=0x02010004, platform=0xA1443)


def packet(number: int, board: BoardIdentity = BOARD, points: int = 3) -> bytes:
    rows = np.random.default_rng(number).uniform(-2, 2, (points, 6)).astype(np.float32)
    return write_packet(board, number, rows, (1, 2, 3, 4, 5, 6))


def parse(stream: bytes, cuts: tuple[int, ...] = ()) -> tuple[list[TlvPacket], TlvParser]:
    parser, found, begin = TlvParser(), [], 0
    for cut in (*sorted(cuts), len(stream)):
        found += parser.feed(stream[begin:cut])
        begin = cut
    return found + parser.finish(), parser


def numbers(stream: bytes, cuts: tuple[int, ...] = ()) -> list[int]:
    return [found.frame_number for found in parse(stream, cuts)[0]]


# ----------------------------------------------------------------------------- recordings


def recordings(data_folder: Path) -> list[dict[str, Any]]:
    found = json.loads((data_folder / 'ti_tlv/expected.json').read_text())
    assert len(found) == 4
    return found


def test_recordings_hold_the_frames_and_points_that_another_decoder_found(
    data_folder: Path,
) -> None:
    for expected in recordings(data_folder):
        packets, parser = parse((data_folder / 'ti_tlv' / expected['file']).read_bytes())
        first = expected['first_frame']
        count = expected['complete_frames']
        assert [p.frame_number for p in packets] == list(range(first, first + count))
        assert {p.header_bytes for p in packets} == {expected['header_bytes']}
        assert {p.sdk_version for p in packets} == {expected['sdk_version']}
        assert len(detected_points(packets)) == expected['points_total']
        thrown = expected['first_magic_offset'] + expected['trailing_bytes']
        assert parser.bytes_thrown_away == thrown


@settings(max_examples=15)
@given(data=st.data())
def test_recordings_do_not_depend_on_the_pieces_they_come_in(
    data_folder: Path, data: st.DataObject
) -> None:
    expected = data.draw(st.sampled_from(recordings(data_folder)))
    stream = (data_folder / 'ti_tlv' / expected['file']).read_bytes()[:30_000]
    size = data.draw(st.integers(1, 3000))
    cuts = tuple(range(size, len(stream), size))
    assert parse(stream, cuts)[0] == parse(stream)[0]


# -------------------------------------------------------------------------------- streams


@given(
    st.lists(st.sampled_from([MAGIC, MAGIC[:5], b'\x02\x01', packet(1), packet(2)[:50]])),
    st.lists(st.integers(0, 400)),
)
def test_the_result_depends_on_the_bytes_alone(pieces: list[bytes], cuts: list[int]) -> None:
    stream = b''.join(pieces)
    whole, parser = parse(stream)
    cut, other = parse(stream, tuple(cuts))
    assert cut == whole
    assert other.bytes_thrown_away == parser.bytes_thrown_away
    assert other.damaged == parser.damaged


@given(st.binary(max_size=300), st.binary(max_size=300))
def test_packets_are_found_between_garbage(before: bytes, behind: bytes) -> None:
    stream, parser = before + packet(7) + packet(8, points=5) + behind, TlvParser(live=True)
    found = parser.feed(stream) + parser.finish()
    assert [p.frame_number for p in found] == [7, 8]
    assert parser.bytes_thrown_away == len(before) + len(behind)


def test_a_packet_is_handed_out_with_its_last_byte() -> None:
    parser, stream = TlvParser(live=True), packet(1)
    parser.feed(packet(0))
    parser.settle()
    assert [parser.feed(stream[n : n + 1]) for n in range(len(stream) - 1)] == [[]] * (
        len(stream) - 1
    )
    assert [p.frame_number for p in parser.feed(stream[-1:])] == [1]
    # Of another layout, it may be a part of two.
    assert parser.feed(packet(2, OLD_BOARD)) == []
    assert [p.frame_number for p in parser.settle()] == [2]


def test_bytes_that_wait_are_not_thrown_away_yet() -> None:
    parser = TlvParser()
    parser.feed(b'noise' + packet(1)[:60])
    assert parser.bytes_thrown_away == 5
    parser.finish()
    assert parser.bytes_thrown_away == 65


@pytest.mark.parametrize('lost', [1, 3, 20, 60, 100])
@pytest.mark.parametrize('at', [9, 45, 90, -1])
def test_the_packet_behind_one_that_lost_bytes_is_found(at: int, lost: int) -> None:
    damaged = packet(1, points=9)
    at = at % len(damaged)
    stream = damaged[: max(at - lost, 0)] + damaged[at:] + packet(2) + packet(3)
    assert numbers(stream)[-2:] == [2, 3]


@pytest.mark.parametrize('short', range(1, 8))
@pytest.mark.parametrize('board', [BOARD, OLD_BOARD])
@pytest.mark.parametrize('statistics', [None, (1, 2, 3, 4, 5, 6)])
def test_a_packet_short_of_a_few_bytes_is_rejected_and_its_neighbours_are_kept(
    short: int, board: BoardIdentity, statistics: tuple[int, ...] | None
) -> None:
    random = np.random.default_rng(short)
    for size in range(1, 13):
        rows = random.uniform(-2, 2, (size, 6)).astype(np.float32)
        damaged = write_packet(board, 2, rows, statistics)
        at = int(random.integers(40, len(damaged) - short + 1))
        stream = packet(1, board) + damaged[:at] + damaged[at + short :] + packet(3, board)
        assert numbers(stream) == [1, 3]
        assert numbers(stream, tuple(range(len(stream)))) == [1, 3]


@pytest.mark.parametrize('board', [BOARD, OLD_BOARD])
@pytest.mark.parametrize('behind', [30, 60])
def test_points_that_end_a_packet_count_only_if_the_next_packet_follows(
    board: BoardIdentity, behind: int
) -> None:
    rows = np.ones((4, 6), np.float32)
    last, following = write_packet(board, 2, rows), packet(3, board)
    # Its end was lost together with the beginning of the next packet.
    assert numbers(packet(1) + last[:-behind] + following[20:] + packet(4)) == [1, 4]
    assert numbers(packet(1) + last + following[20:] + packet(4)) == [1, 4]
    assert numbers(packet(1) + last + following) == [1, 2, 3]


def test_points_that_end_a_packet_are_handed_out_when_the_line_falls_silent() -> None:
    parser, rows = TlvParser(), np.ones((4, 6), np.float32)
    assert parser.settle() == []
    assert parser.feed(write_packet(OLD_BOARD, 2, rows)[:-1]) == []
    assert parser.settle() == []
    assert parser.feed(write_packet(OLD_BOARD, 2, rows)[-1:]) == []
    assert [found.frame_number for found in parser.settle()] == [2]
    parser.feed(packet(3))
    assert [found.frame_number for found in parser.settle()] == [3]
    assert (parser.damaged, parser.bytes_thrown_away) == (0, 0)


def test_a_last_byte_that_may_begin_a_magic_holds_a_packet_back_until_the_next_bytes() -> None:
    parser, hiding = TlvParser(), assemble(BOARD, 5, 0, [(RANGE_PROFILE, bytes(15) + b'\x02')])
    assert len(hiding) == 64
    assert parser.feed(hiding) == []
    assert [found.frame_number for found in parser.feed(packet(6)) + parser.finish()] == [5, 6]
    assert numbers(hiding) == [5]


def test_packets_without_their_last_byte_are_read_where_that_is_known() -> None:
    sent = [packet(number, board, 4) for number in (1, 2, 3) for board in (BOARD, OLD_BOARD)]
    stream = b''.join(data[:-1] for data in sent)
    assert numbers(stream) == []
    parser = TlvParser(last_byte_missing=True)
    found = parser.feed(stream) + parser.finish()
    assert [p.data[:-1] for p in found] == [data[:-1] for data in sent]
    assert (parser.damaged, parser.bytes_thrown_away) == (0, 0)


def test_a_point_whose_last_byte_is_missing_is_not_made_up() -> None:
    parser = TlvParser(last_byte_missing=True)
    full = write_packet(OLD_BOARD, 1, np.ones((4, 6), np.float32))
    assert len(full) == 36 + 8 + 4 + 4 * 12
    found = parser.feed(full[:-1] + packet(2)[:-1] + packet(3)[:-1]) + parser.finish()
    assert [p.frame_number for p in found] == [2, 3]


def test_a_packet_that_claims_too_much_does_not_swallow_the_next_ones() -> None:
    greedy = bytearray(packet(1))
    greedy[12:16] = (len(greedy) + 4096).to_bytes(4, 'little')
    parser = TlvParser()
    # Its entries end too early for its length, and that is seen at once.
    found = parser.feed(bytes(greedy) + packet(2)) + parser.settle()
    assert [p.frame_number for p in found] == [2]
    assert parser.damaged == 1


def test_a_value_that_holds_the_magic_does_not_cut_its_packet() -> None:
    hiding = assemble(BOARD, 5, 0, [(RANGE_PROFILE, b'abc' + MAGIC + bytes(40))])
    assert numbers(packet(4) + hiding + packet(6)) == [4, 5, 6]
    assert numbers(packet(4) + hiding) == [4, 5]


@pytest.mark.parametrize('behind', [b'', packet(3)])
@pytest.mark.parametrize('value', [bytes(500), MAGIC + bytes(500)])
def test_a_packet_whose_end_was_lost_hides_none_even_where_the_lengths_agree(
    value: bytes, behind: bytes
) -> None:
    # As many bytes of its value were lost as the next packet has, so that both end at the same
    # place and the entries of the first still fit.
    following = packet(2, points=0)
    cut = assemble(BOARD, 1, 0, [(RANGE_PROFILE, value)])[: -len(following)]
    found, parser = parse(cut + following + behind)
    assert [p.data for p in found] == [p for p in (following, behind) if p]
    assert parser.bytes_thrown_away == len(cut)


@given(cut=st.integers(0, 200))
def test_a_packet_with_a_magic_inside_counts_only_if_the_next_begins_at_its_end(cut: int) -> None:
    hiding = assemble(BOARD, 5, 0, [(RANGE_PROFILE, b'abc' + MAGIC + bytes(40))])
    assert numbers(hiding + bytes(20) + packet(6), (min(cut, len(hiding)),)) == [6]


def test_packets_in_packets_cost_no_more_than_their_bytes() -> None:
    nested = packet(0)
    for number in range(300):
        nested = assemble(BOARD, number, 0, [(RANGE_PROFILE, nested)])
    stream = nested + assemble(BOARD, 1, 0, [(RANGE_PROFILE, 5000 * MAGIC)])
    began = time.process_time()
    assert parse(stream)[1].bytes_thrown_away <= len(stream)
    assert time.process_time() - began < 1.0


def test_the_header_without_a_subframe_is_known_by_its_platform() -> None:
    (short, long), _ = parse(packet(1, OLD_BOARD) + packet(2))
    assert (short.header_bytes, long.header_bytes) == (36, 40)
    assert short.find(1).length == 4 + 3 * 12


@pytest.mark.parametrize(
    ('claimed', 'real'), [(0xA1642, 0xA1443), (0xA1443, 0xA6843)], ids=['short', 'long']
)
def test_a_header_of_the_other_length_is_found_out_by_its_entries(claimed: int, real: int) -> None:
    stream = bytearray(packet(1, BoardIdentity(platform=real)))
    stream[16:20] = claimed.to_bytes(4, 'little')
    (found,), _ = parse(bytes(stream))
    assert found.header_bytes == (36 if real == 0xA1443 else 40)
    assert len(detected_points([found])) == 3


def test_a_short_packet_at_the_very_end_is_read() -> None:
    stream = MAGIC + HEADER.pack(0x02010004, 36, 0xA1443, 9, 0, 0, 0, 0)[:28]
    assert numbers(stream) == [9]


@pytest.mark.parametrize(
    ('word', 'value'),
    [(1, 0), (1, 35), (1, MAX_PACKET_BYTES + 1), (1, 0xFFFFFFFF), (6, MAX_TLVS + 1), (6, 1 << 31)],
)
def test_impossible_headers_are_damaged(word: int, value: int) -> None:
    stream = bytearray(packet(1))
    stream[8 + 4 * word : 12 + 4 * word] = value.to_bytes(4, 'little')
    found, parser = parse(bytes(stream) + packet(2))
    assert [p.frame_number for p in found] == [2]
    assert parser.damaged == 1


@pytest.mark.parametrize(
    ('board', 'value'),
    [
        (BOARD, bytes(15)),
        (OLD_BOARD, bytes(3)),
        (OLD_BOARD, b'\x02\x00\x09\x00' + bytes(23)),
        (OLD_BOARD, b'\x01\x00\x40\x00' + bytes(12)),
    ],
    ids=['no multiple', 'no descriptor', 'too few', 'binary point'],
)
def test_points_that_do_not_fit_their_entry_are_damaged(
    board: BoardIdentity, value: bytes
) -> None:
    assert numbers(assemble(board, 1, 1, [(1, value)]) + packet(2)) == [2]


def test_unknown_entries_are_skipped_by_their_length() -> None:
    stream = assemble(BOARD, 1, 0, [(1000, b'abc'), (77, b''), (RANGE_PROFILE, bytes(8))])
    (found,), _ = parse(stream)
    assert [(tlv.kind, tlv.length) for tlv in found.tlvs] == [(1000, 3), (77, 0), (2, 8)]


def test_memory_stays_bounded_however_much_a_packet_claims() -> None:
    greedy = MAGIC + HEADER.pack(0x03000000, MAX_PACKET_BYTES, 0xA1642, 1, 0, 0, 1, 0)
    greedy += RANGE_PROFILE.to_bytes(4, 'little') + (MAX_PACKET_BYTES - 64).to_bytes(4, 'little')
    parser = TlvParser()
    parser.feed(greedy)
    for _ in range(40):
        parser.feed(bytes(10_000))
    assert parser.damaged == 0
    assert parser.packets == 1
    assert parser.bytes_thrown_away > 100_000


def test_the_parser_is_far_faster_than_the_port(data_folder: Path) -> None:
    for path in sorted((data_folder / 'ti_tlv').glob('*.dat')):
        stream = 10 * path.read_bytes()
        pieces = [stream[begin : begin + 4096] for begin in range(0, len(stream), 4096)]
        # The best of three: this machine may be busy with something else.
        seconds = min(cpu_seconds(pieces) for _ in range(3))
        assert len(stream) / seconds > 60 * UART_BYTES_PER_S


def cpu_seconds(pieces: list[bytes]) -> float:
    parser, began = TlvParser(), time.process_time()
    for piece in pieces:
        detected_points(parser.feed(piece))
    return time.process_time() - began
