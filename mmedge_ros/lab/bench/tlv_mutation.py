"""Damages streams of packets in every way a wire does, and checks that the parser copes.

Nothing may raise, every packet that came through whole must be found, and no point beyond
what the radar can measure may be handed out.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from mmedge_ros.sensing import SensingError
from mmedge_ros.sensing.radar.tlv_packet import RANGE_PROFILE
from mmedge_ros.sensing.radar.tlv_parser import TlvParser
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
_POOL = 100
_UNKNOWN_KIND = 1010
_MOST_FRAMES = 6
_LONGEST_SPAN = 300
_STATISTICS = (3700, 7500, 84000, 3700, 3, 4)


@dataclass
class MutationOutcome:
    """Counts of a run over mutated streams; ``failures`` are sentences."""

    streams: int = 0
    intact: int = 0
    found: int = 0
    points: int = 0
    points_rejected: int = 0
    bytes_thrown_away: int = 0
    failures: list[str] = field(default_factory=list)

    def described(self) -> dict[str, int]:
        """Return the counts by name."""
        return {**vars(self), 'failures': len(self.failures)}


def run_mutations(count: int, seed: int) -> MutationOutcome:
    """Parse so many mutated streams; each depends on the seed and its number alone.

    :raises SensingError: if the count is not positive
    """
    if count < 1:
        raise SensingError(f'{count} mutated streams; at least 1 is needed')
    pools = [_packets(board, np.random.default_rng((seed, n))) for n, board in enumerate(BOARDS)]
    outcome = MutationOutcome()
    for number in range(count):
        random = np.random.default_rng((seed, len(BOARDS), number))
        pool = pools[int(random.integers(len(pools)))]
        begin = int(random.integers(_POOL - _MOST_FRAMES))
        frames = pool[begin : begin + int(random.integers(2, _MOST_FRAMES + 1))]
        _try_stream(frames, random, outcome, f'seed {seed}, stream {number}')
    return outcome


def mutated(stream: bytes, random: np.random.Generator) -> bytes:
    """Return the stream with one to four flips, drops, insertions or duplications."""
    damaged = bytearray(stream)
    for _ in range(int(random.integers(1, 5))):
        way, at, length = (
            int(random.integers(high)) for high in (4, max(len(damaged), 1), _LONGEST_SPAN)
        )
        if way == 0:
            for place in random.integers(len(damaged), size=1 + length % 8) if damaged else ():
                damaged[place] ^= 1 << int(random.integers(8))
        elif way == 1:
            del damaged[at : at + length]
        elif way == 2:
            damaged[at:at] = random.bytes(length)
        else:
            target = int(random.integers(len(damaged) + 1))
            damaged[target:target] = damaged[at : at + length]
    return bytes(damaged)


def _packets(board: BoardIdentity, random: np.random.Generator) -> list[bytes]:
    packets = []
    for number in range(_POOL):
        points = random.uniform(-3.0, 3.0, (int(random.integers(0, 13)), 6)).astype(np.float32)
        others = [(RANGE_PROFILE, random.bytes(64)), (_UNKNOWN_KIND, random.bytes(number % 30))]
        statistics = _STATISTICS if number % 3 else None
        packets.append(
            write_packet(board, 1000 + number, points, statistics, others[: number % 4])
        )
    return packets


def _try_stream(
    frames: list[bytes], random: np.random.Generator, outcome: MutationOutcome, name: str
) -> None:
    begin = _shortened_before(frames[0]) if random.integers(2) else b''
    stream = mutated(begin + b''.join(frames), random)
    cut = int(random.integers(len(stream) + 1))
    parser = TlvParser()
    try:
        packets = parser.feed(stream[:cut]) + parser.feed(stream[cut:]) + parser.finish()
        points = detected_points(packets, _LIMITS)
    except Exception as error:  # noqa: BLE001  # that none may come out is what is tried here
        outcome.failures.append(f'{name}: {type(error).__name__}: {error}')
        return
    parsed = {packet.data for packet in packets}
    intact = [frame for frame in frames if frame in stream]
    lost = sum(frame not in parsed for frame in intact)
    if lost:
        outcome.failures.append(f'{name}: {lost} of {len(intact)} intact packets not found')
    if _breaks_limits(points):
        outcome.failures.append(f'{name}: a point beyond the limits was handed out')
    if not 0 <= parser.bytes_thrown_away <= len(stream):
        outcome.failures.append(f'{name}: {parser.bytes_thrown_away} bytes thrown away')
    outcome.streams += 1
    outcome.intact += len(intact)
    outcome.found += len(packets)
    outcome.points += len(points)
    outcome.points_rejected += points.rejected
    outcome.bytes_thrown_away += parser.bytes_thrown_away


def _shortened_before(frame: bytes) -> bytes:
    """Return a packet that lost as many bytes as the one behind it has: both end together."""
    whole = assemble(BOARDS[-1], 999, 0, [(RANGE_PROFILE, bytes(len(frame) + 64))])
    return whole[: -len(frame)]


def _breaks_limits(points: DetectedPoints) -> bool:
    distance = np.linalg.norm(points.position.astype(np.float64), axis=1)
    within = (distance <= _LIMITS.max_range) & (np.abs(points.velocity) <= _LIMITS.max_speed)
    return not bool(within.all())
