"""What a packet says of the board that sent it."""

from __future__ import annotations

import struct

import pytest

from mmedge_ros.sensing.radar.tlv_packet import (
    STATISTICS,
    TlvPacket,
    has_float_points,
    is_short_platform,
    platform_name,
)
from mmedge_ros.sensing.radar.tlv_parser import TlvParser
from mmedge_ros.sensing.radar.tlv_writer import BoardIdentity, assemble


def packet(*entries: tuple[int, bytes]) -> TlvPacket:
    (found,) = TlvParser().feed(assemble(BoardIdentity(), 1, 0, entries))
    return found


def test_statistics_are_in_seconds_and_percent() -> None:
    value = struct.pack('<6I', 4281, 9417, 79991, 471, 4, 5)
    statistics = packet((STATISTICS, value)).statistics()
    assert statistics is not None
    assert statistics[:4] == pytest.approx((4.281e-3, 9.417e-3, 79.991e-3, 0.471e-3))
    assert statistics[4:] == (4, 5)


@pytest.mark.parametrize('length', [0, 1, 23])
def test_entries_that_are_too_short_say_nothing(length: int) -> None:
    assert packet((STATISTICS, bytes(length))).statistics() is None
    assert packet().statistics() is None


def test_versions_and_platforms_are_named_as_people_do() -> None:
    assert packet()._replace(version=0x02010004).sdk_version == '2.1.0.4'
    assert (platform_name(0xA1443), platform_name(0xA6843)) == ('xWR14xx', 'xWR68xx')
    assert is_short_platform(0xA1443)
    assert not is_short_platform(0xA1642)
    assert has_float_points(0x03000000)
    assert not has_float_points(0x02FFFFFF)
