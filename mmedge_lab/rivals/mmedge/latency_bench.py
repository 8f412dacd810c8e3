"""Decision latency, live: our graph beside graphs that wait for the end of each window.

All play the same flight with the same networks, rates and levels. A graph that waits has encoders
that hold units until their window ends, and a fusion that decides whole windows; the rest is ours.
The floor is what the latency is at least: the unit that was waited for, encoded and sent at once.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

import psutil

from mmedge_lab.judging.bench import Bench, BenchRequest, Figure, Results, Row, Subject, Sums
from mmedge_lab.worker_processes import OnShare
from mmedge_ros.core.data_types import CAMERA, NS_PER_S, Decision
from mmedge_ros.core.run_record import RunRecord
from mmedge_ros.monitoring.machine import machine_description
from mmedge_ros.replay import ReplayError
from mmedge_ros.replay.live_record import LiveRecord
from mmedge_ros.ros.graph.description import NodeDescription
from mmedge_ros.ros.graph.options import GraphOptions
from mmedge_ros.ros.graph.process_group import ProcessGroup
from mmedge_ros.ros.sessions.live_session import replay_live

OURS, BLOCKING, CACHED, FLOOR = (
    'ours',
    'blocking',
    'blocking, cached',
    'floor: one encode, one hop',
)
SYSTEMS = (OURS, CACHED, BLOCKING)
# What a decision waits for after the end of its window, in this order.
STAGES = {
    'acquisition': 'sensing',
    'transport': 'to the encoder',
    'queue': 'waiting',
    'encode': 'encoding',
    'transport_features': 'to fusion',
    'window': 'closing',
    'fusion': 'fusion',
}
_ENCODERS = {
    BLOCKING: 'mmedge_lab.rivals.blocking_graph.encoder',
    CACHED: 'mmedge_lab.rivals.blocking_graph.encoder_cached',
}
_FUSION = 'mmedge_lab.rivals.blocking_graph.fusion'
# The longest that a window may be waited for, s. Only a lost message makes a graph wait so long.
_PATIENT = 2.0
_MS = 1e3
# Between looks at the processes of a graph, s.
_LOOK = 0.2
_WARM_UP_NS = NS_PER_S
_NODES = ('camera_encoder', 'radar_encoder', 'fusion')
_PARTS = 'parts of the mean latency after the end of the window, ms'
_FIGURES = {
    'mean': Figure('latency mean, ms', 'latency_sum', 'decisions', 1, relative=True),
    'p50': Figure('latency p50, ms', 'latency', digits=1, quantile=0.5),
    'p95': Figure('latency p95, ms', 'latency', digits=1, quantile=0.95),
    'age_p50': Figure('age of the picture p50, ms', 'age', digits=1, quantile=0.5),
    'age_p95': Figure('age of the picture p95, ms', 'age', digits=1, quantile=0.95),
    'pictures': Figure('pictures encoded per s', 'camera_hz', digits=0),
    'scans': Figure('scans encoded per s', 'radar_hz', digits=0),
    'dropped': Figure('windows dropped, %', 'dropped', 'windows', 1, scale=100.0),
    'processor': Figure('processor s per s', 'processor', digits=2, relative=True),
    'memory': Figure('memory, MB', 'memory', digits=0),
    **{name: Figure(words, name, 'parted', 1) for name, words in STAGES.items()},
}


def bench(request: BenchRequest, *, repeats: int = 3) -> Bench:
    """Play a flight live by this graph and by graphs that wait for the end of each window.

    :param repeats: times each graph plays each flight
    """
    subjects = tuple(
        Subject(f'{flight.name}, {number}', flight.path, str(number))
        for number in range(1 if request.quick else repeats)
        for flight in request.flights()
    )
    rows = [
        Row(system, partial(_shown, system, bool(group)), group=group)
        for group in ('', _PARTS)
        for system in SYSTEMS
    ]
    machine = machine_description()
    return Bench(
        'Decision latency, live',
        tuple(rows),
        _FIGURES,
        subjects,
        partial(_flown, request.detector),
        references=(BLOCKING, CACHED),
        about={
            'runs': ', '.join(subject.name for subject in subjects),
            'machine': f'{machine["processor"]}, {machine["cores"]} processors',
        },
        derive=_floor,
    )


def _flown(
    detector: str, subject: Subject, rows: Sequence[Row], on_share: OnShare
) -> dict[str, Sums]:
    """Play a flight through each graph, in turn and in another order each time."""
    systems = list(dict.fromkeys(row.name for row in rows))
    turned = int(subject.seed) % len(systems)
    flown = {}
    for place, system in enumerate((*systems[turned:], *systems[:turned])):
        on_share(place / len(systems))
        flown[system] = fly(subject.flight, detector, system)
    return flown


def _shown(system: str, parts: bool, flown: Mapping[str, Sums]) -> Sums:
    """Return the parts of the mean latency, or all else."""
    own = {*STAGES, 'parted'}
    return {name: value for name, value in flown[system].items() if (name in own) == parts}


def _floor(results: Results) -> Mapping[Row, Sequence[Sums]]:
    if OURS not in results:
        return {}
    floors = [
        {
            'latency': of['floor'],
            'latency_sum': sum(of['floor']),  # type: ignore[arg-type]
            'decisions': of['decisions'],
            'age': of['age_floor'],
        }
        for of in results[OURS]
    ]
    return {Row(FLOOR): floors}


def fly(flight: Path, detector: str, system: str) -> Sums:
    """Play a flight through the graph of a system.

    :raises ReplayError: when the recording cannot be used or the graph does not run
    """
    watched: list[tuple[GraphUsage, LiveRecord]] = []

    @contextmanager
    def beside(group: ProcessGroup, live: LiveRecord) -> Iterator[None]:
        usage = GraphUsage(lambda: group.pids, lambda: live.status is not None)
        watched.append((usage, live))
        with usage:
            yield

    options = GraphOptions(bag=str(flight), detector=detector)
    record = replay_live(options, beside=beside, change=partial(changed, system))
    usage, live = watched[0]
    return graph_sums(record, live.figures, usage.by_node)


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


def graph_sums(
    record: RunRecord,
    figures: Mapping[str, Mapping[str, str]],
    usage: Mapping[str, NodeUsage],
) -> Sums:
    """Take from a record what counts, without its first second; times in ms.

    ``floor`` is what each latency is at least, ``age_floor`` the age of the unit that was waited
    for, sensed, encoded and sent at once. Memory and processor are those of encoders and fusion.

    :param figures: of nodes, by their names
    :raises ReplayError: when nothing was decided
    """
    begun_ns = min((f.available_ns for f in record.features), default=0) + _WARM_UP_NS
    settled = [d for d in record.decisions if d.window_end_ns > begun_ns]
    decisions = [d for d in settled if d.trail]
    if not decisions:
        raise ReplayError(f'nothing was decided of {record.bag}; this machine is too busy')
    windows = record.windows - round(_WARM_UP_NS / (record.stride * NS_PER_S))
    parts = [_after_end(d) for d in decisions]
    used = [usage[node] for node in _NODES if node in usage]
    return {
        'latency': [_MS * d.latency for d in decisions],
        'latency_sum': _MS * sum(d.latency for d in decisions),
        'decisions': len(decisions),
        'parted': len(decisions),
        **{stage: sum(part[stage] for part in parts) for stage in STAGES},
        'floor': [_MS * _floors(d)[0] for d in decisions],
        'age': [_MS * d.ages[CAMERA] for d in decisions if CAMERA in d.ages],
        'age_floor': [_MS * _floors(d)[1] for d in decisions],
        **{
            f'{modality}_hz': _encodes_hz(
                figures.get(f'{modality}_encoder', {}), units.received, record
            )
            for modality, units in record.units.items()
        },
        'windows': windows,
        'dropped': max(windows - len(settled), 0),
        'processor': sum(node.cpu_share for node in used),
        'memory': sum(node.memory_mb for node in used),
    }


def _after_end(decision: Decision) -> dict[str, float]:
    """Return how long each stage lasted after the end of the window, ms: parts of the latency."""
    lasted = dict.fromkeys(STAGES, 0.0)
    for stage in decision.trail:
        begin_ns = max(stage.begin_ns, decision.window_end_ns)
        name = stage.stage if stage.stage in lasted else 'encode'
        lasted[name] += _MS * max(stage.end_ns - begin_ns, 0) / NS_PER_S
    return lasted


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


class NodeUsage(NamedTuple):
    """Processor seconds per second while a node was watched, and the most memory, MB."""

    cpu_share: float
    memory_mb: float


class GraphUsage:
    """Watches processes from when a graph plays; a context manager with a thread of its own.

    :param pids: called for the processes by name
    :param plays: tells whether the graph has begun to play
    """

    def __init__(self, pids: Callable[[], Mapping[str, int]], plays: Callable[[], bool]) -> None:
        self._pids = pids
        self._plays = plays
        # By process: its name, when and with how many seconds it was seen first and last.
        self._seen: dict[int, tuple[str, tuple[float, float], tuple[float, float]]] = {}
        self._memory: dict[str, float] = {}
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> GraphUsage:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    @property
    def by_node(self) -> dict[str, NodeUsage]:
        """What each node used; a node without two looks at it is left out."""
        shares: dict[str, float] = {}
        for name, (begun, before), (ended, after) in self._seen.values():
            if ended > begun:
                shares[name] = (after - before) / (ended - begun)
        return {name: NodeUsage(share, self._memory[name]) for name, share in shares.items()}

    def _watch(self) -> None:
        while not self._ended.wait(_LOOK):
            if self._plays():
                self.look(time.monotonic())

    def look(self, now: float) -> None:
        """Look at every process."""
        for name, pid in self._pids().items():
            try:
                process = psutil.Process(pid)
                times, memory = process.cpu_times(), process.memory_info().rss / 1e6
            except psutil.Error:
                continue
            used = (now, times.user + times.system)
            _, first, _ = self._seen.get(pid, (name, used, used))
            self._seen[pid] = (name, first, used)
            self._memory[name] = max(memory, self._memory.get(name, 0.0))
