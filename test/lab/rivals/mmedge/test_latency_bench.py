"""The latency bench, from records of each graph to its tables and figure."""

from __future__ import annotations

import json
import os
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from mmedge_lab.rivals.comparison.measured_results import LatencyResult
from mmedge_lab.rivals.comparison.result_files import read_results
from mmedge_lab.rivals.mmedge import latency_bench
from mmedge_lab.rivals.mmedge.graph_usage import GraphUsage, NodeUsage
from mmedge_lab.rivals.mmedge.latency_bench import (
    BLOCKING,
    CACHED,
    OURS,
    SYSTEMS,
    LatencyPlan,
    changed,
    flown_graph,
    latency_report,
    run_latency_bench,
)
from mmedge_lab.rivals.mmedge.latency_table import (
    below_words,
    draw_latency,
    latency_markdown,
    stage_rows,
    table_rows,
)
from mmedge_ros.data_types import CAMERA, RADAR, Decision, StageTiming
from mmedge_ros.records.run_record import RunRecord, UnitCounts
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


@pytest.fixture
def report(monkeypatch: pytest.MonkeyPatch) -> dict[str, object]:
    """The report of records, not of graphs."""
    played: list[str] = []

    def replay(options: GraphOptions, *, beside: Beside, change: Change) -> RunRecord:
        module = change(NodeDescription('camera_encoder', 'unit_encoder')).module
        system = {'encoder': BLOCKING, 'encoder_cached': CACHED}.get(module.split('.')[-1], OURS)
        played.append(system)
        live = LiveRecord()
        live.figures.update(FIGURES)

        with beside(SimpleNamespace(pids={}), live):  # type: ignore[arg-type]
            pass
        return record_of(system)

    monkeypatch.setattr(latency_bench, 'replay_live', replay)
    made = run_latency_bench(Path('a flight'), LatencyPlan(repeats=2), lambda *_: None)
    assert sorted(played) == sorted(2 * SYSTEMS)
    assert played[0] != played[3]
    return made


def test_latency_is_parted_into_what_lay_after_the_end_of_the_window() -> None:
    graph = flown_graph(record_of(OURS), FIGURES, USAGE)
    assert len(graph.latency) == 10
    assert np.allclose(graph.latency, 0.010)
    # Encoding began before the end: only what was left of it counts.
    assert np.allclose(graph.after_end[0], [0.0, 0.0, 0.0, 0.005, 0.001, 0.001, 0.003])
    assert np.allclose(graph.after_end.sum(axis=1), graph.latency)


def test_the_floor_is_one_encode_and_one_hop_after_the_arrival_and_never_above_the_latency() -> (
    None
):
    ours = flown_graph(record_of(OURS), FIGURES, USAGE)
    # Received 10 ms before the end, 15 ms of encoding and 1 ms to fusion.
    assert np.allclose(ours.floor, 0.006)
    assert np.allclose(ours.age_floor, 0.036)
    for system in SYSTEMS:
        graph = flown_graph(record_of(system), FIGURES, USAGE)
        assert (graph.floor <= graph.latency + 1e-12).all()
        assert (graph.age_floor <= graph.age + 1e-12).all()


def test_what_is_ready_long_before_the_end_has_a_floor_of_zero() -> None:
    record = record_of(OURS)
    record.decisions = [decision(100 * n, -10, 3) for n in range(1, 21)]
    assert (flown_graph(record, FIGURES, USAGE).floor == 0.0).all()


def test_encodes_are_those_that_the_encoder_counted() -> None:
    graph = flown_graph(record_of(BLOCKING), FIGURES, USAGE)
    # Five for each picture, of which there were thirty per second.
    assert graph.encodes_hz == {CAMERA: 150.0, RADAR: 20.0}
    assert flown_graph(record_of(OURS), {}, {}).encodes_hz == {CAMERA: 0.0, RADAR: 0.0}


def test_windows_without_a_decision_are_dropped() -> None:
    graph = flown_graph(record_of(OURS), FIGURES, USAGE)
    assert (graph.windows, graph.dropped) == (20, 10)


def test_a_graph_that_decides_nothing_is_said_to_be_too_busy() -> None:
    with pytest.raises(ReplayError, match='too busy'):
        flown_graph(record_of(OURS, 10), FIGURES, USAGE)


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


def test_ours_is_put_beside_each_rival_and_what_the_floor_allows(
    report: dict[str, dict[str, dict[str, float]]],
) -> None:
    below = report['below']
    # 10 ms against 257 and 52, and a floor of 6.
    assert below[BLOCKING]['value'] == pytest.approx(1 - 10 / 257, abs=1e-4)
    assert below[CACHED]['value'] == pytest.approx(1 - 10 / 52, abs=1e-4)
    assert below[CACHED]['floor_allows'] == pytest.approx(1 - 6 / 52, abs=1e-4)
    assert 'below blocking is met' in below_words(report)


def test_a_goal_that_is_not_reached_is_called_missed() -> None:
    slow = [flown_graph(record_of(BLOCKING), FIGURES, USAGE)]
    words = below_words(latency_report(dict.fromkeys(SYSTEMS, slow)))
    assert 'below blocking is missed' in words


def test_what_was_wrong_is_said_of_the_graph_that_it_befell() -> None:
    record = record_of(CACHED)
    record.problems = ['camera: nothing usable']
    flown = {system: [flown_graph(record_of(system), FIGURES, USAGE)] for system in SYSTEMS}
    flown[CACHED] = [flown_graph(record, FIGURES, USAGE)]
    made = latency_report(flown)
    assert made['problems'] == ['blocking_cached, camera: nothing usable']


def test_tables_and_figure_show_the_floor_and_each_graph(report: dict[str, object]) -> None:
    floor, ours, cached, blocking = table_rows(report)
    assert floor[:2] == ['floor: one encode, one hop', '6.0']
    assert [row[0] for row in (ours, cached, blocking)] == ['ours', 'blocking, cached', 'blocking']
    assert [row[1] for row in (ours, cached, blocking)] == ['10.0', '52.0', '257.0']
    assert [row[-1] for row in stage_rows(report)] == ['10.0', '52.0', '257.0']
    assert '| blocking | 257.0 |' in latency_markdown(report, 'mmedge lab bench latency')
    assert draw_latency(report).png.startswith(b'\x89PNG')
    assert json.loads(json.dumps(report, allow_nan=False)) == report


def test_the_comparison_of_policies_takes_the_report(
    report: dict[str, object], tmp_path: Path
) -> None:
    file = tmp_path / 'latency.json'
    file.write_text(json.dumps(report | {'command': 'mmedge lab bench latency F'}))
    result = read_results([file])['latency']
    assert isinstance(result, LatencyResult)
    assert (result.p50, result.floor, result.blocking, result.cached) == (10.0, 6.0, 257.0, 52.0)
    assert result.below_cached == (0.8077, 0.8077, 0.8077)
    assert result.dropped == 0.5


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
