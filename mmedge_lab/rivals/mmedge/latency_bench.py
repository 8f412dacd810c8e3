"""Decision latency, live: our graph beside graphs that wait for the end of each window.

All play the same flight with the same networks, rates and levels. A graph that waits has encoders
that hold units until their window ends, and a fusion that decides whole windows; the rest is ours.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from mmedge_lab.rivals.mmedge.graph_usage import GraphUsage, NodeUsage
from mmedge_ros.data_types import CAMERA, NS_PER_S, Decision, FloatArray
from mmedge_ros.monitoring.machine import machine_description
from mmedge_ros.records.run_record import RunRecord
from mmedge_ros.replay import ReplayError
from mmedge_ros.replay.live_record import LiveRecord
from mmedge_ros.ros.graph.description import NodeDescription
from mmedge_ros.ros.graph.options import GraphOptions
from mmedge_ros.ros.graph.process_group import ProcessGroup
from mmedge_ros.ros.sessions.live_session import replay_live

OURS, BLOCKING, CACHED, FLOOR = 'ours', 'blocking', 'blocking_cached', 'floor'
SYSTEMS = (OURS, CACHED, BLOCKING)
# What a decision waits for after the end of its window, in this order.
STAGES = ('acquisition', 'transport', 'queue', 'encode', 'transport_features', 'window', 'fusion')
WANTED = 0.85
_ENCODERS = {
    BLOCKING: 'mmedge_lab.rivals.blocking_graph.encoder',
    CACHED: 'mmedge_lab.rivals.blocking_graph.encoder_cached',
}
_FUSION = 'mmedge_lab.rivals.blocking_graph.fusion'
# The longest that a window may be waited for, s. Only a lost message makes a graph wait so long.
_PATIENT = 2.0
_MS = 1e3
_WARM_UP_NS = NS_PER_S
_QUANTILES = {'p50': 0.5, 'p95': 0.95}


@dataclass(frozen=True)
class LatencyPlan:
    """``detector``: '' is the default one. Each graph plays the flight ``repeats`` times."""

    detector: str = ''
    repeats: int = 3


class FlownGraph(NamedTuple):
    """What a graph did: samples of each decision after the first second, and what it used.

    ``after_end`` (D, stages) are the parts of the latency, ``floor`` what it is at least: the
    unit that was waited for, encoded and sent at once. ``age`` is that of the newest picture,
    ``age_floor`` that of the unit that was waited for, sensed, encoded and sent at once. All s.
    """

    latency: FloatArray
    after_end: FloatArray
    floor: FloatArray
    age: FloatArray
    age_floor: FloatArray
    encodes_hz: Mapping[str, float]
    windows: int
    dropped: int
    usage: Mapping[str, NodeUsage]
    problems: tuple[str, ...] = ()


def run_latency_bench(
    flight: Path, plan: LatencyPlan, on_share: Callable[[float, str], None]
) -> dict[str, Any]:
    """Play a flight through each graph, in turn and in another order each time.

    :param on_share: called with the share that is done, and what comes next
    :raises ReplayError: when the recording cannot be used or a graph does not run
    """
    flown: dict[str, list[FlownGraph]] = {system: [] for system in SYSTEMS}
    software: Mapping[str, Any] = {}
    for number in range(plan.repeats):
        turned = number % len(SYSTEMS)
        for place, system in enumerate((*SYSTEMS[turned:], *SYSTEMS[:turned])):
            done = (number * len(SYSTEMS) + place) / (plan.repeats * len(SYSTEMS))
            on_share(done, f'{system}, {number + 1} of {plan.repeats}')
            record, graph = fly(flight, plan.detector, system)
            software = record.software
            flown[system].append(graph)
    return {
        'flight': flight.name,
        'machine': machine_description(),
        'software': dict(software),
        **latency_report(flown),
    }


def fly(flight: Path, detector: str, system: str) -> tuple[RunRecord, FlownGraph]:
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
    return record, flown_graph(record, live.figures, usage.by_node)


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


def flown_graph(
    record: RunRecord,
    figures: Mapping[str, Mapping[str, str]],
    usage: Mapping[str, NodeUsage],
) -> FlownGraph:
    """Take from a record what counts, without its first second.

    :param figures: of nodes, by their names
    :raises ReplayError: when nothing was decided
    """
    begun_ns = min((f.available_ns for f in record.features), default=0) + _WARM_UP_NS
    settled = [d for d in record.decisions if d.window_end_ns > begun_ns]
    decisions = [d for d in settled if d.trail]
    if not decisions:
        raise ReplayError(f'nothing was decided of {record.bag}; this machine is too busy')
    windows = record.windows - round(_WARM_UP_NS / (record.stride * NS_PER_S))
    return FlownGraph(
        np.array([d.latency for d in decisions]),
        np.array([_after_end(d) for d in decisions]),
        np.array([_floors(d)[0] for d in decisions]),
        np.array([d.ages[CAMERA] for d in decisions if CAMERA in d.ages]),
        np.array([_floors(d)[1] for d in decisions]),
        {
            modality: _encodes_hz(figures.get(f'{modality}_encoder', {}), units.received, record)
            for modality, units in record.units.items()
        },
        windows,
        max(windows - len(settled), 0),
        usage,
        tuple(record.problems),
    )


def _after_end(decision: Decision) -> list[float]:
    """Return how long each stage lasted after the end of the window, s; the sum is the latency."""
    lasted = dict.fromkeys(STAGES, 0.0)
    for stage in decision.trail:
        begin_ns = max(stage.begin_ns, decision.window_end_ns)
        name = stage.stage if stage.stage in lasted else 'encode'
        lasted[name] += max(stage.end_ns - begin_ns, 0) / NS_PER_S
    return list(lasted.values())


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


def latency_report(flown: Mapping[str, Sequence[FlownGraph]]) -> dict[str, Any]:
    """Return the figures of each system, all of its runs together, and how far ours is below."""
    rows = {system: _row(graphs) for system, graphs in flown.items()}
    floors = [graph.floor for graph in flown[OURS]]
    floor = {
        'latency_ms': _quantiles(floors),
        'camera_age_ms': _quantiles([graph.age_floor for graph in flown[OURS]]),
    }
    means = {system: [float(g.latency.mean()) for g in graphs] for system, graphs in flown.items()}
    return {
        'repeats': len(flown[OURS]),
        'stages': list(STAGES),
        'systems': rows,
        FLOOR: floor,
        'below': {
            rival: _below(means[OURS], means[rival], float(np.concatenate(floors).mean()))
            for rival in (BLOCKING, CACHED)
        },
        'wanted_below_blocking': WANTED,
        'problems': sorted(
            {
                f'{system}, {p}'
                for system, graphs in flown.items()
                for g in graphs
                for p in g.problems
            }
        ),
    }


def _row(graphs: Sequence[FlownGraph]) -> dict[str, Any]:
    stages = np.concatenate([graph.after_end for graph in graphs])
    windows, dropped = (sum(getattr(g, name) for g in graphs) for name in ('windows', 'dropped'))
    nodes = sorted({name for graph in graphs for name in graph.usage})
    return {
        'latency_ms': _quantiles([graph.latency for graph in graphs]),
        'camera_age_ms': _quantiles([graph.age for graph in graphs]),
        # Parts of the mean latency, so that they add up to it.
        'after_end_ms': {
            stage: round(float(_MS * column.mean()), 3)
            for stage, column in zip(STAGES, stages.T, strict=True)
        },
        'encodes_per_s': {
            modality: round(float(np.mean([g.encodes_hz[modality] for g in graphs])), 2)
            for modality in graphs[0].encodes_hz
        },
        'windows': windows,
        'dropped': dropped,
        'dropped_share': round(dropped / windows, 4) if windows else None,
        'memory_mb': {
            name: round(max(g.usage[name].memory_mb for g in graphs if name in g.usage), 1)
            for name in nodes
        },
        'cpu_s_per_s': {
            name: round(
                float(np.mean([g.usage[name].cpu_share for g in graphs if name in g.usage])), 4
            )
            for name in nodes
        },
        'runs': [
            {'latency_ms': _quantiles([graph.latency]), 'dropped': graph.dropped}
            for graph in graphs
        ],
    }


def _quantiles(parts: Sequence[FloatArray]) -> dict[str, float | None]:
    values = _MS * np.concatenate(parts)
    if not len(values):
        return dict.fromkeys(('mean', *_QUANTILES))
    named = {name: float(np.quantile(values, q)) for name, q in _QUANTILES.items()}
    return {
        name: round(value, 3) for name, value in {'mean': float(values.mean()), **named}.items()
    }


def _below(ours: Sequence[float], theirs: Sequence[float], floor: float) -> dict[str, float]:
    """Return by which share of a rival's mean ours is below, with the least and most of runs."""
    runs = [1.0 - mine / other for mine, other in zip(ours, theirs, strict=True)]
    return {
        'value': round(1.0 - float(np.mean(ours)) / float(np.mean(theirs)), 4),
        'least': round(min(runs), 4),
        'most': round(max(runs), 4),
        'floor_allows': round(1.0 - floor / float(np.mean(theirs)), 4),
    }
