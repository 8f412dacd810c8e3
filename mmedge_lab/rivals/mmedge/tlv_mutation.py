"""Damages streams of packets in every way a wire does, and checks that the parser copes.

Nothing may raise or take long, every packet that came through whole must be found, and no point
may be handed out that is beyond what the radar can measure, or that was not sent. Bytes that are
replaced by as many others change points without a trace, so what was sent is compared in streams
that only lose bytes or only gain some.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from mmedge_lab.judging import EvaluationError
from mmedge_lab.judging.bench import Bench, BenchRequest, Figure, Row, Subject, Sums
from mmedge_ros.core.untrusted_files import read_bounded
from mmedge_ros.sensing import SensingError
from mmedge_ros.sensing.radar.capture_file import no_packet, parser_for
from mmedge_ros.sensing.radar.tlv_packet import MAGIC, RANGE_PROFILE, TlvPacket
from mmedge_ros.sensing.radar.tlv_parser import TlvParser, points_end_packet
from mmedge_ros.sensing.radar.tlv_points import DetectedPoints, PointLimits, detected_points
from mmedge_ros.sensing.radar.tlv_writer import BoardIdentity, assemble, write_packet

BOARDS = (
    BoardIdentity(version=0x01020005, platform=0xA1443),
    BoardIdentity(version=0x02010004, platform=0xA1443, fraction_bits=8),
    BoardIdentity(version=0x02010004, platform=0xA1642),
    BoardIdentity(version=0x03060000, platform=0xA1642),
    BoardIdentity(version=0x03050004, platform=0xA6843),
)
_LIMITS = PointLimits(max_range=20.0, max_speed=6.0, range_bins=512, velocity_step=0.1)
_POOL = 50
_LAYOUTS = 12
_UNKNOWN_KIND = 1010
_MOST_FRAMES = 6
_LONGEST_SPAN = 300
_SHORT_SPAN = 8
_LONGEST_TIME = 1.0
_LARGEST_CAPTURE = 1 << 24
_FLIP, _LOSE, _INSERT, _DUPLICATE = range(4)
_STATISTICS = (3700, 7500, 84000, 3700, 3, 4)


class _Sent(NamedTuple):
    """A packet that was sent: its bytes, number and points, and whether these are all it holds."""

    data: bytes
    number: int
    points: frozenset[bytes]
    ends_in_points: bool


_ALL = (_FLIP, _LOSE, _INSERT, _DUPLICATE)
# Losses are what happens on a wire.
_FAMILIES = (_ALL, _ALL, (_LOSE,), (_LOSE,), (_LOSE,), (_INSERT, _DUPLICATE))


@dataclass
class MutationOutcome:
    """Counts of a run over mutated streams; ``failures`` are sentences.

    ``undecidable`` packets have points that were not sent, but the next one begins, or the stream
    ends, exactly where they do. ``spliced`` ones have such points, too, and all entries behind
    them that a packet of their board has; only a parser that does not wait takes them.
    """

    streams: int = 0
    intact: int = 0
    found: int = 0
    points: int = 0
    points_rejected: int = 0
    bytes_thrown_away: int = 0
    undecidable: int = 0
    spliced: int = 0
    failures: list[str] = field(default_factory=list)


def bench(request: BenchRequest, *, count: int = 100_000, seed: int = 0) -> Bench:
    """Feed the radar's parser with damaged streams, also those of recordings that are named.

    :param count: mutated streams
    :param seed: the same seed, the same streams
    """
    names = [name for name in vars(MutationOutcome()) if name != 'failures']
    return Bench(
        'Damaged streams of a radar',
        (
            Row(
                'parsed',
                partial(
                    _parsed, min(count, 2000) if request.quick else count, seed, request.inputs
                ),
            ),
        ),
        {name: Figure(name.replace('_', ' '), name, digits=0) for name in names},
        request.repetitions(1),
        about={'seed': seed},
    )


def _parsed(count: int, seed: int, captures: Sequence[Path], _: Subject) -> Sums:
    outcome = run_mutations(count, seed, captures)
    if outcome.failures:
        raise EvaluationError(
            f'{len(outcome.failures)} failures: {"; ".join(outcome.failures[:5])}'
        )
    return {name: value for name, value in vars(outcome).items() if name != 'failures'}


def run_mutations(count: int, seed: int, captures: Sequence[Path] = ()) -> MutationOutcome:
    """Parse so many mutated streams; each depends on the seed and its number alone.

    :param captures: recordings whose packets are damaged, too
    :raises SensingError: if the count is not positive, or a capture holds no packet
    """
    if count < 1:
        raise SensingError(f'{count} mutated streams; at least 1 is needed')
    pools = [
        _packets(board, layout, np.random.default_rng((seed, n, layout)))
        for n, board in enumerate(BOARDS)
        for layout in range(_LAYOUTS)
    ]
    pools += [_recorded(path) for path in captures]
    outcome = MutationOutcome()
    for number in range(count):
        random = np.random.default_rng((seed, len(pools), number))
        pool = pools[int(random.integers(len(pools)))]
        begin = int(random.integers(max(len(pool) - _MOST_FRAMES, 1)))
        frames = pool[begin : begin + int(random.integers(2, _MOST_FRAMES + 1))]
        _try_stream(frames, random, outcome, f'seed {seed}, stream {number}')
    return outcome


def mutated(stream: bytes, random: np.random.Generator, ways: Sequence[int] = _ALL) -> bytes:
    """Return the stream with one to four flips, losses, insertions or duplications."""
    damaged = bytearray(stream)
    longest = (_LONGEST_SPAN, _SHORT_SPAN)[int(random.integers(2))]
    for _ in range(int(random.integers(1, 5))):
        chosen, at, length = (
            int(random.integers(high)) for high in (len(ways), max(len(damaged), 1), longest)
        )
        way = ways[chosen]
        if way == _FLIP:
            for place in random.integers(len(damaged), size=1 + length % 8) if damaged else ():
                damaged[place] ^= 1 << int(random.integers(8))
        elif way == _LOSE:
            del damaged[at : at + length]
        elif way == _INSERT:
            damaged[at:at] = random.bytes(length)
        else:
            target = int(random.integers(len(damaged) + 1))
            damaged[target:target] = damaged[at : at + length]
    return bytes(damaged)


def _recorded(path: Path) -> list[_Sent]:
    data = read_bounded(path, _LARGEST_CAPTURE, SensingError)
    parser = parser_for(data)
    packets = parser.feed(data) + parser.finish()
    if not packets:
        raise SensingError(no_packet(path, len(data)))
    return [_sent(packet) for packet in packets]


def _sent(packet: TlvPacket) -> _Sent:
    points = frozenset(_rows(detected_points([packet], _LIMITS)))
    return _Sent(packet.data, packet.frame_number, points, points_end_packet(packet))


def _rows(points: DetectedPoints) -> list[bytes]:
    """Return all that is said of each point, in a form that can be compared."""
    columns = (points.position, points.velocity, points.snr, points.noise)
    table = np.column_stack([*columns, points.doppler_index])
    return [row.tobytes() for row in table]


def _packets(board: BoardIdentity, layout: int, random: np.random.Generator) -> list[_Sent]:
    others_of = (RANGE_PROFILE, 64), (_UNKNOWN_KIND, layout % 30)
    stream = b''
    for number in range(_POOL):
        points = random.uniform(-3.0, 3.0, (int(random.integers(0, 13)), 6)).astype(np.float32)
        others = [(kind, random.bytes(size)) for kind, size in others_of[: layout % 3]]
        statistics = _STATISTICS if layout % 4 else None
        stream += write_packet(board, 1000 + number, points, statistics, others)
    parser = TlvParser()
    return [_sent(packet) for packet in parser.feed(stream) + parser.finish()]


def _try_stream(
    frames: list[_Sent], random: np.random.Generator, outcome: MutationOutcome, name: str
) -> None:
    begin = _shortened_before(frames[0].data) if random.integers(2) else b''
    ways = _FAMILIES[int(random.integers(len(_FAMILIES)))]
    stream = mutated(begin + b''.join(frame.data for frame in frames), random, ways)
    cut = int(random.integers(len(stream) + 1))
    for live in (False, True):
        _try_parser(frames, (stream[:cut], stream[cut:]), ways, live, outcome, name)
    outcome.streams += 1


def _try_parser(
    frames: list[_Sent],
    pieces: tuple[bytes, bytes],
    ways: Sequence[int],
    live: bool,
    outcome: MutationOutcome,
    name: str,
) -> None:
    stream, parser, began = b''.join(pieces), TlvParser(live=live), time.process_time()
    try:
        packets = [packet for piece in pieces for packet in parser.feed(piece)] + parser.finish()
        points = detected_points(packets, _LIMITS)
    except Exception as error:  # noqa: BLE001  # that none may come out is what is tried here
        outcome.failures.append(f'{name}: {type(error).__name__}: {error}')
        return
    if time.process_time() - began > _LONGEST_TIME:
        outcome.failures.append(f'{name}: took longer than {_LONGEST_TIME:g} s')
    parsed = {packet.data for packet in packets}
    intact = [
        frame
        for before, frame in zip([None, *frames], frames, strict=False)
        if _is_whole(frame, before if live else None, stream)
    ]
    lost = sum(frame.data not in parsed for frame in intact)
    if lost:
        outcome.failures.append(f'{name}: {lost} of {len(intact)} intact packets not found')
    if _breaks_limits(points):
        outcome.failures.append(f'{name}: a point beyond the limits was handed out')
    for packet in _wrong(packets, points, frames) if ways != _ALL else ():
        if _ends_where_it_claims(packet, stream):
            outcome.undecidable += not live
        elif live:
            outcome.spliced += 1
        else:
            outcome.failures.append(f'{name}: points that were not sent were handed out')
    if not 0 <= parser.bytes_thrown_away <= len(stream):
        outcome.failures.append(f'{name}: {parser.bytes_thrown_away} bytes thrown away')
    outcome.intact += len(intact)
    outcome.found += len(packets)
    outcome.points += len(points)
    outcome.points_rejected += points.rejected
    outcome.bytes_thrown_away += parser.bytes_thrown_away


def _is_whole(frame: _Sent, before: _Sent | None, stream: bytes) -> bool:
    """Say whether a packet came through, and can be seen to be whole.

    That is where the next one begins behind it, or the one before came through, too.
    """
    at = stream.find(frame.data)
    while at >= 0:
        end = at + len(frame.data)
        if MAGIC.startswith(stream[end : end + len(MAGIC)]):
            return True
        if before and not frame.ends_in_points and stream.endswith(before.data, 0, at):
            return True
        at = stream.find(frame.data, at + 1)
    return False


def _wrong(
    packets: list[TlvPacket], points: DetectedPoints, frames: list[_Sent]
) -> list[TlvPacket]:
    """Return the packets with points that were not sent under their number."""
    sent = {frame.number: frame.points for frame in frames}
    places = points.packet.tolist()
    return [
        packets[place]
        for place in sorted(
            {
                place
                for place, row in zip(places, _rows(points), strict=True)
                if row not in sent.get(packets[place].frame_number, ())
            }
        )
    ]


def _ends_where_it_claims(packet: TlvPacket, stream: bytes) -> bool:
    """Say whether a magic follows a packet, or as much of it as there is."""
    end = stream.rfind(packet.data) + len(packet.data)
    return MAGIC.startswith(stream[end : end + len(MAGIC)])


def _shortened_before(frame: bytes) -> bytes:
    """Return a packet that lost as many bytes as the one behind it has: both end together."""
    whole = assemble(BOARDS[-1], 999, 0, [(RANGE_PROFILE, bytes(len(frame) + 64))])
    return whole[: -len(frame)]


def _breaks_limits(points: DetectedPoints) -> bool:
    distance = np.linalg.norm(points.position.astype(np.float64), axis=1)
    within = (distance <= _LIMITS.max_range) & (np.abs(points.velocity) <= _LIMITS.max_speed)
    return not bool(within.all())
