"""Cuts packets out of the bytes of a radar's data port, however they arrive.

Nothing that comes over the wire raises: what is no complete packet is thrown away and counted.
"""

from __future__ import annotations

from typing import NamedTuple

from mmedge_ros.sensing.radar.tlv_packet import (
    DETECTED_POINTS,
    FLOAT_POINT_BYTES,
    HEADER,
    INTEGER_POINT_BYTES,
    LONG_HEADER_BYTES,
    MAGIC,
    PADDING_BYTES,
    POINTS_DESCRIPTOR,
    SHORT_HEADER_BYTES,
    SIDE_BYTES,
    SIDE_INFORMATION,
    TLV_HEADER,
    Tlv,
    TlvPacket,
    has_float_points,
    is_short_platform,
)

# What claims to be longer is damaged. Several times the largest heat map; three seconds of the
# port's full speed.
MAX_PACKET_BYTES = 1 << 18
MAX_TLVS = 32
# TI's kinds end below 2000.
_MAX_KIND = 0xFFFF

# The end of a packet that lost bytes may hold the beginning of the next one's magic.
_OVERLAP = len(MAGIC) - 1

# As many as there are points; other entries have the same lengths in each packet of a board.
_OF_POINTS = (DETECTED_POINTS, SIDE_INFORMATION)


class _Verdict(NamedTuple):
    """What was found at a magic: a packet, how many bytes are needed to decide, or neither."""

    packet: TlvPacket | None = None
    wanted: int = 0


_DAMAGED = _Verdict()


class TlvParser:
    """Collects bytes and hands out the packets in them.

    The result depends on the bytes alone, not on how they are cut into pieces. A packet with
    points is handed out when the next one begins, or when the line falls silent (`settle`). One
    that claims more bytes than follow it before the next packet begins is given up, and the next
    one is found.

    :param live: a packet is handed out with its last byte if the entries behind its points are
        those of the packet before, which they hardly are where bytes among the points were lost
    :param last_byte_missing: of every packet, as some programs record them; it is taken for 0
    """

    def __init__(self, *, live: bool = False, last_byte_missing: bool = False) -> None:
        self.packets = 0
        self.damaged = 0
        self.short_by_one = 0
        self.bytes_received = 0
        self._live = live
        self._missing = int(last_byte_missing)
        self._packet_bytes = 0
        self._buffer = bytearray()
        self._newest: TlvPacket | None = None
        self._layout: tuple[object, ...] = ()  # of the newest packet that was seen to be whole
        self._at = 0
        self._taken = 0
        self._wanted = 0

    @property
    def bytes_thrown_away(self) -> int:
        """Bytes that belong to no packet, as far as they have been judged."""
        waiting = len(self._buffer) - max(self._at, self._taken)
        return self.bytes_received - self._packet_bytes - waiting

    def feed(self, data: bytes | bytearray | memoryview) -> list[TlvPacket]:
        """Take bytes from the wire and return the packets they complete, in order."""
        self._buffer += data
        self.bytes_received += len(data)
        if len(self._buffer) < self._wanted:
            return []
        return self._take()

    def settle(self) -> list[TlvPacket]:
        """Return a packet that waits only for what follows it: nothing has come for a while."""
        return self._take(silent=True)

    @property
    def last_byte_missing(self) -> bool:
        return bool(self._missing)

    def finish(self) -> list[TlvPacket]:
        """Return the packets in what is left when nothing follows any more."""
        packets = self._take(silent=True, final=True)
        self._at = len(self._buffer)
        self._trim()
        return packets

    def _take(self, *, silent: bool = False, final: bool = False) -> list[TlvPacket]:
        buffer, packets = self._buffer, []
        self._wanted = 0
        while True:
            start = buffer.find(MAGIC, self._at)
            if start < 0:
                self._at = max(self._at, len(buffer) - _OVERLAP)
                break
            self._at = start
            if self._newest is not None and start == self._taken:
                self._layout = _layout(self._newest)
            packet, wanted = self._judge(start, silent=silent, final=final)
            if packet is not None:
                packets.append(packet)
                end = start + len(packet.data) - self._missing
                self._packet_bytes += end - max(start, self._taken)
                self._taken, self._newest = end, packet
                self._at = end - _OVERLAP
            elif wanted and not final:
                self._wanted = start + wanted
                break
            else:
                self.damaged += 1
                self._at = start + 1
        self.packets += len(packets)
        self._trim()
        return packets

    def _trim(self) -> None:
        done = self._at
        del self._buffer[:done]
        self._at = 0
        self._taken -= done
        self._wanted = max(self._wanted - done, 0)

    def _judge(self, start: int, *, silent: bool, final: bool) -> _Verdict:
        """Say what begins at a magic."""
        buffer = self._buffer
        verdict = read_packet(buffer, start, MAX_PACKET_BYTES, self._missing)
        packet = verdict.packet
        if packet is None:
            return verdict
        end = start + len(packet.data) - self._missing
        wait = _Verdict(wanted=end + len(MAGIC) - start)
        # The last bytes and the next ones are a magic: as many bytes of this packet were lost.
        begun, complete = _begun_magic(buffer, end)
        if complete or (final and begun > 1):  # a single byte is nothing rare
            self.short_by_one += begun == 1
            return _DAMAGED
        if begun and not silent:
            return wait
        holds_magic = buffer.find(MAGIC, start + 1, end) >= 0
        proved = self._live and not points_end_packet(packet)
        proved = proved and _layout(packet) == self._layout
        if not holds_magic and (proved or packet.find(DETECTED_POINTS) is None):
            return verdict
        # Either this packet lost bytes and another one begins inside or behind, or its values
        # happen to hold the magic. Then the next packet begins exactly where this one ends, and
        # none inside.
        following = buffer[end : end + len(MAGIC)]
        if len(following) < len(MAGIC) and MAGIC.startswith(following):
            if not silent:
                return wait
        elif following != MAGIC:
            return _DAMAGED
        return _DAMAGED if holds_magic and self._holds_packet(start + 1, end) else verdict

    def _holds_packet(self, begin: int, end: int) -> bool:
        """Say whether a complete packet begins in a part of the buffer."""
        while (begin := self._buffer.find(MAGIC, begin, end)) >= 0:
            verdict = read_packet(self._buffer, begin, MAX_PACKET_BYTES, self._missing)
            if verdict.packet is not None:
                return True
            begin += 1
        return False


def _begun_magic(buffer: bytearray, end: int) -> tuple[int, bool]:
    """Return how many bytes before ``end`` may begin a magic, and whether it is complete."""
    for begun in range(1, len(MAGIC)):
        piece = buffer[end - begun : end - begun + len(MAGIC)]
        if MAGIC.startswith(piece):
            return begun, len(piece) == len(MAGIC)
    return 0, False


def _layout(packet: TlvPacket) -> tuple[object, ...]:
    """Return what is alike in all packets of a board that is not configured anew."""
    side = packet.find(SIDE_INFORMATION)
    fits = side is None or side.length == packet.objects * SIDE_BYTES
    others = [(tlv.kind, tlv.length) for tlv in packet.tlvs if tlv.kind not in _OF_POINTS]
    return (packet.version, packet.platform, packet.header_bytes, fits, *others)


def points_end_packet(packet: TlvPacket) -> bool:
    """Say whether no entry follows the points and what is said of them."""
    return bool(packet.tlvs) and packet.tlvs[-1].kind in _OF_POINTS


def read_packet(
    buffer: bytes | bytearray, start: int, max_packet_bytes: int, missing: int = 0
) -> _Verdict:
    """Read the packet that begins at ``start``, where the magic is.

    ``missing`` bytes at its end were not recorded and are taken for 0.

    The platform says whether the header is short; where the entries do not fit a header of
    that length, the other one is tried.
    """
    available = len(buffer) - start
    if available < LONG_HEADER_BYTES:
        # A short header may be all there is.
        if available < SHORT_HEADER_BYTES:
            return _Verdict(wanted=SHORT_HEADER_BYTES)
        words = HEADER.unpack(bytes(buffer[start + 8 :])[: HEADER.size].ljust(HEADER.size, b'\0'))
    else:
        words = HEADER.unpack_from(buffer, start + 8)
    total, count = words[1], words[6]
    if not SHORT_HEADER_BYTES <= total <= max_packet_bytes or count > MAX_TLVS:
        return _DAMAGED
    first = SHORT_HEADER_BYTES if is_short_platform(words[2]) else LONG_HEADER_BYTES
    verdict = _walk(buffer, start, words, first, missing)
    if verdict is _DAMAGED:
        other = SHORT_HEADER_BYTES + LONG_HEADER_BYTES - first
        verdict = _walk(buffer, start, words, other, missing)
    return verdict


def _walk(
    buffer: bytes | bytearray,
    start: int,
    words: tuple[int, ...],
    header_bytes: int,
    missing: int,
) -> _Verdict:
    """Follow the entries from one to the next; they must end in the packet's padding."""
    version, total, platform, frame, cycles, objects, count, subframe = words
    available = len(buffer) - start
    at = header_bytes
    tlvs = []
    for _ in range(count):
        value = at + 8
        if value > total:
            return _DAMAGED
        if value > available:
            return _Verdict(wanted=value)
        kind, length = TLV_HEADER.unpack_from(buffer, start + at)
        at = value + length
        # There is no kind 0, but a subframe number that is taken for one.
        if at > total or not 0 < kind <= _MAX_KIND:
            return _DAMAGED
        tlvs.append(Tlv(kind, value, length))
    if not 0 <= total - at < PADDING_BYTES:
        return _DAMAGED
    if total - at < missing and tlvs and tlvs[-1].kind in _OF_POINTS:
        return _DAMAGED
    if total - missing > available:
        return _Verdict(wanted=total - missing)
    data = bytes(buffer[start : start + total - missing]) + bytes(missing)
    for tlv in tlvs:
        if tlv.kind == DETECTED_POINTS and not _points_fit(data, tlv, version, objects):
            return _DAMAGED
    packet = TlvPacket(
        version,
        platform,
        frame,
        cpu_cycles=cycles,
        objects=objects,
        subframe=0 if header_bytes == SHORT_HEADER_BYTES else subframe,
        header_bytes=header_bytes,
        tlvs=tuple(tlvs),
        data=data,
    )
    return _Verdict(packet)


def _points_fit(data: bytes, tlv: Tlv, version: int, objects: int) -> bool:
    """Say whether an entry of points holds as many as it and the header claim."""
    if has_float_points(version):
        return tlv.length == objects * FLOAT_POINT_BYTES
    if tlv.length < POINTS_DESCRIPTOR.size:
        return tlv.length == objects == 0
    count, fraction_bits = POINTS_DESCRIPTOR.unpack_from(data, tlv.offset)
    needed = POINTS_DESCRIPTOR.size + count * INTEGER_POINT_BYTES
    return bool(count == objects and needed <= tlv.length and fraction_bits < 16)
