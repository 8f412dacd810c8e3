"""Header stamps in serialised messages, without deserialising them.

A CDR message begins with four bytes that name its byte order, then std_msgs/Header begins
with its stamp: int32 seconds and uint32 nanoseconds (OMG DDS-RTPS 2.5, section 10).
"""

from __future__ import annotations

import struct

from mmedge_ros.data_types import NS_PER_S
from mmedge_ros.replay.bag_storage import BagError

_LAYOUTS = {b'\x00\x00': struct.Struct('>iI'), b'\x00\x01': struct.Struct('<iI')}
_STAMP_AT = 4
_STAMP_END = 12
_SECONDS_LIMIT = 2**31


def header_stamp_ns(raw: bytes | memoryview) -> int:
    """Return the stamp of a serialised message that begins with a std_msgs/Header.

    :raises BagError: if these are not the bytes of such a message
    """
    seconds, nanoseconds = _layout(raw).unpack_from(raw, _STAMP_AT)
    if nanoseconds >= NS_PER_S:
        raise BagError(f'header stamp with {nanoseconds} ns within a second: damaged message')
    return int(seconds * NS_PER_S + nanoseconds)


def with_stamp(raw: bytes | memoryview, stamp_ns: int) -> bytes:
    """Return the message with another header stamp, everything else unchanged.

    :raises BagError: as ``header_stamp_ns``, and if the stamp does not fit its field
    """
    seconds, nanoseconds = divmod(stamp_ns, NS_PER_S)
    if not -_SECONDS_LIMIT <= seconds < _SECONDS_LIMIT:
        raise BagError(f'stamp {stamp_ns} ns does not fit a ROS message (int32 seconds)')
    stamp = _layout(raw).pack(seconds, nanoseconds)
    return b''.join((raw[:_STAMP_AT], stamp, raw[_STAMP_END:]))


def _layout(raw: bytes | memoryview) -> struct.Struct:
    head = bytes(raw[:2])
    if len(raw) < _STAMP_END or head not in _LAYOUTS:
        raise BagError(
            f'{len(raw)} bytes beginning with {head.hex() or "nothing"} are no CDR message '
            'with a header'
        )
    return _LAYOUTS[head]
