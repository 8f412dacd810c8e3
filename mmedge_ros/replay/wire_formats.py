"""Messages as they were serialised or received, read without rclpy.

A CDR message begins with four bytes that name its byte order, then std_msgs/Header begins
with its stamp: int32 seconds and uint32 nanoseconds (OMG DDS-RTPS 2.5, section 10).
Odometry is read from its bytes: a flight controller sends a hundred messages a second and more,
and making the 10 objects of one takes several times as long as reading its 13 numbers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from struct import Struct, error
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mmedge_ros.core.data_types import NS_PER_S
from mmedge_ros.geometry.ego_motion import EgoReport, ego_state
from mmedge_ros.monitoring.system_state import SystemState
from mmedge_ros.monitoring.temperature import plausible_temperature
from mmedge_ros.replay import BagError

SYSTEM_STATE = 'mmedge_ros/msg/SystemState'

_HEAD = 4
_STAMP_END = 12
_DOUBLE = 8
_SECONDS_LIMIT = 2**31
_MOST_CORES = 1024
_FASTEST_HZ = 1e11
_MOST_VOLTS, _MOST_AMPERES, _MOST_WATTS = 1e3, 2e3, 1e6


class _Layout:
    """How numbers lie in plain CDR (version 1) of a byte order."""

    def __init__(self, order: str) -> None:
        self.stamp = Struct(f'{order}iI')
        self.begin = Struct(f'{order}iII')  # seconds, nanoseconds, length of the frame's name
        self.length = Struct(f'{order}I')
        # Position and orientation, a covariance (6, 6), linear and angular velocity.
        self.numbers = Struct(f'{order}7d{36 * 8}x6d')


# By the first two bytes; what follows the four of them is aligned from there.
_LAYOUTS = {b'\0\0': _Layout('>'), b'\0\1': _Layout('<')}


def _layout_of(raw: bytes | memoryview, what: str) -> _Layout:
    layout = _LAYOUTS.get(bytes(raw[:2]))
    if layout is None:
        raise BagError(f'these {len(raw)} bytes are no {what}: not in plain CDR')
    return layout


def header_stamp_ns(raw: bytes | memoryview) -> int:
    """Return the stamp of a serialised message that begins with a std_msgs/Header.

    :raises BagError: if these are not the bytes of such a message
    """
    seconds, nanoseconds = _stamp_layout(raw).unpack_from(raw, _HEAD)
    if nanoseconds >= NS_PER_S:
        raise BagError(f'header stamp with {nanoseconds} ns within a second: damaged message')
    return int(seconds * NS_PER_S + nanoseconds)


def with_stamp(raw: bytes | memoryview, stamp_ns: int) -> bytes:
    """Return the message with another header stamp, everything else unchanged.

    :raises BagError: as ``header_stamp_ns``, and if the stamp does not fit its field
    """
    stamp = _stamp_layout(raw).pack(*_stamp_fields(stamp_ns))
    return b''.join((raw[:_HEAD], stamp, raw[_STAMP_END:]))


def with_moved_transforms(raw: bytes | memoryview, offset_ns: int) -> bytes:
    """Return a serialised tf2_msgs/TFMessage with all stamps moved, everything else unchanged.

    :raises BagError: for bytes that are none in plain CDR, and stamps that do not fit
    """
    moved = bytearray(raw)
    layout = _layout_of(raw, 'transforms')
    number = layout.length.size
    try:
        (count,) = layout.length.unpack_from(raw, _HEAD)
        place = _HEAD + number
        for _ in range(count):
            seconds, nanoseconds, length = layout.begin.unpack_from(raw, place)
            stamp = _stamp_fields(seconds * NS_PER_S + nanoseconds + offset_ns)
            layout.stamp.pack_into(moved, place, *stamp)
            place += layout.begin.size + length
            place += -(place - _HEAD) % number
            (length,) = layout.length.unpack_from(raw, place)
            place += number + length
            # Translation and quaternion.
            place += -(place - _HEAD) % _DOUBLE + 7 * _DOUBLE
    except error as err:
        raise BagError(f'these {len(raw)} bytes are no transforms: {err}') from err
    if place > len(raw):
        raise BagError(f'these {len(raw)} bytes are no transforms: cut short')
    return bytes(moved)


def _stamp_fields(stamp_ns: int) -> tuple[int, int]:
    seconds, nanoseconds = divmod(stamp_ns, NS_PER_S)
    if not -_SECONDS_LIMIT <= seconds < _SECONDS_LIMIT:
        raise BagError(f'stamp {stamp_ns} ns does not fit a ROS message (int32 seconds)')
    return seconds, nanoseconds


def _stamp_layout(raw: bytes | memoryview) -> Struct:
    head = bytes(raw[:2])
    if len(raw) < _STAMP_END or head not in _LAYOUTS:
        raise BagError(
            f'{len(raw)} bytes beginning with {head.hex() or "nothing"} are no CDR message '
            'with a header'
        )
    return _LAYOUTS[head].stamp


class RawPicture(NamedTuple):
    """A sensor_msgs/Image in its bytes.

    ``about`` is stamp (ns), width, height, encoding, step and whether it is big-endian;
    ``data`` views the message.
    """

    about: tuple[int, int, int, str, int, bool]
    frame_id: str
    data: NDArray[np.uint8]


def picture_from_bytes(raw: bytes) -> RawPicture:
    """Find the pixels of a serialised sensor_msgs/Image without copying them.

    :raises BagError: for bytes that are none in plain CDR
    """
    layout = _layout_of(raw, 'picture')
    number = layout.length
    try:
        seconds, nanoseconds, length = layout.begin.unpack_from(raw, _HEAD)
        begin = _HEAD + layout.begin.size
        frame_id = raw[begin : begin + length].rstrip(b'\0').decode()
        begin += length + -length % number.size
        (height,), (width,), (length,) = (
            number.unpack_from(raw, begin + at * number.size) for at in range(3)
        )
        begin += 3 * number.size
        encoding = raw[begin : begin + length].rstrip(b'\0').decode()
        begin += length
        is_bigendian = bool(raw[begin])
        begin += 1
        begin += -(begin - _HEAD) % number.size
        (step,), (size,) = (number.unpack_from(raw, begin + at * number.size) for at in range(2))
        data = np.frombuffer(raw, np.uint8, size, begin + 2 * number.size)
    except (error, UnicodeDecodeError, IndexError, ValueError) as err:
        raise BagError(f'these {len(raw)} bytes are no picture: {err}') from err
    stamp_ns = seconds * NS_PER_S + nanoseconds
    return RawPicture((stamp_ns, width, height, encoding, step, is_bigendian), frame_id, data)


def ego_report_from_bytes(raw: bytes, available_ns: int) -> EgoReport:
    """Read where the drone was and how it moved: pose in the header's frame, twist in the child's.

    :raises BagError: for bytes that are no odometry in plain CDR, which is what all middlewares
        of ROS 2 send
    :raises GeometryError: for numbers that are no pose or velocity
    """
    layout = _layout_of(raw, 'odometry')
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
        raise BagError(f'these {len(raw)} bytes are no odometry: {err}') from err
    state = ego_state(
        seconds * NS_PER_S + nanoseconds, (x, y, z), numbers[:4], numbers[4:7], numbers[7:]
    )
    return EgoReport(available_ns, state, frame_id, base_frame)


def _text(raw: bytes, begin: int, length: int) -> str:
    """Read the name of a frame; its length counts the byte of zero at its end."""
    # As tf2 has names; some drivers still begin them with a slash.
    return raw[begin : begin + length].rstrip(b'\0').decode().lstrip('/')


def state_from_message(message: Any) -> SystemState:
    """Return the state in a message; impossible figures are unknown.

    :raises AttributeError, TypeError, ValueError: for another message
    """
    voltage = _within(message.voltage, 0.0, _MOST_VOLTS)
    power = _within(message.power, -_MOST_WATTS, _MOST_WATTS)
    without_battery = math.isnan(voltage)
    return SystemState(
        voltage=voltage,
        current=_within(message.current, -_MOST_AMPERES, _MOST_AMPERES),
        power=math.nan if without_battery else power,
        charge=_within(message.charge, 0.0, 1.0),
        cpu=_each(message.cpu, 100.0),
        gpu=_within(message.gpu, 0.0, 100.0),
        memory=_within(message.memory, 0.0, 100.0),
        temperature=plausible_temperature(float(message.temperature)),
        cpu_clock=_each(message.cpu_clock, _FASTEST_HZ),
        gpu_clock=_within(message.gpu_clock, 0.0, _FASTEST_HZ),
        throttled=bool(message.throttled),
        module_power=power if without_battery else math.nan,
    )


def _each(values: Sequence[Any], most: float) -> tuple[float, ...]:
    return tuple(_within(value, 0.0, most) for value in list(values)[:_MOST_CORES])


def _within(value: Any, least: float, most: float) -> float:
    number = float(value)
    return number if least <= number <= most else math.nan
