"""One packet of TI's mmWave out-of-box demo: header, type-length-value entries, statistics.

Layouts are those of the mmWave SDK 1, 2 and 3 user's guides ("data path: output to host").
All integers are little-endian. A packet is padded to a multiple of 32 bytes.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

MAGIC = bytes((2, 1, 4, 3, 6, 5, 8, 7))

# Eight words follow the magic; xWR14xx leaves out the last one, the subframe number.
HEADER = struct.Struct('<8I')
LONG_HEADER_BYTES = len(MAGIC) + HEADER.size
SHORT_HEADER_BYTES = LONG_HEADER_BYTES - 4
TLV_HEADER = struct.Struct('<2I')
PADDING_BYTES = 32

DETECTED_POINTS = 1
RANGE_PROFILE = 2
STATISTICS = 6
SIDE_INFORMATION = 7

# SDK 1 and 2: number of points and binary point, then the points; SDK 3: only the points.
POINTS_DESCRIPTOR = struct.Struct('<2H')
INTEGER_POINT_BYTES = 12
FLOAT_POINT_BYTES = 16
SIDE_BYTES = 4

_STATISTICS = struct.Struct('<6I')
_FIRST_FLOAT_VERSION = 3


class Tlv(NamedTuple):
    """Where an entry's value lies in its packet."""

    kind: int
    offset: int
    length: int


class Statistics(NamedTuple):
    """Times in seconds and loads in percent that the board reports of itself."""

    processing: float
    transmission: float
    processing_margin: float
    chirp_margin: float
    active_load: int
    idle_load: int


class TlvPacket(NamedTuple):
    """A complete packet whose entries fit its length.

    ``version`` and ``platform`` are the header's words, ``objects`` its number of detected
    objects; ``data`` is the whole packet, magic first and padding included.
    """

    version: int
    platform: int
    frame_number: int
    cpu_cycles: int
    objects: int
    subframe: int
    header_bytes: int
    tlvs: tuple[Tlv, ...]
    data: bytes

    @property
    def sdk_version(self) -> str:
        """The SDK's version as people write it, such as 2.1.0.4."""
        return '.'.join(str(self.version >> shift & 0xFF) for shift in (24, 16, 8, 0))

    @property
    def has_float_points(self) -> bool:
        return has_float_points(self.version)

    def find(self, kind: int) -> Tlv | None:
        return next((tlv for tlv in self.tlvs if tlv.kind == kind), None)

    def statistics(self) -> Statistics | None:
        """Return what the board says of the time it needed, if it says so."""
        tlv = self.find(STATISTICS)
        if tlv is None or tlv.length < _STATISTICS.size:
            return None
        times_us = _STATISTICS.unpack_from(self.data, tlv.offset)
        seconds = [1e-6 * time_us for time_us in times_us[:4]]
        return Statistics(*seconds, *times_us[4:])


def has_float_points(version: int) -> bool:
    """Say whether an SDK of this version word sends points as four float32."""
    return version >> 24 >= _FIRST_FLOAT_VERSION


def is_short_platform(platform: int) -> bool:
    """Say whether this platform's header has no subframe number (xWR14xx)."""
    return platform & 0xFF00 == 0x1400


def platform_name(platform: int) -> str:
    """Name a platform as TI does: 0xA1443 is xWR14xx."""
    return f'xWR{platform >> 8 & 0xFF:02X}xx'
