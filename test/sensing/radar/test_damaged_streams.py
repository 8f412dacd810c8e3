"""Damaged streams cost what was damaged and nothing else."""

from __future__ import annotations

import numpy as np
import pytest

from mmedge_ros.sensing.radar.tlv_packet import MAGIC, RANGE_PROFILE
from mmedge_ros.sensing.radar.tlv_parser import TlvParser
from mmedge_ros.sensing.radar.tlv_points import PointLimits, detected_points
from mmedge_ros.sensing.radar.tlv_writer import BoardIdentity, write_packet

BOARDS = (
    BoardIdentity(version=0x01020005, platform=0xA1443),
    BoardIdentity(version=0x02010004, platform=0xA1642),
    BoardIdentity(version=0x03050004, platform=0xA6843),
)
LIMITS = PointLimits(max_range=20.0, max_speed=6.0, range_bins=512, velocity_step=0.1)
FRAMES = 4


def packet(board: BoardIdentity, number: int, random: np.random.Generator) -> bytes:
    points = random.uniform(-3.0, 3.0, (int(random.integers(13)), 6)).astype(np.float32)
    others = [(RANGE_PROFILE, random.bytes(64))]
    return write_packet(board, number, points, (3700, 7500, 84000, 3700, 3, 4), others)


def damaged(stream: bytes, random: np.random.Generator, *, only_lose: bool) -> bytes:
    """A stream with one to four flips, losses, insertions or duplications."""
    made = bytearray(stream)
    for _ in range(int(random.integers(1, 5))):
        at, length = int(random.integers(len(made))), int(random.integers(1, 300))
        way = 0 if only_lose else random.integers(4)
        if way == 0:
            del made[at : at + min(length, len(made) - 1)]
        elif way == 1:
            made[at] ^= 1 << int(random.integers(8))
        elif way == 2:
            made[at:at] = random.bytes(length)
        else:
            made[at:at] = made[at : at + length]
    return bytes(made)


@pytest.mark.parametrize('only_lose', [True, False])
@pytest.mark.parametrize('board', BOARDS)
def test_no_packet_that_came_through_is_lost_and_no_point_is_impossible(
    board: BoardIdentity, only_lose: bool
) -> None:
    rejected = 0
    for seed in range(300):
        random = np.random.default_rng((board.platform, seed))
        frames = [packet(board, number, random) for number in range(FRAMES)]
        stream = damaged(b''.join(frames), random, only_lose=only_lose)
        cut, parser = int(random.integers(len(stream) + 1)), TlvParser()
        found = parser.feed(stream[:cut]) + parser.feed(stream[cut:]) + parser.finish()
        known = {one.data for one in found}
        for frame in frames:
            # One is known to be whole where the next begins behind it, or the stream ends there.
            end = stream.find(frame) + len(frame)
            if frame in stream and MAGIC.startswith(stream[end : end + len(MAGIC)]):
                assert frame in known
        points = detected_points(found, LIMITS)
        distance = np.linalg.norm(points.position.astype(float), axis=1)
        assert (distance <= LIMITS.max_range).all()
        assert (np.abs(points.velocity) <= LIMITS.max_speed).all()
        rejected += points.rejected + parser.bytes_thrown_away
        assert 0 <= parser.bytes_thrown_away <= len(stream)
    assert rejected > 0
