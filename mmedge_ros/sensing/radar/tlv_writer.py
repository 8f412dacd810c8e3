"""Writes packets as a radar sends them: for the simulated board and for tests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mmedge_ros.sensing import SensingError
from mmedge_ros.sensing.radar.tlv_packet import (
    DETECTED_POINTS,
    HEADER,
    LONG_HEADER_BYTES,
    MAGIC,
    PADDING_BYTES,
    POINTS_DESCRIPTOR,
    SHORT_HEADER_BYTES,
    SIDE_INFORMATION,
    STATISTICS,
    TLV_HEADER,
    has_float_points,
    is_short_platform,
)

_INTEGER_POINT = np.dtype(
    [('range', '<u2'), ('doppler', '<i2'), ('peak', '<u2'), ('position', '<i2', 3)]
)
POINT_COLUMNS = ('x', 'y', 'z', 'velocity', 'snr', 'noise')


@dataclass(frozen=True)
class BoardIdentity:
    """What a radar says of itself in each packet, and the steps of its integer points.

    ``version`` and ``platform`` are header words. ``range_step`` (m) and ``velocity_step``
    (m/s) make indices of the points' range and velocity in SDK 1 and 2, whose positions have
    ``fraction_bits`` binary places.
    """

    version: int = 0x03060000
    platform: int = 0xA6843
    range_step: float = 0.05
    velocity_step: float = 0.1
    fraction_bits: int = 9


def write_packet(
    board: BoardIdentity,
    frame_number: int,
    points: NDArray[np.float32],
    statistics: Sequence[int] | None = None,
    others: Sequence[tuple[int, bytes]] = (),
) -> bytes:
    """Make a packet of (N, 6) points: x, y, z (TI axes, m), velocity (m/s), snr, noise (dB).

    :param statistics: the six words of the statistics entry (times in us, loads in percent)
    :param others: further entries (kind, value), which come last
    :raises SensingError: if ``points`` is not (N, 6)
    """
    if points.ndim != 2 or points.shape[1] != len(POINT_COLUMNS):
        raise SensingError(f'points have shape {points.shape}; expected (N, {len(POINT_COLUMNS)})')
    entries: list[tuple[int, bytes]] = []
    # A board that found nothing sends no list of points.
    if len(points):
        entries.append((DETECTED_POINTS, _encoded(board, points)))
        if has_float_points(board.version):
            tenths = np.clip(np.rint(10.0 * points[:, 4:]), -32768, 32767).astype('<i2')
            entries.append((SIDE_INFORMATION, tenths.tobytes()))
    if statistics is not None:
        words = np.array(statistics, '<u4')
        entries.append((STATISTICS, words.tobytes()))
    return assemble(board, frame_number, len(points), [*entries, *others])


def assemble(
    board: BoardIdentity, frame_number: int, objects: int, entries: Sequence[tuple[int, bytes]]
) -> bytes:
    """Put entries behind a header and pad the packet."""
    short = is_short_platform(board.platform)
    header_bytes = SHORT_HEADER_BYTES if short else LONG_HEADER_BYTES
    body = b''.join(TLV_HEADER.pack(kind, len(value)) + value for kind, value in entries)
    length = header_bytes + len(body)
    total = -(-length // PADDING_BYTES) * PADDING_BYTES
    cycles = frame_number * 20_000_000 & 0xFFFFFFFF
    words = (
        board.version,
        total,
        board.platform,
        frame_number & 0xFFFFFFFF,
        cycles,
        objects,
        len(entries),
        0,
    )
    header = (MAGIC + HEADER.pack(*words))[:header_bytes]
    return (header + body).ljust(total, b'\x0f')


def _encoded(board: BoardIdentity, points: NDArray[np.float32]) -> bytes:
    """Encode the points as the board's SDK does."""
    if has_float_points(board.version):
        return points[:, :4].astype('<f4').tobytes()
    records = np.zeros(len(points), _INTEGER_POINT)
    distance = np.linalg.norm(points[:, :3], axis=1)
    records['range'] = np.clip(np.rint(distance / board.range_step), 0, 65535)
    records['doppler'] = np.clip(np.rint(points[:, 3] / board.velocity_step), -32768, 32767)
    scaled = np.rint(points[:, :3] * 2.0**board.fraction_bits)
    records['position'] = np.clip(scaled, -32768, 32767)
    return POINTS_DESCRIPTOR.pack(len(points), board.fraction_bits) + records.tobytes()
