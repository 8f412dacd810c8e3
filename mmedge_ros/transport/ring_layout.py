"""How a ring lies in shared memory: a header, a table of slots, then their bytes."""

from __future__ import annotations

import struct
from enum import IntEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mmedge_ros.transport import TransportError
from mmedge_ros.transport.shared_segment import SharedSegment

Bytes = NDArray[np.uint8]

MOST_READERS = 8
MOST_SLOTS = 64
# The name of sensor_msgs/Image for rows of float32.
EMBEDDING = '32FC1'

_MAGIC, _VERSION = b'MMEDGERB', 1
_PAGE, _LINE = 4096, 64

_RING = np.dtype(
    [
        ('magic', 'S8'),
        ('version', 'u4'),
        ('slots', 'u4'),
        ('slot_bytes', 'u8'),
        ('newest', 'u8'),  # sequence number
        ('token_budget', 'u4'),  # 0: none
        ('writer', 'u4'),  # process id, as are the readers; 0: none
        ('readers', 'u4', (MOST_READERS,)),
    ]
)
_SLOT = np.dtype(
    [
        ('sequence', 'u8'),
        ('stamp_ns', 'i8'),
        ('size', 'u8'),
        ('tokens', 'u4'),
        ('width', 'u4'),
        ('height', 'u4'),
        ('step', 'u4'),
        ('encoding', 'S16'),
        ('is_bigendian', 'u1'),
        ('state', 'u1'),
        ('readers', 'u1', (MOST_READERS,)),  # their states
        ('leases', 'i8', (MOST_READERS,)),  # when they are over, on the monotonic clock, ns
    ]
)


# The first of these fields at once: numpy takes several times as long for one by one.
_HEADER = struct.Struct('=8xqQIIII16sB')


class SlotState(IntEnum):
    """What a slot is for its writer, or for one reader."""

    FREE = 0
    WRITING = 1
    READY = 2
    READING = 3


class SlotHeader(NamedTuple):
    """What lies in a slot: rows of ``step`` bytes, named as in sensor_msgs/Image.

    An embedding has a row per token, and the encoding ``32FC1``.
    """

    stamp_ns: int
    width: int
    height: int
    encoding: str
    step: int
    is_bigendian: bool = False
    tokens: int = 0


class SlotContent(NamedTuple):
    """Header and bytes (N,) of a slot."""

    header: SlotHeader
    data: Bytes


class RingMemory:
    """A ring's tables as arrays over its segment.

    Of each slot: ``states`` of its writer, ``sequences``, ``tokens``; for each reader (slots,
    MOST_READERS) ``readers``, which are their states, and ``leases``. Of the ring: process ids of
    the readers that are ``attached`` (MOST_READERS,), and the ``newest`` sequence number (1,).
    """

    def __init__(self, segment: SharedSegment, slots: int, slot_bytes: int) -> None:
        self.slot_bytes = slot_bytes
        self._ring = np.frombuffer(segment.memory, _RING, 1)
        self._table = _padded(_RING.itemsize, _LINE)
        self._slots = np.frombuffer(segment.memory, _SLOT, slots, self._table)
        self.attached, self.newest = self._ring['readers'][0], self._ring['newest']
        self.states, self.sequences = self._slots['state'], self._slots['sequence']
        self.readers, self.leases = self._slots['readers'], self._slots['leases']
        self.tokens = self._slots['tokens']
        self._memory = segment.memory

    @classmethod
    def made(
        cls, segment: SharedSegment, slots: int, slot_bytes: int, token_budget: int, writer: int
    ) -> RingMemory:
        """Write the header of a new ring."""
        memory = cls(segment, slots, slot_bytes)
        memory._ring[0] = (_MAGIC, _VERSION, slots, slot_bytes, 0, token_budget, writer, 0)
        return memory

    @classmethod
    def entered(cls, segment: SharedSegment) -> RingMemory:
        """Read the header of a ring.

        :raises TransportError: if it is none, or claims more than the segment has
        """
        if segment.size < _RING.itemsize:
            raise TransportError(f'{segment.name} with {segment.size} bytes is no ring')
        ring = np.frombuffer(segment.memory, _RING, 1)[0]
        slots, slot_bytes = int(ring['slots']), int(ring['slot_bytes'])
        if ring['magic'] != _MAGIC or ring['version'] != _VERSION:
            raise TransportError(f'{segment.name} is no ring of version {_VERSION}')
        if not 2 <= slots <= MOST_SLOTS or ring_size(slots, slot_bytes) > segment.size:
            raise TransportError(
                f'{segment.name} claims {slots} slots of {slot_bytes} bytes in {segment.size}'
            )
        return cls(segment, slots, slot_bytes)

    def bytes_of(self, slot: int, size: int) -> Bytes:
        """View the first bytes of a slot."""
        begin = _first_slot(len(self._slots)) + slot * _padded(self.slot_bytes, _LINE)
        return np.frombuffer(self._memory, np.uint8, size, begin)

    def describe(self, slot: int, header: SlotHeader, size: int) -> None:
        """Enter what a slot holds; its states are not touched.

        :raises TransportError: for an encoding of more than 16 bytes, or too large a number
        """
        encoding = header.encoding.encode()
        if len(encoding) > _SLOT['encoding'].itemsize:
            raise TransportError(f'{header.encoding!r} is too long for the name of an encoding')
        begin = self._table + slot * _SLOT.itemsize
        stamp_ns, width, height, _, step, is_bigendian, tokens = header
        rest = (tokens, width, height, step, encoding, is_bigendian)
        try:
            _HEADER.pack_into(self._memory, begin, stamp_ns, size, *rest)
        except struct.error as err:
            raise TransportError(f'{header} has a number that is too large: {err}') from err

    def header_of(self, slot: int) -> tuple[SlotHeader, int]:
        """Return what a slot says it holds, and in how many bytes.

        :raises TransportError: if that does not fit the slot
        """
        stamp_ns, size, tokens, width, height, step, encoding, is_bigendian = _HEADER.unpack_from(
            self._memory, self._table + slot * _SLOT.itemsize
        )
        name = encoding.rstrip(b'\0').decode('ascii', 'replace')
        header = SlotHeader(stamp_ns, width, height, name, step, bool(is_bigendian), tokens)
        if (
            not 0 < size <= self.slot_bytes
            or header.step * header.height > size
            or header.width > header.step
        ):
            raise TransportError(
                f'slot {slot} claims {header.width} x {header.height} in {size} bytes with step '
                f'{header.step}; a slot has {self.slot_bytes} bytes'
            )
        return header, size


def ring_size(slots: int, slot_bytes: int) -> int:
    """Return the bytes of a whole ring; each slot begins at a line of the cache."""
    return _first_slot(slots) + slots * _padded(slot_bytes, _LINE)


def embedding_of(content: SlotContent) -> NDArray[np.float32]:
    """View a slot as an embedding (tokens, width), float32, without copying.

    :raises TransportError: if it holds something else
    """
    header, data = content
    if header.encoding != EMBEDDING or data.size != 4 * header.width * header.height:
        raise TransportError(
            f'{header.encoding!r}, {header.width} x {header.height} in {data.size} bytes is no '
            'embedding of float32'
        )
    return data.view(np.float32).reshape(header.height, header.width)


def embedding_header(stamp_ns: int, tokens: int, width: int) -> SlotHeader:
    """Describe an embedding (tokens, width) of float32."""
    return SlotHeader(stamp_ns, width, tokens, EMBEDDING, 4 * width, tokens=tokens)


def _first_slot(slots: int) -> int:
    return _padded(_padded(_RING.itemsize, _LINE) + slots * _SLOT.itemsize, _PAGE)


def _padded(size: int, to: int) -> int:
    return -(-size // to) * to
