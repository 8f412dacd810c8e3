"""How many times faster than a radar's data port the parser takes bytes.

    .venv/bin/python benchmarks/tlv_parser.py [CAPTURE ...]

Prints, for each capture (the recorded ones below MMEDGE_DATA, else a simulated one) and for
pieces of several sizes, the bytes per second of processor time over the 92160 of the port.
Points are decoded as well.
"""

from __future__ import annotations

import os

os.environ['OMP_NUM_THREADS'] = '1'

import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from bench_timing import median_ms

from mmedge_ros.sensing.radar.chirp_configuration import UART_BYTES_PER_S
from mmedge_ros.sensing.radar.tlv_parser import TlvParser
from mmedge_ros.sensing.radar.tlv_points import detected_points
from mmedge_ros.sensing.simulated_board.frames import WalkingPerson

PIECES = (1024, 16_384, 262_144)
BYTES = 4_000_000


def captures() -> Iterator[tuple[str, bytes]]:
    """Yield names and bytes of what is parsed."""
    recorded = Path(os.environ.get('MMEDGE_DATA', '')) / 'ti_tlv'
    paths = [Path(text) for text in sys.argv[1:]] or sorted(recorded.glob('*.dat'))
    for path in paths:
        yield path.name, path.read_bytes()
    if not paths:
        person = WalkingPerson()
        yield 'simulated', b''.join(person.packet(n, 0.05 * n) for n in range(200))


def parse(stream: bytes, piece: int) -> None:
    """Parse a stream and decode its points."""
    parser = TlvParser()
    for begin in range(0, len(stream), piece):
        packets = parser.feed(stream[begin : begin + piece])
        if packets:
            detected_points(packets)


if __name__ == '__main__':
    print(f'{"times the data port, pieces of":44}', *(f'{piece:>8}' for piece in PIECES))
    for name, data in captures():
        stream = data * max(BYTES // len(data), 1)
        seconds = [1e-3 * median_ms(partial(parse, stream, piece), 3, 1) for piece in PIECES]
        factors = [len(stream) / s / UART_BYTES_PER_S for s in seconds]
        print(f'{name:44}', *(f'{factor:8.0f}' for factor in factors))
