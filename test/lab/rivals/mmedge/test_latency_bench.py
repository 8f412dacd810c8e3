"""The latency bench, from records of each graph to its table."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from truth_fixtures import write_short_flights

from mmedge_lab.judging.bench import BenchRequest
from mmedge_lab.judging.bench_table import bench_table
from mmedge_lab.judging.run_bench import judge
from mmedge_lab.rivals.mmedge import latency_bench
from mmedge_lab.rivals.mmedge.latency_bench import (
    BLOCKING,
    CACHED,
    FLOOR,
    OURS,
    STAGES,
    SYSTEMS,
    GraphUsage,
    NodeUsage,
    bench,
    changed,
    graph_sums,
)
from mmedge_ros.core.data_types import CAMERA, RADAR, Decision, StageTiming
from mmedge_ros.core.run_record import RunRecord, UnitCounts
from mmedge_ros.replay import ReplayError
from mmedge_ros.replay.live_record import LiveRecord
from mmedge_ros.ros.graph.description import NodeDescription
from mmedge_ros.ros.graph.options import GraphOptions
from mmedge_ros.ros.sessions.live_session import Beside, Change

MS = 1_000_000
# Of each graph: when a window's work begins after its end, and how long it encodes, ms.
WORK = {OURS: (-10, 15), CACHED: (2, 45), BLOCKING: (2, 250)}


def decision(end_ms: int, begin_ms: int, encode_ms: int) -> Decision:
    """A decision whose last picture was sensed for 20 ms and received 10 ms before the end."""
    instants = [-30, -11, -10, begin_ms, begin_ms + encode_ms]
    instants += [instants[-1] + 1, instants[-1] + 2, instants[-1] + 5]
    stages = ('acquisition', 'transport', 'queue', 'encode', 'transport_features', 'window')
    trail = tuple(
        StageTiming(stage, (end_ms + begin) * MS, (end_ms + end) * MS)
        for stage, begin, end in zip((*stages, 'fusion'), instants[:-1], instants[1:], strict=True)
    )
    newest = {CAMERA: (end_ms - 30) * MS}
    published_ns = (end_ms + instants[-1]) * MS
    return Decision(
        end_ms * MS, end_ms * MS, 'map', (), newest, trail=trail, published_ns=published_ns
    )


def record_of(system: str, decisions: int = 20) -> RunRecord:
    record = RunRecord('a flight', 'live', 0.05, 0.5, 0.1, windows=30, duration=3.0)
    record.decisions = [decision(100 * n, *WORK[system]) for n in range(1, decisions + 1)]
    record.units = {CAMERA: UnitCounts(received=90), RADAR: UnitCounts(received=60)}
    return record


FIGURES = {
    'camera_encoder': {'received': '80', 'encoded': '400'},
    'radar_encoder': {'received': '50', 'encoded': '50'},
}
USAGE = {name: NodeUsage(0.25, 100.0) for name in ('camera_encoder', 'radar_encoder', 'fusion')}


def test_latency_is_parted_into_what_lay_after_the_end_of_the_window() -> None:
    sums = graph_sums(record_of(OURS), FIGURES, USAGE)
    assert sums['latency'] == pytest.approx([10.0] * 10)
    # Encoding began before the end: only what was left of it counts.
    parts = [sums[stage] for stage in STAGES]
    assert parts == pytest.approx([0.0, 0.0, 0.0, 50.0, 10.0, 10.0, 30.0])
    assert sum(parts) == pytest.approx(sums['latency_sum'])  # type: ignore[arg-type]


def test_the_floor_is_one_encode_and_one_hop_after_the_arrival_and_never_above_the_latency() -> (
    None
):
    ours = graph_sums(record_of(OURS), FIGURES, USAGE)
    # Received 10 ms before the end, 15 ms of encoding and 1 ms to fusion.
    assert np.allclose(ours['floor'], 6.0)
    assert np.allclose(ours['age_floor'], 36.0)
    for system in SYSTEMS:
        of = graph_sums(record_of(system), FIGURES, USAGE)
        assert (np.array(of['floor']) <= np.array(of['latency']) + 1e-9).all()
        assert (np.array(of['age_floor']) <= np.array(of['age']) + 1e-9).all()


def test_what_is_ready_long_before_the_end_has_a_floor_of_zero() -> None:
    record = record_of(OURS)
    record.decisions = [decision(100 * n, -10, 3) for n in range(1, 21)]
    assert not np.any(graph_sums(record, FIGURES, USAGE)['floor'])


def test_encodes_are_those_that_the_encoder_counted() -> None:
    sums = graph_sums(record_of(BLOCKING), FIGURES, USAGE)
    # Five for each picture, of which there were thirty per second.
    assert (sums['camera_hz'], sums['radar_hz']) == (150.0, 20.0)
    assert (sums['processor'], sums['memory']) == (0.75, 300.0)
    assert graph_sums(record_of(OURS), {}, {})['camera_hz'] == 0.0


def test_windows_without_a_decision_are_dropped() -> None:
    sums = graph_sums(record_of(OURS), FIGURES, USAGE)
    assert (sums['windows'], sums['dropped']) == (20, 10)


def test_a_graph_that_decides_nothing_is_said_to_be_too_busy() -> None:
    with pytest.raises(ReplayError, match='too busy'):
        graph_sums(record_of(OURS, 10), FIGURES, USAGE)


def test_a_rival_is_the_same_graph_with_other_encoders_and_fusion() -> None:
    fusion = NodeDescription('fusion', 'fusion', {'detector': 'one'})
    encoder = NodeDescription('radar_encoder', 'unit_encoder')
    player = NodeDescription('bag_player', 'bag_player')
    for node in (fusion, encoder, player):
        assert changed(OURS, node) is node
    for system in (BLOCKING, CACHED):
        patient = changed(system, fusion)
        own = {'pipeline.windows.deadline': 2.0, 'pipeline.updates': False}
        assert patient.parameters == {'detector': 'one', **own}
        assert patient.module.endswith('.fusion')
        assert changed(system, encoder).module.startswith('mmedge_lab.rivals.blocking_graph.')
        assert changed(system, player) is player


def test_graphs_take_turns_and_the_floor_is_a_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    played: list[str] = []

    def replay(options: GraphOptions, *, beside: Beside, change: Change) -> RunRecord:
        module = change(NodeDescription('camera_encoder', 'unit_encoder')).module
        system = {'encoder': BLOCKING, 'encoder_cached': CACHED}.get(module.split('.')[-1], OURS)
        played.append(system)
        with beside(SimpleNamespace(pids={}), LiveRecord()):  # type: ignore[arg-type]
            pass
        return record_of(system)

    monkeypatch.setattr(latency_bench, 'replay_live', replay)
    write_short_flights(tmp_path, 1, 1.0)
    made = bench(BenchRequest((tmp_path,)), repeats=2)
    content = bench_table('latency', made, judge(made, tmp_path / 'kept'))
    assert played == [*SYSTEMS, *SYSTEMS[1:], SYSTEMS[0]]
    whole, parts = content['tables']
    means = {row['name']: row['values']['mean']['value'] for row in whole['rows']}
    assert means == pytest.approx({OURS: 10.0, CACHED: 52.0, BLOCKING: 257.0, FLOOR: 6.0})
    assert sum(of['value'] for of in parts['rows'][0]['values'].values()) == pytest.approx(10.0)
    ratio = whole['rows'][0]['against'][BLOCKING]['mean']['value']
    assert ratio == pytest.approx(10.0 / 257.0, abs=1e-4)


def test_usage_is_what_a_process_took_between_the_first_look_and_the_last() -> None:
    usage = GraphUsage(lambda: {'one': os.getpid(), 'gone': 2**22 + 1}, lambda: True)
    usage.look(10.0)
    assert usage.by_node == {}
    sum(number * number for number in range(200_000))
    usage.look(12.0)
    ((name, one),) = usage.by_node.items()
    assert name == 'one'
    assert 0.0 <= one.cpu_share < 5.0
    assert one.memory_mb > 10.0
