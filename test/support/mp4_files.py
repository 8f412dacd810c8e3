"""MP4 files written box by box, so that a test decides on rotation, times and pixel shape.

Pictures are JPEGs (sample entry ``jpeg``), which every FFmpeg reads: no encoder takes part.
Boxes are those of ISO/IEC 14496-12, section 8.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray

TIMESCALE = 90_000
# Of a track header: how a player turns the stored picture clockwise, as (a, b, c, d).
_TURNS = {0: (1, 0, 0, 1), 90: (0, 1, -1, 0), 180: (-1, 0, 0, -1), 270: (0, -1, 1, 0)}
_ROTATIONS = {
    90: cv2.ROTATE_90_COUNTERCLOCKWISE,
    180: cv2.ROTATE_180,
    270: cv2.ROTATE_90_CLOCKWISE,
}


def write_mp4(
    path: Path,
    pictures: Sequence[NDArray[np.uint8]],
    seconds: Sequence[float],
    turn: int = 0,
    pixel_shape: tuple[int, int] = (1, 1),
    promised: int | None = None,
) -> None:
    """Write pictures as a phone does that is held turned: stored lying, shown upright.

    :param pictures: (H, W, 3) BGR as a player shows them
    :param seconds: how long each is shown
    :param turn: degrees by which a player turns what is stored, clockwise
    :param promised: pictures that the index lists, the missing ones beyond the end of the file
    """
    stored = [cv2.rotate(p, _ROTATIONS[turn]) if turn else p for p in pictures]
    samples = [
        cv2.imencode('.jpg', p, [cv2.IMWRITE_JPEG_QUALITY, 95])[1].tobytes() for p in stored
    ]
    height, width = stored[0].shape[:2]
    ticks = [round(s * TIMESCALE) for s in seconds]
    missing = max((promised or 0) - len(samples), 0)
    sizes = [len(s) for s in samples] + [1000] * missing
    ticks += [ticks[-1]] * missing
    head = _box('ftyp', b'isom', struct.pack('>I', 512), b'isomiso2mp41')
    index = _index(width, height, ticks, sizes, turn, pixel_shape, 0)
    # Offsets have the same length whatever they are.
    index = _index(width, height, ticks, sizes, turn, pixel_shape, len(head) + len(index) + 8)
    path.write_bytes(head + index + _box('mdat', *samples))


def _index(
    width: int,
    height: int,
    ticks: Sequence[int],
    sizes: Sequence[int],
    turn: int,
    pixel_shape: tuple[int, int],
    begin: int,
) -> bytes:
    length = sum(ticks)
    a, b, c, d = (v << 16 for v in _TURNS[turn])
    matrix = struct.pack('>9i', a, b, 0, c, d, 0, 0, 0, 1 << 30)
    upright = struct.pack('>9i', 1 << 16, 0, 0, 0, 1 << 16, 0, 0, 0, 1 << 30)
    movie = struct.pack('>IIIIIIH10x', 0, 0, 0, TIMESCALE, length, 1 << 16, 1 << 8)
    movie += upright + bytes(24) + struct.pack('>I', 2)
    track = struct.pack('>IIIIII8xhhhH', 7, 0, 0, 1, 0, length, 0, 0, 0, 0)
    track += matrix + struct.pack('>II', width << 16, height << 16)
    offsets = [begin + sum(sizes[:n]) for n in range(len(sizes))]
    times = [(len(list(same)), value) for value, same in groupby(ticks)]
    entry = struct.pack('>6xHHH12xHHIIIH32shh', 1, 0, 0, width, height, 72 << 16, 72 << 16, 0, 1,
                        b'', 24, -1)  # fmt: skip
    table = _box(
        'stbl',
        _box(
            'stsd',
            struct.pack('>II', 0, 1),
            _box('jpeg', entry, _box('pasp', struct.pack('>II', *pixel_shape))),
        ),
        _box('stts', struct.pack('>II', 0, len(times)), *(struct.pack('>II', *t) for t in times)),
        _box('stsc', struct.pack('>IIIII', 0, 1, 1, 1, 1)),
        _box('stsz', struct.pack(f'>III{len(sizes)}I', 0, 0, len(sizes), *sizes)),
        _box('stco', struct.pack(f'>II{len(sizes)}I', 0, len(offsets), *offsets)),
    )
    media = _box(
        'mdia',
        _box('mdhd', struct.pack('>IIIIIHH', 0, 0, 0, TIMESCALE, length, 0x55C4, 0)),
        _box('hdlr', struct.pack('>II4s12x', 0, 0, b'vide'), b'\0'),
        _box(
            'minf',
            _box('vmhd', struct.pack('>IHHHH', 1, 0, 0, 0, 0)),
            _box('dinf', _box('dref', struct.pack('>II', 0, 1), _box('url ', b'\0\0\0\1'))),
            table,
        ),
    )
    return _box('moov', _box('mvhd', movie), _box('trak', _box('tkhd', track), media))


def _box(name: str, *parts: bytes) -> bytes:
    content = b''.join(parts)
    return struct.pack('>I4s', 8 + len(content), name.encode('ascii')) + content
