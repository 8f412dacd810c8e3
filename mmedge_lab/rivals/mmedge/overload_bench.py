"""A live graph that gets more pictures than its camera encoder can encode, or shares the machine.

The processor of the encoder alone is limited, so that its throughput is a fraction of the rate of
the camera; the rest of the graph runs as it would. The same graph at a fixed lower rate that fits
is its rival. Beside foreign busy processes nothing is limited.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from mmedge_ros.cpu_limit.limiter import CpuLimiter
from mmedge_ros.data_types import CAMERA
from mmedge_ros.records.run_record import RunRecord
from mmedge_ros.replay import ReplayError
from mmedge_ros.replay.live_record import LiveRecord
from mmedge_ros.report.accuracy import accuracy_of
from mmedge_ros.ros.graph.options import GraphOptions
from mmedge_ros.ros.graph.process_group import ProcessGroup
from mmedge_ros.ros.sessions.live_session import replay_live

OVERLOADED, FIXED, BUSY = 'overloaded', 'fixed rate', 'busy machine'
# Beyond the deadline a decision is still on time, and how old its newest camera unit may be (s).
_GRACE, _FRESH = 0.010, 0.3
# Of what the encoder can do the fixed rate takes so much.
_FITS = 0.8
_FIRST_SHARE, _LEAST_SHARE, _MOST_SHARE = 10.0, 1.0, 100.0
# The second look corrects the first, which may have limited nothing.
_LOOKS = 2
_ENCODER = 'camera_encoder'


@dataclass(frozen=True)
class OverloadPlan:
    """``factor``: pictures for each that can be encoded; ``busy``: foreign busy processes."""

    detector: str = ''
    factor: float = 3.0
    rounds: int = 1
    busy: int = 4


def run_overload_bench(
    flights: Sequence[Path], plan: OverloadPlan, on_share: Callable[[float, str], None]
) -> dict[str, Any]:
    """Play every flight overloaded, at a rate that fits and on a busy machine, in each round.

    :param on_share: called with the share that is done, and what comes next
    :raises ReplayError: when a recording cannot be used or the graph does not run
    """
    names = (OVERLOADED, FIXED, BUSY) if plan.busy else (OVERLOADED, FIXED)
    total = _LOOKS + plan.rounds * len(flights) * len(names)
    share = _FIRST_SHARE
    for look in range(_LOOKS):
        on_share(look / total, 'the throughput of the encoder')
        found = _figures(_overloaded(flights[0], plan, share))
        if not found['encoded']:
            raise ReplayError(f'nothing was encoded of {flights[0]}; this machine is too busy')
        wanted = found['received_hz'] / plan.factor
        share = min(max(share * wanted / found['encoded_hz'], _LEAST_SHARE), _MOST_SHARE)
    runs: list[dict[str, Any]] = []
    for number in range(plan.rounds):
        for flight in flights:
            for name in names:
                on_share(
                    (_LOOKS + len(runs)) / total, f'{flight.name}, {name}, round {number + 1}'
                )
                if name == BUSY:
                    record = _busy(flight, plan)
                else:
                    record = _overloaded(
                        flight, plan, share, _FITS * wanted if name == FIXED else 0.0
                    )
                runs.append(
                    {'flight': flight.name, 'run': name, 'round': number + 1, **_figures(record)}
                )
    return {
        'factor': plan.factor,
        'busy_processes': plan.busy,
        'share_percent': share,
        'fixed_hz': _FITS * wanted,
        'grace_ms': 1e3 * _GRACE,
        'fresh_s': _FRESH,
        'rows': [_row(name, [run for run in runs if run['run'] == name]) for name in names],
        'runs': runs,
    }


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
    windows = max(record.windows - record.warmup, 1)
    on_time = [d for d in decisions if d.latency <= record.deadline + _GRACE]
    fresh = [d for d in on_time if d.ages.get(CAMERA, np.inf) < _FRESH]
    ages = 1e3 * np.array([d.ages[CAMERA] for d in decisions if CAMERA in d.ages])
    latencies = 1e3 * np.array([d.latency for d in decisions])
    units = record.units[CAMERA]
    accuracy = None if record.truth is None else accuracy_of(record, record.truth)
    return {
        'windows': windows,
        'on_time': len(on_time) / windows,
        'fresh': len(fresh) / max(len(on_time), 1),
        'latency_p50_ms': float(np.percentile(latencies, 50)),
        'latency_p95_ms': float(np.percentile(latencies, 95)),
        'latency_max_ms': float(latencies.max()),
        'camera_age_p50_ms': float(np.percentile(ages, 50)) if ages.size else None,
        'camera_age_mean_ms': float(ages.mean()) if ages.size else None,
        'received_hz': (units.received - units.thinned) / record.duration,
        'encoded_hz': units.encoded / record.duration,
        'encoded': units.encoded,
        'dropped': units.dropped,
        'streaming_mean_iou': None if accuracy is None else accuracy.stream.mean_iou,
        'problems': record.problems,
    }


def _row(name: str, runs: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the means of a kind of run, the worst p95, and the sums of counts."""
    windows = sum(run['windows'] for run in runs)
    on_time = [run['on_time'] * run['windows'] for run in runs]
    fresh = sum(run['fresh'] * count for run, count in zip(runs, on_time, strict=True))
    ious = [run['streaming_mean_iou'] for run in runs if run['streaming_mean_iou'] is not None]
    received, encoded = (sum(run[key] for run in runs) for key in ('received_hz', 'encoded_hz'))
    return {
        'run': name,
        'windows': windows,
        'on_time': sum(on_time) / windows,
        'fresh': fresh / max(sum(on_time), 1.0),
        'latency_p95_ms': max(run['latency_p95_ms'] for run in runs),
        'pictures_per_encoded': received / encoded if encoded else None,
        'dropped': sum(run['dropped'] for run in runs),
        'streaming_mean_iou': float(np.mean(ious)) if ious else None,
    }
