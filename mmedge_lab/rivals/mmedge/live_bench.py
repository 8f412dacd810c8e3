"""Flights played live: this graph beside graphs that wait, overloaded, limited, and described.

All play the same flight with the same networks. A graph that waits has encoders that hold units
until their window ends, and a fusion that decides whole windows; the rest is ours. The floor is
what the latency is at least: the unit that was waited for, encoded and sent at once. An overloaded
camera encoder has a share of the processor that a fraction of the pictures needs; its rival is a
fixed lower rate that fits. With a profile of this machine the optimiser flies, too: while the
processor is taken away in steps, and beside a language model that describes decisions, with the
demand for its time heard and without.
"""

from __future__ import annotations

import math
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import psutil

from mmedge_lab.judging import EvaluationError
from mmedge_lab.judging.accuracy_sums import FIGURES, stream_sums
from mmedge_lab.judging.bench import Bench, BenchRequest, Figure, Results, Row, Subject, Sums
from mmedge_lab.rivals.mmedge.stepped_flight import SHARES, fly_steps, without_saving
from mmedge_ros.core.data_types import CAMERA, NS_PER_S, Decision
from mmedge_ros.core.run_record import RunRecord
from mmedge_ros.monitoring.cpu_limit.limiter import CpuLimiter
from mmedge_ros.monitoring.machine import machine_description
from mmedge_ros.questions.describing import KINDS, NEWEST
from mmedge_ros.replay import ReplayError
from mmedge_ros.replay.live_record import LiveRecord
from mmedge_ros.report.accuracy import accuracy_of
from mmedge_ros.ros.graph.description import OPTIMIZER, NodeDescription
from mmedge_ros.ros.graph.options import GraphOptions
from mmedge_ros.ros.graph.process_group import ProcessGroup
from mmedge_ros.ros.sessions.live_session import Change, replay_live

OURS, BLOCKING, CACHED = 'ours', 'blocking', 'blocking cached'
FLOOR = 'floor: one encode and one hop'
OVERLOADED, FIXED, BUSY = 'overloaded', 'a fixed rate that fits', 'a busy machine'
ADAPTIVE, KEPT = 'with adaptation', 'without'
NO_MODEL = 'no model'
# Groups of rows.
_OVERLOAD, _STEPS, _DESCRIBED = (
    'more pictures than can be encoded',
    f'{", ".join(f"{share:g}" for share in SHARES)} % of the machine',
    'beside a language model',
)
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
# Deadline of decisions where the optimiser flies, s.
LIMIT = 0.1
# So long after the start nothing counts (s); a language model is loaded, and its time gets known.
_STARTING, _MODEL_STARTING = 1.0, 7.0
# Pictures for each that can be encoded, of which the fixed rate takes a share.
FACTOR, _FITS = 3.0, 0.8
_FIRST_SHARE, _LEAST_SHARE, _MOST_SHARE = 10.0, 1.0, 100.0
# The second look corrects the first, which may have limited nothing.
_LOOKS = 2
BUSY_PROCESSES = 4
_FIGURES = {
    'on_time': Figure('on time, %', 'on_time', 'windows', 1, scale=100.0),
    'fresh': Figure('of these fresh, %', 'fresh', 'on_time', 1, scale=100.0),
    'mean': Figure('latency mean, ms', 'latency_sum', 'decisions', 1, relative=True),
    'p50': Figure('p50, ms', 'latency', digits=1, quantile=0.5),
    'p95': Figure('p95, ms', 'latency', digits=1, quantile=0.95),
    'age_p50': Figure('age of the picture p50, ms', 'age', digits=1, quantile=0.5),
    'age_p95': Figure('p95, ms', 'age', digits=1, quantile=0.95),
    'dropped': Figure('windows dropped, %', 'dropped', 'windows', 1, scale=100.0),
    'pictures': Figure('pictures encoded per s', 'camera_hz', digits=0),
    'scans': Figure('scans encoded per s', 'radar_hz', digits=0),
    'processor': Figure('processor s per s', 'processor', digits=2, relative=True),
    'memory': Figure('memory, MB', 'memory', digits=0),
    'changes': Figure('changes a minute', 'changes', 'seconds', 1, scale=60.0),
    'sentences': Figure('sentences in time, %', 'sentences_in_time', 'sentences', 1, scale=100.0),
    'streaming_mean_iou': FIGURES['streaming_mean_iou'],
}
# What goes on beside a graph, by its processes and what is heard of it.
_Beside = Callable[[ProcessGroup, LiveRecord], AbstractContextManager[object]]


def bench(
    request: BenchRequest,
    *,
    repeats: int = 1,
    profile: str = '',
    model: str = '',
    kinds: str = 'count',
    total_limit_s: float = 1.0,
) -> Bench:
    """Play flights live: beside graphs that wait, overloaded, limited and described.

    :param repeats: times each flight is played each way
    :param profile: of this machine, as `mmedge profile` measures it, for rows of the optimiser
    :param model: language model that describes decisions, MODEL.gguf; needs a profile
    :param kinds: of its questions, by commas, each flown by itself
    :param total_limit_s: of decision and sentence
    """
    if model and not profile:
        raise EvaluationError('give the profile of this machine as well: --set profile=FILE')
    wanted = [kind.strip() for kind in kinds.split(',')]
    if not set(wanted) <= set(KINDS):
        raise EvaluationError(f'kinds={kinds!r}: there are {", ".join(KINDS)}')
    flights, detector = request.flights(), request.detector
    subjects = tuple(
        Subject(f'{flight.name}, {number}', flight.path, str(number))
        for number in range(1 if request.quick else repeats)
        for flight in flights
    )
    rows = [Row(name, partial(_waiting, detector, name)) for name in (OURS, CACHED, BLOCKING)]
    overload = partial(_overloaded, detector, flights[0].flight)
    rows += [Row(n, partial(overload, n), group=_OVERLOAD) for n in (OVERLOADED, FIXED)]
    rows.append(Row(BUSY, partial(_busy, detector), group=_OVERLOAD))
    if profile:
        stepped = partial(fly_steps, detector, LIMIT, 6.0 if request.quick else 15.0)
        rows += [
            Row(name, partial(stepped, used), group=_STEPS)
            for name, used in ((ADAPTIVE, profile), (KEPT, ''))
        ]
    if model:
        described = partial(_described, detector, profile, str(Path(model).resolve()))
        asked = {NO_MODEL: ('', 0.0)}
        for kind in wanted:
            asked[f'{kind} with a demand'] = kind, total_limit_s
            asked[f'{kind} without'] = kind, 0.0
        rows += [
            Row(name, partial(described, kind, heard, total_limit_s), group=_DESCRIBED)
            for name, (kind, heard) in asked.items()
        ]
    machine = machine_description()
    return Bench(
        'Flights played live',
        tuple(rows),
        _FIGURES,
        subjects,
        references=(BLOCKING, CACHED),
        about={
            'runs': ', '.join(subject.name for subject in subjects),
            'machine': f'{machine["processor"]}, {machine["cores"]} processors',
            'on time': f'within {_MS * GRACE:g} ms of the deadline',
            'fresh': f'with a picture younger than {FRESH:g} s',
            'overload': f'{FACTOR:g} pictures for each encoded; {BUSY_PROCESSES} busy processes',
        },
        derive=_floor,
        notes=lambda _: () if profile else ('with --set profile=FILE the optimiser flies, too',),
    )


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


# What flies.


@dataclass
class _Flown:
    """A flight that was played: its record, what was heard, and what the graph used."""

    heard: LiveRecord = field(default_factory=LiveRecord)
    record: RunRecord | None = None
    used: list[_Usage] = field(default_factory=list)


class _Usage(NamedTuple):
    """Of encoders and fusion at an instant (s): processor time, s, and memory, MB."""

    at: float
    seconds: float
    memory: float


def _usage(group: ProcessGroup) -> _Usage:
    seconds = memory = 0.0
    for process in (psutil.Process(pid) for n, pid in group.pids.items() if n in _NODES):
        times = process.cpu_times()
        seconds += times.user + times.system
        memory += process.memory_info().rss / 1e6
    return _Usage(time.monotonic(), seconds, memory)


def _nothing(_group: ProcessGroup, _live: LiveRecord) -> AbstractContextManager[object]:
    return nullcontext()


def _fly(options: GraphOptions, change: Change, beside: _Beside = _nothing) -> _Flown:
    """Play a flight through a graph, watched from when it plays.

    :raises ReplayError: when the recording cannot be used or the graph does not run
    """
    flown = _Flown()
    groups: list[ProcessGroup] = []

    @contextmanager
    def watched(group: ProcessGroup, live: LiveRecord) -> Iterator[None]:
        groups.append(group)
        flown.heard = live
        with beside(group, live):
            yield
        flown.used.append(_usage(group))

    def on_progress(_: float, live: LiveRecord) -> None:
        if live.status is not None and not flown.used:
            flown.used.append(_usage(groups[0]))

    flown.record = replay_live(options, on_progress, watched, change)
    return flown


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


def _waiting(detector: str, system: str, subject: Subject) -> Sums:
    options = GraphOptions(bag=str(subject.flight), detector=detector)
    return live_sums(_fly(options, partial(changed, system)))


def _overloaded(detector: str, first: Path, name: str, subject: Subject) -> Sums:
    share, wanted = limit_for(detector, first)
    return live_sums(_limited(detector, subject.flight, share, _FITS * wanted * (name == FIXED)))


@cache
def limit_for(detector: str, flight: Path) -> tuple[float, float]:
    """Return the share of the machine that overloads the encoder, and the pictures it then does.

    :raises ReplayError: if nothing is encoded
    """
    share = _FIRST_SHARE
    for _ in range(_LOOKS):
        record = _limited(detector, flight, share).record
        assert record is not None  # it was flown
        units = record.units[CAMERA]
        if not units.encoded:
            raise ReplayError(f'nothing was encoded of {flight}; this machine is too busy')
        wanted = (units.received - units.thinned) / record.duration / FACTOR
        encoded = units.encoded / record.duration
        share = min(max(share * wanted / encoded, _LEAST_SHARE), _MOST_SHARE)
    return share, wanted


def _limited(detector: str, flight: Path, share: float, rate: float = 0.0) -> _Flown:
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
    return _fly(options, partial(with_parameters, own), beside)


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


def _busy(detector: str, subject: Subject) -> Sums:
    @contextmanager
    def beside(_group: ProcessGroup, _live: LiveRecord) -> Iterator[None]:
        command = [sys.executable, '-c', 'while True: pass']
        processes = [
            subprocess.Popen(command, start_new_session=True) for _ in range(BUSY_PROCESSES)
        ]
        try:
            yield
        finally:
            for process in processes:
                process.kill()
                process.wait()

    options = GraphOptions(bag=str(subject.flight), detector=detector)
    return live_sums(_fly(options, partial(changed, OURS), beside))


def _described(
    detector: str,
    profile: str,
    model: str,
    kind: str,
    heard: float,
    total: float,
    subject: Subject,
) -> Sums:
    """Fly with the optimiser, described by sentences of a kind; '' for none.

    :param heard: limit (s) of which the optimiser hears, 0 for none
    :param total: limit of decision and sentence, s
    """
    own = {'fusion': {'pipeline.windows.deadline': LIMIT}, OPTIMIZER: without_saving()}
    describing = {'model': model, 'describe.kinds': [kind], 'describe.total_limit': heard}
    options = GraphOptions(
        bag=str(subject.flight),
        detector=detector,
        optimise=True,
        profile=profile,
        question_parameters=describing if kind else None,
    )
    flown = _fly(options, partial(with_parameters, own))
    return {
        **live_sums(flown, LIMIT, _MODEL_STARTING),
        **sentence_sums([figures for _, figures in flown.heard.described], total),
    }


# What is counted.


def live_sums(flown: _Flown, deadline: float = math.nan, starting: float = _STARTING) -> Sums:
    """Take from a flight what counts, without its first seconds; times in ms.

    ``floor`` is what each latency is at least, ``age_floor`` the age of the unit that was waited
    for, sensed, encoded and sent at once. Memory and processor are those of encoders and fusion.

    :param deadline: s; NaN is that of the record
    :param starting: s
    :raises ReplayError: when nothing was decided
    """
    record, figures = flown.record, flown.heard.figures
    assert record is not None  # it was flown
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


def sentence_sums(said: Sequence[Mapping[str, str]], total: float) -> Sums:
    """Count the sentences that came in time, by what the node says of itself once a second.

    Of sentences that are made faster than that some lack.

    :param total: limit of decision and sentence, s
    """
    last = {figures['sentences']: float(figures[NEWEST]) / _MS for figures in said}
    seconds = [taken for taken in last.values() if math.isfinite(taken)]
    return {
        'sentences': len(seconds),
        'sentences_in_time': sum(taken <= total for taken in seconds),
    }
