"""A live graph that gets more pictures than its camera encoder can encode, or shares the machine.

The processor of the encoder alone is limited, so that its throughput is a fraction of the rate of
the camera; the rest of the graph runs as it would. The same graph at a fixed lower rate that fits
is its rival. Beside foreign busy processes nothing is limited.
"""

from __future__ import annotations

import math
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import yaml

from mmedge_lab.judging.accuracy_sums import FIGURES, stream_sums
from mmedge_lab.judging.bench import Bench, BenchRequest, Figure, Row, Subject, Sums
from mmedge_ros.core.data_types import CAMERA
from mmedge_ros.core.run_record import RunRecord
from mmedge_ros.monitoring.cpu_limit.limiter import CpuLimiter
from mmedge_ros.replay import ReplayError
from mmedge_ros.replay.live_record import LiveRecord
from mmedge_ros.report.accuracy import accuracy_of
from mmedge_ros.ros.graph.options import GraphOptions
from mmedge_ros.ros.graph.process_group import ProcessGroup
from mmedge_ros.ros.sessions.live_session import replay_live

WAYS = OVERLOADED, FIXED, BUSY = 'overloaded', 'fixed rate', 'busy machine'
# Beyond the deadline a decision is still on time, and how old its newest camera unit may be (s).
_GRACE, _FRESH = 0.010, 0.3
# Of what the encoder can do the fixed rate takes so much.
_FITS = 0.8
_FIRST_SHARE, _LEAST_SHARE, _MOST_SHARE = 10.0, 1.0, 100.0
# The second look corrects the first, which may have limited nothing.
_LOOKS = 2
_ENCODER = 'camera_encoder'
_FIGURES = {
    'on_time': Figure('on time, %', 'on_time', 'windows', 1, scale=100.0),
    'fresh': Figure('of these fresh, %', 'fresh', 'on_time', 1, scale=100.0),
    'p95': Figure('p95, ms', 'latency', digits=1, quantile=0.95),
    'ratio': Figure('pictures per encoded', 'received_hz', 'encoded_hz', 2),
    'dropped': Figure('dropped', 'dropped', digits=0),
    'streaming_mean_iou': FIGURES['streaming_mean_iou'],
}


@dataclass(frozen=True)
class OverloadPlan:
    """``factor``: pictures for each that can be encoded; ``busy``: foreign busy processes."""

    detector: str = ''
    factor: float = 3.0
    busy: int = 4


def bench(request: BenchRequest, *, factor: float = 3.0, rounds: int = 1, busy: int = 4) -> Bench:
    """Play flights live with more pictures than can be encoded, and on a busy machine.

    :param factor: pictures for each that can be encoded
    :param rounds: times each flight is played each way
    :param busy: foreign busy processes of the last way
    """
    flights = request.flights()
    plan = OverloadPlan(request.detector, factor, busy)
    first = flights[0].flight
    return Bench(
        'More pictures than can be encoded, and a busy machine, live',
        tuple(Row(name, partial(play, plan, first, name)) for name in WAYS),
        _FIGURES,
        tuple(
            Subject(f'{flight.name}, {number}', flight.path, flight.seed)
            for number in range(1 if request.quick else rounds)
            for flight in flights
        ),
        about={
            'pictures for each encoded': f'{factor:g}',
            'busy processes': busy,
            'on time': f'within {1e3 * _GRACE:g} ms of the deadline',
            'fresh': f'with a picture younger than {_FRESH:g} s',
        },
    )


def play(plan: OverloadPlan, first: Path, name: str, subject: Subject) -> Sums:
    """Play a flight one way.

    :param first: flight on which the throughput of the encoder is measured
    :raises ReplayError: when a recording cannot be used or the graph does not run
    """
    flight = subject.flight
    if name == BUSY:
        return _figures(_busy(flight, plan))
    share, wanted = limit_for(first, plan)
    return _figures(_overloaded(flight, plan, share, _FITS * wanted if name == FIXED else 0.0))


@cache
def limit_for(flight: Path, plan: OverloadPlan) -> tuple[float, float]:
    """Return the share of the machine that overloads the encoder, and the pictures it then does.

    :raises ReplayError: if nothing is encoded
    """
    share = _FIRST_SHARE
    for _ in range(_LOOKS):
        found = _figures(_overloaded(flight, plan, share))
        if not found['encoded_hz']:
            raise ReplayError(f'nothing was encoded of {flight}; this machine is too busy')
        wanted = found['received_hz'] / plan.factor
        share = min(max(share * wanted / found['encoded_hz'], _LEAST_SHARE), _MOST_SHARE)
    return share, wanted


def _overloaded(flight: Path, plan: OverloadPlan, share: float, rate: float = 0.0) -> RunRecord:
    @contextmanager
    def beside(group: ProcessGroup, live: LiveRecord) -> Iterator[None]:
        pid = group.pids.get(_ENCODER)
        if pid is None:
            raise ReplayError(f'{flight} has no camera whose encoder could be limited')
        ended = threading.Event()
        thread = threading.Thread(target=_hold, args=(pid, share, live, ended), daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()

    with tempfile.TemporaryDirectory(prefix='mmedge_') as folder:
        params = ''
        if rate:
            params = f'{folder}/rate.yaml'
            Path(params).write_text(
                yaml.safe_dump({_ENCODER: {'ros__parameters': {'rate': rate}}})
            )
        options = GraphOptions(bag=str(flight), detector=plan.detector, params=params)
        return replay_live(options, beside=beside)


class _Running:
    """A process that the process group started and waits for."""

    def __init__(self, pid: int) -> None:
        self.pid = pid

    def poll(self) -> int | None:
        return None


def _hold(pid: int, share: float, live: LiveRecord, ended: threading.Event) -> None:
    """Limit a process from when the recording plays: nodes start unhindered."""
    while live.status is None and not ended.wait(0.05):
        pass
    if ended.is_set():
        return
    with CpuLimiter(_Running(pid), share) as limiter:
        while not ended.wait(limiter.step()):
            pass


def _busy(flight: Path, plan: OverloadPlan) -> RunRecord:
    @contextmanager
    def beside(_group: ProcessGroup, _live: LiveRecord) -> Iterator[None]:
        command = [sys.executable, '-c', 'while True: pass']
        processes = [subprocess.Popen(command, start_new_session=True) for _ in range(plan.busy)]
        try:
            yield
        finally:
            for process in processes:
                process.kill()
                process.wait()

    return replay_live(GraphOptions(bag=str(flight), detector=plan.detector), beside=beside)


def _figures(record: RunRecord) -> dict[str, Any]:
    """Return what counts of a run, without its first second."""
    decisions = record.decisions[record.warmup :]
    if not decisions:
        raise ReplayError(f'nothing was decided of {record.bag}; this machine is too busy')
    on_time = [d for d in decisions if d.latency <= record.deadline + _GRACE]
    units = record.units[CAMERA]
    accuracy = None if record.truth is None else accuracy_of(record, record.truth)
    return {
        'windows': max(record.windows - record.warmup, 1),
        'on_time': len(on_time),
        'fresh': sum(d.ages.get(CAMERA, math.inf) < _FRESH for d in on_time),
        'latency': [1e3 * d.latency for d in decisions],
        'received_hz': (units.received - units.thinned) / record.duration,
        'encoded_hz': units.encoded / record.duration,
        'dropped': units.dropped,
        **(stream_sums(accuracy.stream) if accuracy else {}),
    }
