"""Decodes what was recorded from a radar's data port: a summary, and the points as CSV."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np

from mmedge_ros.sensing import SensingError
from mmedge_ros.sensing.radar.chirp_configuration import ChirpConfiguration
from mmedge_ros.sensing.radar.tlv_packet import TlvPacket, platform_name
from mmedge_ros.sensing.radar.tlv_parser import TlvParser
from mmedge_ros.sensing.radar.tlv_points import DetectedPoints, PointLimits, detected_points

_CHUNK_BYTES = 1 << 20
# Frame numbers that jump farther than this do not count frames that were lost.
_LARGEST_GAP = 10_000
# Enough packets to see whether each lacks its last byte.
_HEAD_BYTES = 1 << 18

LAST_BYTES_MISSING = (
    'every packet lacks its last byte: what recorded them left it out; read with 0 in its place'
)


class CaptureSummary:
    """Counts what a capture holds."""

    def __init__(self) -> None:
        self.frames = 0
        self.points = 0
        self.points_rejected = 0
        self.first: TlvPacket | None = None
        self.last: TlvPacket | None = None
        self.missing_frames = 0
        self.restarts = 0
        self.tlv_kinds: Counter[int] = Counter()
        self.header_bytes: Counter[int] = Counter()
        self.versions: Counter[str] = Counter()
        self.platforms: Counter[str] = Counter()

    def add(self, packets: Iterable[TlvPacket], points: DetectedPoints) -> None:
        self.points += len(points)
        self.points_rejected += points.rejected
        for packet in packets:
            self.frames += 1
            self.tlv_kinds.update(tlv.kind for tlv in packet.tlvs)
            self.header_bytes[packet.header_bytes] += 1
            self.versions[packet.sdk_version] += 1
            self.platforms[platform_name(packet.platform)] += 1
            self.first = self.first or packet
            if self.last is not None:
                self._count_gap(packet.frame_number - self.last.frame_number)
            self.last = packet

    def _count_gap(self, step: int) -> None:
        # The same number again is another subframe, or a repetition.
        if 1 < step <= _LARGEST_GAP:
            self.missing_frames += step - 1
        elif not 0 <= step <= 1:
            self.restarts += 1

    def described(self, parser: TlvParser) -> dict[str, Any]:
        """Return the summary with keys that other programs may rely on."""
        return {
            'frames': self.frames,
            'points': self.points,
            'points_rejected': self.points_rejected,
            'first_frame': self.first.frame_number if self.first else None,
            'last_frame': self.last.frame_number if self.last else None,
            'frame_gaps': self.missing_frames,
            'restarts': self.restarts,
            'tlv_types': {str(kind): self.tlv_kinds[kind] for kind in sorted(self.tlv_kinds)},
            'header_bytes': _most_frequent(self.header_bytes),
            'sdk_version': _most_frequent(self.versions),
            'platform': _most_frequent(self.platforms),
            'bytes': parser.bytes_received,
            'bytes_thrown_away': parser.bytes_thrown_away,
            'notes': [LAST_BYTES_MISSING] if parser.last_byte_missing else [],
        }


def decode_capture(
    path: Path,
    configuration: ChirpConfiguration | None = None,
    points_path: Path | None = None,
    chunk_bytes: int = _CHUNK_BYTES,
) -> dict[str, Any]:
    """Decode a file of bytes from a data port and return its summary.

    :param configuration: gives velocities where the SDK sends indices, and the limits of points
    :param points_path: CSV to write the points to, in the sensor's own axes
    :raises SensingError: if a file cannot be read or written, holds bytes but no packet, or the
        points would replace it
    """
    if points_path is not None and _same_file(path, points_path):
        raise SensingError(f'{points_path} is the recording itself; name another file for points')
    limits = configuration.limits if configuration else PointLimits()
    summary, parser = CaptureSummary(), parser_for(next(_chunks(path, _HEAD_BYTES)))
    with _points_table(points_path, configuration is not None) as table:
        for chunk in _chunks(path, chunk_bytes):
            packets = parser.feed(chunk) if chunk else parser.finish()
            points = detected_points(packets, limits)
            summary.add(packets, points)
            if table is not None:
                table.write(packets, points)
        if parser.bytes_received and not summary.frames:
            raise SensingError(no_packet(path, parser.bytes_received))
    return {'file': str(path), **summary.described(parser)}


def parser_for(head: bytes) -> TlvParser:
    """Return the parser for a capture that begins like this: some lack each packet's last byte."""
    parser = TlvParser()
    packets = len(parser.feed(head))
    return TlvParser(last_byte_missing=parser.short_by_one > max(packets, 1))


def no_packet(path: str | Path, size: int) -> str:
    """Say that a file is no capture, and what to do."""
    return (
        f'{path}: {size} bytes without a packet of the mmWave demo; name a recording of the data '
        'port'
    )


def _chunks(path: Path, size: int) -> Iterator[bytes]:
    """Read a file in pieces; the last piece is empty."""
    try:
        with path.open('rb') as file:
            while chunk := file.read(size):
                yield chunk
    except (OSError, ValueError) as error:
        raise SensingError(f'{path}: {_reason(error)}') from error
    yield b''


class _PointsTable:
    """Writes points as rows; the first ones decide the columns."""

    def __init__(self, file: IO[str], has_velocity_step: bool) -> None:
        self._file = file
        self._has_velocity_step = has_velocity_step
        self._doppler: tuple[str, ...] = ()

    def write(self, packets: list[TlvPacket], points: DetectedPoints) -> None:
        if not self._doppler and packets:
            self._begin(packets[0].has_float_points)
        velocities = [_blank_nan(v) for v in points.velocity.tolist()]
        # The SDK's own unit; whole numbers survive the way through dB.
        snr, noise = (
            [_blank_nan(v) for v in np.rint(10.0 * values).tolist()]
            for values in (points.snr, points.noise)
        )
        doppler = {
            'doppler_index': [
                '' if packets[place].has_float_points else str(index)
                for place, index in zip(
                    points.packet.tolist(), points.doppler_index.tolist(), strict=True
                )
            ],
            'doppler_mps': velocities,
        }
        numbers = [packet.frame_number for packet in packets]
        rows = zip(
            (numbers[place] for place in points.packet.tolist()),
            points.number.tolist(),
            (f'{x:.6g},{y:.6g},{z:.6g}' for x, y, z in points.position.tolist()),
            *(doppler[name] for name in self._doppler),
            snr,
            noise,
            strict=True,
        )
        self._file.writelines(','.join(map(str, row)) + '\n' for row in rows)

    def _begin(self, floats: bool) -> None:
        if floats:
            self._doppler = ('doppler_mps',)
        elif self._has_velocity_step:
            self._doppler = ('doppler_index', 'doppler_mps')
        else:
            self._doppler = ('doppler_index',)
        columns = ['frame', 'point', 'x_m', 'y_m', 'z_m', *self._doppler]
        self._file.write(','.join([*columns, 'snr_0p1dB', 'noise_0p1dB']) + '\n')

    def finish(self) -> None:
        """Write at least the names of the columns."""
        if not self._doppler:
            self._begin(floats=True)


@contextmanager
def _points_table(path: Path | None, has_velocity_step: bool) -> Iterator[_PointsTable | None]:
    """Open a table of points, if one is wanted."""
    if path is None:
        yield None
        return
    try:
        with _replaced(Path(os.path.realpath(path))) as file:
            table = _PointsTable(file, has_velocity_step)
            yield table
            table.finish()
    except (OSError, ValueError) as error:
        if isinstance(error, SensingError):
            raise
        raise SensingError(f'cannot write the points to {path}: {_reason(error)}') from error


@contextmanager
def _replaced(path: Path) -> Iterator[IO[str]]:
    """Open a file that takes the place of ``path`` when it is complete.

    What is no file but a device or a pipe is written to as it is.
    """
    if path.exists() and not path.is_file():
        with path.open('w') as file:
            yield file
        return
    part = path.with_name(f'.{path.name}.{os.getpid()}.part')
    try:
        with part.open('w') as file:
            yield file
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def _same_file(first: Path, second: Path) -> bool:
    try:
        return first.samefile(second)
    except (OSError, ValueError):
        return False  # one of them is not there


def _blank_nan(value: float) -> str:
    return '' if value != value else f'{value:.6g}'  # NaN alone differs


def _most_frequent(counts: Counter[Any]) -> Any:
    return counts.most_common(1)[0][0] if counts else None


def _reason(error: OSError | ValueError) -> str:
    return error.strerror if isinstance(error, OSError) and error.strerror else str(error)
