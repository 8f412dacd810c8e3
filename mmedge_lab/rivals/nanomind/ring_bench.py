"""What a raw picture costs from a camera to an encoder: through the ring, and as ROS Image.

Both ends are processes with the nodes' own code and the variables that nodes start with. The two
ways take turns, so that what else the machine does meets both.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from functools import partial
from typing import Any

from mmedge_lab.judging.bench import Bench, BenchRequest, Figure, Row, Subject, Sums
from mmedge_ros import MmedgeError
from mmedge_ros.ros.graph.middleware_profile import node_environment
from mmedge_ros.ros.sessions import picture_ends
from mmedge_ros.ros.sessions.picture_ends import CAMERA, ENCODER, IMAGE, RING, PictureWay

SIZES = {'VGA': (640, 480), '1080p': (1920, 1080)}
WAYS = (RING, IMAGE)
# Pictures per second.
RATE = 30.0
_GRACE = 5.0
_FIGURES = {
    'camera': Figure('camera ms', 'camera', digits=2, relative=True),
    'encoder': Figure('encoder ms', 'encoder', digits=2, relative=True),
    'both': Figure('both ms', 'both', digits=2, relative=True),
    'latency_p50': Figure('latency p50, ms', 'latencies', digits=2, quantile=0.5),
    'latency_p95': Figure('latency p95, ms', 'latencies', digits=2, quantile=0.95),
    'lost': Figure('lost a round', 'lost', digits=1),
}


class BenchError(MmedgeError):
    """One of the two ends broke down."""


def bench(request: BenchRequest, *, rounds: int = 3, seconds: float = 8.0) -> Bench:
    """Measure what a raw picture costs from camera to encoder: through the ring, and as Image.

    :param rounds: measurements of each way, in turn
    :param seconds: length of each
    """
    length = min(seconds, 2.0) if request.quick else seconds
    rows = [
        Row(
            way,
            partial(_measure, PictureWay(way, *size, RATE, f'/ring_bench_{os.getpid()}'), length),
            group=name,
        )
        for name, size in SIZES.items()
        for way in WAYS
    ]
    return Bench(
        'What a raw picture costs from camera to encoder',
        tuple(rows),
        _FIGURES,
        request.repetitions(rounds),
        references=(IMAGE,),
        about={'pictures per second': f'{RATE:g}', 'seconds of a round': f'{length:g}'},
    )


def _measure(of: PictureWay, seconds: float, _: Subject) -> Sums:
    """Return processor times (ms) and latencies (ms) of a round.

    :raises BenchError: if an end breaks down
    """
    with ExitStack() as stack:
        camera = stack.enter_context(_end(CAMERA, of))
        encoder = stack.enter_context(_end(ENCODER, of))
        for process in (camera, encoder):
            _line(process)
        for process in (camera, encoder):
            _figures(process)  # up to here they warmed up
        time.sleep(seconds)
        sent, received = _figures(camera), _figures(encoder)
    ends = {
        name: 1e3 * of_end['processor_s'] / max(of_end['pictures'], 1)
        for name, of_end in (('camera', sent), ('encoder', received))
    }
    return {
        **ends,
        'both': sum(ends.values()),
        'latencies': received['latencies_ms'],
        'lost': sent['pictures'] - received['pictures'],
    }


@contextmanager
def _end(role: str, of: PictureWay) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, '-m', picture_ends.__name__, role, json.dumps(asdict(of))],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, **node_environment()},
    )
    try:
        yield process
        if process.stdin is not None:
            process.stdin.close()
        process.wait(_GRACE)
    finally:
        process.kill()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()


def _line(process: subprocess.Popen[str]) -> str:
    line = process.stdout.readline() if process.stdout is not None else ''
    if not line:
        raise BenchError(f'an end of the bench broke down with exit code {process.wait()}')
    return line


def _figures(process: subprocess.Popen[str]) -> dict[str, Any]:
    if process.stdin is not None:
        process.stdin.write('\n')
        process.stdin.flush()
    figures: dict[str, Any] = json.loads(_line(process))
    return figures
