"""Detected points of packets as arrays, many packets at a time.

Positions stay in the radar's own axes: x to the right, y forward, z up.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mmedge_ros.sensing.radar.tlv_packet import (
    DETECTED_POINTS,
    FLOAT_POINT_BYTES,
    INTEGER_POINT_BYTES,
    POINTS_DESCRIPTOR,
    SIDE_INFORMATION,
    TlvPacket,
)

_INTEGER_POINT = np.dtype(
    [('range', '<u2'), ('doppler', '<i2'), ('peak', '<u2'), ('position', '<i2', 3)]
)
_FLOAT_POINT = np.dtype('<f4')
_SIDE = np.dtype([('snr', '<i2'), ('noise', '<i2')])
_TENTH_DB = np.float32(0.1)


class PointLimits(NamedTuple):
    """What the radar can measure at all; points beyond are damaged.

    The defaults are beyond every configuration of these radars. ``range_bins`` and
    ``velocity_step`` (m/s per Doppler bin) belong to points that come with indices; a step of
    NaN leaves their velocity unknown. ``wrapped_bins`` is the number of Doppler bins where the
    SDK counts them from zero instead of from the middle, else 0.
    """

    max_range: float = 1000.0
    max_speed: float = 300.0
    range_bins: int = 1 << 16
    velocity_step: float = float('nan')
    wrapped_bins: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class DetectedPoints:
    """N points of several packets.

    ``packet`` (N,) says which packet of the sequence a point belongs to and ``number`` (N,)
    which of that packet's points it is. ``position`` (N, 3) m; ``velocity`` (N,) m/s, positive
    = receding; ``snr`` and ``noise`` (N,) dB; all float32, NaN where not known.
    ``doppler_index`` (N,) is 0 where the SDK sends none. ``rejected`` points are not among
    them.
    """

    packet: NDArray[np.intp]
    number: NDArray[np.intp]
    position: NDArray[np.float32]
    velocity: NDArray[np.float32]
    doppler_index: NDArray[np.int32]
    snr: NDArray[np.float32]
    noise: NDArray[np.float32]
    rejected: int = 0

    def __len__(self) -> int:
        return len(self.packet)

    def select(self, chosen: NDArray[Any], rejected: int) -> DetectedPoints:
        """Return the chosen points (by mask or by index) and another count of rejected ones."""
        columns: dict[str, Any] = {name: getattr(self, name)[chosen] for name in _COLUMNS}
        return DetectedPoints(**columns, rejected=rejected)


_COLUMNS = tuple(f.name for f in fields(DetectedPoints) if f.name != 'rejected')


def detected_points(
    packets: Sequence[TlvPacket], limits: PointLimits | None = None
) -> DetectedPoints:
    """Return the points of all packets that lie within the limits, in order."""
    limits = limits or PointLimits()
    integer = [n for n, packet in enumerate(packets) if not packet.has_float_points]
    if not integer:
        return _float_points(packets, range(len(packets)), limits)
    if len(integer) == len(packets):
        return _integer_points(packets, integer, limits)
    other = sorted(set(range(len(packets))) - set(integer))
    return _merged(
        _integer_points([packets[n] for n in integer], integer, limits),
        _float_points([packets[n] for n in other], other, limits),
    )


def _integer_points(
    packets: Sequence[TlvPacket], places: Sequence[int], limits: PointLimits
) -> DetectedPoints:
    """SDK 1 and 2: fixed-point positions whose binary point is the packet's own."""
    values, counts, fraction_bits = [], [], []
    for packet in packets:
        tlv = packet.find(DETECTED_POINTS)
        count = bits = 0
        if tlv is not None and tlv.length:
            count, bits = POINTS_DESCRIPTOR.unpack_from(packet.data, tlv.offset)
            begin = tlv.offset + POINTS_DESCRIPTOR.size
            values.append(packet.data[begin : begin + count * INTEGER_POINT_BYTES])
        counts.append(count)
        fraction_bits.append(bits)
    records = np.frombuffer(b''.join(values), _INTEGER_POINT)
    doppler = records['doppler'].astype(np.int32)
    if limits.wrapped_bins:
        doppler[doppler >= limits.wrapped_bins // 2] -= limits.wrapped_bins
    points = DetectedPoints(
        *_places(places, counts),
        records['position'] * _steps(fraction_bits, counts),
        (doppler * limits.velocity_step).astype(np.float32),
        doppler,
        *_side_information(packets, counts),
    )
    return _within(points, limits, records['range'] < limits.range_bins)


def _steps(fraction_bits: Sequence[int], counts: Sequence[int]) -> NDArray[np.float32]:
    """Return what the last bit of each point's position is worth, in m."""
    if len(counts) == 1:
        return np.array([math.ldexp(1.0, -fraction_bits[0])], np.float32)
    steps = np.ldexp(np.float32(1), -np.array(fraction_bits, np.int32))
    return np.repeat(steps, counts)[:, None].astype(np.float32, copy=False)


def _float_points(
    packets: Sequence[TlvPacket], places: Sequence[int], limits: PointLimits
) -> DetectedPoints:
    """SDK 3: x, y, z and velocity in SI units."""
    values, counts = [], []
    for packet in packets:
        tlv = packet.find(DETECTED_POINTS)
        if tlv is None:
            counts.append(0)
        else:
            values.append(packet.data[tlv.offset : tlv.offset + tlv.length])
            counts.append(tlv.length // FLOAT_POINT_BYTES)
    table = np.frombuffer(b''.join(values), _FLOAT_POINT).reshape(-1, 4).astype(np.float32)
    points = DetectedPoints(
        *_places(places, counts),
        table[:, :3],
        table[:, 3],
        np.zeros(len(table), np.int32),
        *_side_information(packets, counts),
    )
    return _within(points, limits, np.isfinite(table[:, 3]))


def _places(
    places: Sequence[int], counts: Sequence[int]
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the packet of every point and its number there."""
    if len(counts) == 1:
        return np.full(counts[0], places[0], np.intp), np.arange(counts[0], dtype=np.intp)
    sizes = np.array(counts, np.intp)
    begins = np.cumsum(sizes) - sizes
    packet = np.repeat(np.array(places, np.intp), sizes)
    return packet, np.arange(len(packet), dtype=np.intp) - np.repeat(begins, sizes)


def _side_information(
    packets: Sequence[TlvPacket], counts: Sequence[int]
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return SNR and noise of every point in dB; NaN where a packet does not hold them all."""
    values, known = [], []
    for packet, count in zip(packets, counts, strict=True):
        tlv = packet.find(SIDE_INFORMATION) if count else None
        length = count * _SIDE.itemsize
        complete = tlv is not None and tlv.length >= length
        if tlv is not None and complete:
            values.append(packet.data[tlv.offset : tlv.offset + length])
        else:
            values.append(bytes(length))
        known.append(complete)
    if not any(known):
        unknown = np.full(sum(counts), np.nan, np.float32)
        return unknown, unknown.copy()
    tenths = np.frombuffer(b''.join(values), '<i2').reshape(-1, 2)
    decibels = tenths * _TENTH_DB
    if not all(known):
        decibels[~np.repeat(np.array(known, bool), counts)] = np.nan
    return decibels[:, 0], decibels[:, 1]


def _within(
    points: DetectedPoints, limits: PointLimits, plausible: NDArray[np.bool_]
) -> DetectedPoints:
    """Leave out what the radar cannot have measured; a comparison with NaN is false."""
    with np.errstate(invalid='ignore'):
        # Squares of float32 fit float64.
        position = points.position.astype(np.float64)
        squared = np.einsum('ij,ij->i', position, position)
        kept = plausible & (squared <= limits.max_range**2)
        kept &= ~(np.abs(points.velocity) > limits.max_speed)
    if kept.all():
        return points
    return points.select(kept, len(kept) - int(np.count_nonzero(kept)))


def _merged(first: DetectedPoints, second: DetectedPoints) -> DetectedPoints:
    """Put points of different SDKs together, in the packets' order."""
    columns: dict[str, Any] = {
        name: np.concatenate([getattr(first, name), getattr(second, name)]) for name in _COLUMNS
    }
    order = np.argsort(columns['packet'], kind='stable')
    return DetectedPoints(**columns).select(order, first.rejected + second.rejected)
