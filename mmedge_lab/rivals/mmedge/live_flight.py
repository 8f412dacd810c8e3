"""A flight played live through a graph, ours or a rival's, and what is counted of it."""

from __future__ import annotations

import math
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import psutil

from mmedge_lab.judging.accuracy_sums import stream_sums
from mmedge_lab.judging.bench import Sums
from mmedge_ros.core.data_types import CAMERA, NS_PER_S, Decision
from mmedge_ros.core.run_record import RunRecord
from mmedge_ros.monitoring.cpu_limit.limiter import CpuLimiter
from mmedge_ros.replay import ReplayError
from mmedge_ros.replay.live_record import LiveRecord
from mmedge_ros.report.accuracy import accuracy_of
from mmedge_ros.ros.graph.description import NodeDescription
from mmedge_ros.ros.graph.options import GraphOptions
from mmedge_ros.ros.graph.process_group import ProcessGroup
from mmedge_ros.ros.sessions.live_session import Change, replay_live

OURS, BLOCKING, CACHED = 'ours', 'blocking', 'blocking cached'
_ENCODERS = {
    BLOCKING: 'mmedge_lab.rivals.blocking_graph.encoder',
    CACHED: 'mmedge_lab.rivals.blocking_graph.encoder_cached',
}
_FUSION = 'mmedge_lab.rivals.blocking_graph.fusion'
# The longest that a window may be waited for, s. Only a lost message makes a graph wait so long.
_PATIENT = 2.0
_MS = 1e3
_NODES = ('camera_encoder', 'radar_encoder', 'fusion')
# Beyond the deadline a decision is still on time, and how old its newest camera unit may be (s).
GRACE, FRESH = 0.010, 0.3
# So long after the start nothing counts, s.
_STARTING = 1.0
BUSY_PROCESSES = 4
# What goes on beside a graph, by its processes and what is heard of it.
_Beside = Callable[[ProcessGroup, LiveRecord], AbstractContextManager[object]]


class _Usage(NamedTuple):
    """Of encoders and fusion at an instant (s): processor time, s, and memory, MB."""

    at: float
    seconds: float
    memory: float


class PlayedFlight(NamedTuple):
    """A flight that was played: its record, what was heard, and what the graph used."""

    record: RunRecord
    heard: LiveRecord
    used: Sequence[_Usage]


def _usage(group: ProcessGroup) -> _Usage:
    seconds = memory = 0.0
    for process in (psutil.Process(pid) for n, pid in group.pids.items() if n in _NODES):
        times = process.cpu_times()
        seconds += times.user + times.system
        memory += process.memory_info().rss / 1e6
    return _Usage(time.monotonic(), seconds, memory)


def _nothing(_group: ProcessGroup, _live: LiveRecord) -> AbstractContextManager[object]:
    return nullcontext()


def fly(options: GraphOptions, change: Change, beside: _Beside = _nothing) -> PlayedFlight:
    """Play a flight through a graph, watched from when it plays.

    :raises ReplayError: when the recording cannot be used or the graph does not run
    """
    running: list[tuple[ProcessGroup, LiveRecord]] = []
    used: list[_Usage] = []

    @contextmanager
    def watched(group: ProcessGroup, live: LiveRecord) -> Iterator[None]:
        running.append((group, live))
        with beside(group, live):
            yield
        used.append(_usage(group))

    def on_progress(_: float, live: LiveRecord) -> None:
        if live.status is not None and not used:
            used.append(_usage(running[0][0]))

    record = replay_live(options, on_progress, watched, change)
    return PlayedFlight(record, running[0][1], used)


def changed(system: str, node: NodeDescription) -> NodeDescription:
    """Return the node of a system in place of one of ours; most are ours."""
    if system == OURS:
        return node
    if node.executable == 'unit_encoder':
        return replace(node, module=_ENCODERS[system])
    if node.executable == 'fusion':
        # Between the ends of windows it has nothing to say.
        own = {'pipeline.windows.deadline': _PATIENT, 'pipeline.updates': False}
        return replace(node, module=_FUSION, parameters={**node.parameters, **own})
    return node


def with_parameters(
    own: Mapping[str, Mapping[str, Any]], node: NodeDescription
) -> NodeDescription:
    """Return a node with parameters of its own, by the names of nodes; most have none."""
    return replace(node, parameters={**node.parameters, **own.get(node.name, {})})


def limited(detector: str, flight: Path, share: float, rate: float = 0.0) -> PlayedFlight:
    """Play a flight whose camera encoder has a share of the machine; at a rate, 0 for its own."""

    @contextmanager
    def beside(group: ProcessGroup, live: LiveRecord) -> Iterator[None]:
        pid = group.pids.get(_NODES[0])
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

    own = {_NODES[0]: {'rate': rate}} if rate else {}
    options = GraphOptions(bag=str(flight), detector=detector)
    return fly(options, partial(with_parameters, own), beside)


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


@contextmanager
def beside_busy_processes(_group: ProcessGroup, _live: LiveRecord) -> Iterator[None]:
    """Keep the machine busy with processes of others."""
    command = [sys.executable, '-c', 'while True: pass']
    processes = [subprocess.Popen(command, start_new_session=True) for _ in range(BUSY_PROCESSES)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


def live_sums(
    flown: PlayedFlight, deadline: float = math.nan, starting: float = _STARTING
) -> Sums:
    """Take from a flight what counts, without its first seconds; times in ms.

    ``floor`` is what each latency is at least, ``age_floor`` the age of the unit that was waited
    for, sensed, encoded and sent at once. Memory and processor are those of encoders and fusion.

    :param deadline: s; NaN is that of the record
    :param starting: s
    :raises ReplayError: when nothing was decided
    """
    record, figures = flown.record, flown.heard.figures
    begun_ns = min((f.available_ns for f in record.features), default=0)
    begun_ns += round(starting * NS_PER_S)
    decisions = [d for d in record.decisions if d.window_end_ns > begun_ns]
    if not decisions:
        raise ReplayError(f'nothing was decided of {record.bag}; this machine is too busy')
    windows = max(record.windows - round(starting / record.stride), 1)
    limit = (record.deadline if math.isnan(deadline) else deadline) + GRACE
    on_time = [d for d in decisions if d.latency <= limit]
    accuracy = accuracy_of(record, record.truth, at_once=False) if record.truth else None
    floors = [_floors(d) for d in decisions if d.trail]
    return {
        'windows': windows,
        'dropped': max(windows - len(decisions), 0),
        'decisions': len(decisions),
        'on_time': len(on_time),
        'fresh': sum(d.ages.get(CAMERA, math.inf) < FRESH for d in on_time),
        'latency': [_MS * d.latency for d in decisions],
        'latency_sum': _MS * sum(d.latency for d in decisions),
        'floor': [_MS * latency for latency, _ in floors],
        'age': [_MS * d.ages[CAMERA] for d in decisions if CAMERA in d.ages],
        'age_floor': [_MS * age for _, age in floors],
        **{
            f'{modality}_hz': _encodes_hz(
                figures.get(f'{modality}_encoder', {}), units.received, record
            )
            for modality, units in record.units.items()
        },
        **_used_sums(flown.used),
        **(stream_sums(accuracy.stream) if accuracy else {}),
    }


def _used_sums(used: Sequence[_Usage]) -> dict[str, float]:
    if len(used) < 2:
        return {}
    begun, ended = used[0], used[-1]
    share = (ended.seconds - begun.seconds) / (ended.at - begun.at)
    return {'processor': share, 'memory': ended.memory}


def _floors(decision: Decision) -> tuple[float, float]:
    """Return latency and age of the critical unit, encoded and sent the moment it was there, s."""
    lasted = {stage.stage: (stage.end_ns - stage.begin_ns) / NS_PER_S for stage in decision.trail}
    sensed = lasted.get('acquisition', 0.0) + lasted.get('transport', 0.0)
    age = sensed + lasted.get('encode', 0.0) + lasted.get('transport_features', 0.0)
    before_end = (decision.window_end_ns - decision.trail[0].begin_ns) / NS_PER_S
    return max(age - before_end, 0.0), age


def _encodes_hz(figures: Mapping[str, str], received: int, record: RunRecord) -> float:
    """Return how often an encoder ran per second, by what it counted last."""
    heard = int(figures.get('received', 0))
    each = int(figures.get('encoded', 0)) / heard if heard else 0.0
    return each * received / record.duration if record.duration else 0.0
