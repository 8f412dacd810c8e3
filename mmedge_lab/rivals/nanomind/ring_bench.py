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
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from typing import Any

import numpy as np

from mmedge_ros import MmedgeError
from mmedge_ros.ros.graph.middleware_profile import node_environment
from mmedge_ros.ros.sessions import picture_ends
from mmedge_ros.ros.sessions.picture_ends import CAMERA, ENCODER, IMAGE, RING, PictureWay

SIZES = {'VGA': (640, 480), '1080p': (1920, 1080)}
WAYS = (RING, IMAGE)
_GRACE = 5.0


class BenchError(MmedgeError):
    """One of the two ends broke down."""


def run_ring_bench(
    rounds: int, seconds: float, rate: float, on_share: Callable[[float, str], None]
) -> dict[str, Any]:
    """Measure both ways at every size, in turn.

    :param seconds: how long each way is measured in each round
    :param on_share: called with the share that is done, and what is measured next
    :raises BenchError: if an end breaks down
    """
    runs: list[dict[str, Any]] = []
    for number in range(rounds):
        for name, (width, height) in SIZES.items():
            # The other one first in every second round.
            for way in WAYS if number % 2 == 0 else WAYS[::-1]:
                done = len(runs) / (rounds * len(SIZES) * len(WAYS))
                on_share(done, f'{name} as {way}, round {number + 1} of {rounds}')
                of = PictureWay(way, width, height, rate, f'/ring_bench_{os.getpid()}')
                runs.append({'size': name, 'way': way, **_measure(of, seconds)})
    rows = [_row(runs, size, way) for size in SIZES for way in WAYS]
    return {'rounds': rounds, 'seconds': seconds, 'rate': rate, 'rows': rows, 'runs': runs}


def _measure(of: PictureWay, seconds: float) -> dict[str, Any]:
    with ExitStack() as stack:
        camera = stack.enter_context(_end(CAMERA, of))
        encoder = stack.enter_context(_end(ENCODER, of))
        for process in (camera, encoder):
            _line(process)
        for process in (camera, encoder):
            _figures(process)  # up to here they warmed up
        time.sleep(seconds)
        sent, received = _figures(camera), _figures(encoder)
    latencies = received['latencies_ms']
    return {
        'sent': sent['pictures'],
        'received': received['pictures'],
        'camera_ms': 1e3 * sent['processor_s'] / max(sent['pictures'], 1),
        'encoder_ms': 1e3 * received['processor_s'] / max(received['pictures'], 1),
        'latency_p50_ms': float(np.quantile(latencies, 0.5)) if latencies else None,
        'latency_p95_ms': float(np.quantile(latencies, 0.95)) if latencies else None,
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


def _row(runs: Sequence[Mapping[str, Any]], size: str, way: str) -> dict[str, Any]:
    """Return the median over the rounds; least and most of both ends together."""
    of_it = [run for run in runs if (run['size'], run['way']) == (size, way)]
    both = [run['camera_ms'] + run['encoder_ms'] for run in of_it]

    def median(name: str) -> float:
        return float(np.median([run[name] for run in of_it if run[name] is not None]))

    return {
        'size': size,
        'way': way,
        'camera_ms': median('camera_ms'),
        'encoder_ms': median('encoder_ms'),
        'both_ms': float(np.median(both)),
        'both_least_ms': min(both),
        'both_most_ms': max(both),
        'latency_p50_ms': median('latency_p50_ms'),
        'latency_p95_ms': median('latency_p95_ms'),
        'lost': sum(run['sent'] - run['received'] for run in of_it),
    }
