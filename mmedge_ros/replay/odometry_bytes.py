"""Reads nav_msgs/Odometry as it was serialized.

A flight controller sends it a hundred times a second and more, and making the 10 objects of a
message takes several times as long as reading the 13 numbers that are of interest.
"""

from __future__ import annotations

from struct import Struct, error

from mmedge_ros.data_types import NS_PER_S
from mmedge_ros.geometry import GeometryError
from mmedge_ros.geometry.ego_motion import EgoReport, ego_state


class _Layout:
    """How numbers lie in plain CDR (version 1) of a byte order."""

    def __init__(self, order: str) -> None:
        self.begin = Struct(f'{order}iII')  # seconds, nanoseconds, length of the frame's name
        self.length = Struct(f'{order}I')
        # Position and orientation, a covariance (6, 6), linear and angular velocity.
        self.numbers = Struct(f'{order}7d{36 * 8}x6d')


# By the first two bytes; what follows the four of them is aligned from there.
_LAYOUTS = {b'\0\0': _Layout('>'), b'\0\1': _Layout('<')}
_HEAD = 4
_DOUBLE = 8


def ego_report_from_bytes(raw: bytes, available_ns: int) -> EgoReport:
    """Read where the drone was and how it moved: pose in the header's frame, twist in the child's.

    :raises GeometryError: for bytes that are no odometry in plain CDR, which is what all
        middlewares of ROS 2 send, or numbers that are no pose or velocity
    """
    layout = _LAYOUTS.get(raw[:2])
    if layout is None:
        raise GeometryError(f'these {len(raw)} bytes are no odometry: not in plain CDR')
    try:
        seconds, nanoseconds, length = layout.begin.unpack_from(raw, _HEAD)
        begin = _HEAD + layout.begin.size
        frame_id = _text(raw, begin, length)
        begin += length + -length % layout.length.size
        (length,) = layout.length.unpack_from(raw, begin)
        begin += layout.length.size
        base_frame = _text(raw, begin, length)
        begin += length
        begin += -(begin - _HEAD) % _DOUBLE
        x, y, z, *numbers = layout.numbers.unpack_from(raw, begin)
    except (error, UnicodeDecodeError) as err:
        raise GeometryError(f'these {len(raw)} bytes are no odometry: {err}') from err
    state = ego_state(
        seconds * NS_PER_S + nanoseconds, (x, y, z), numbers[:4], numbers[4:7], numbers[7:]
    )
    return EgoReport(available_ns, state, frame_id, base_frame)


def _text(raw: bytes, begin: int, length: int) -> str:
    """Read the name of a frame; its length counts the byte of zero at its end."""
    # As tf2 has names; some drivers still begin them with a slash.
    return raw[begin : begin + length].rstrip(b'\0').decode().lstrip('/')
