"""Flights played live each way, from records to rows; no graph is started."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest
from truth_fixtures import write_short_flights

from mmedge_lab.judging import EvaluationError
from mmedge_lab.judging.bench import BenchRequest
from mmedge_lab.judging.bench_table import bench_table
from mmedge_lab.judging.run_bench import judge
from mmedge_lab.rivals.mmedge import live_flight
from mmedge_lab.rivals.mmedge.live_bench import (
    ADAPTIVE,
    BUSY,
    FIXED,
    FLOOR,
    KEPT,
    OVERLOADED,
    bench,
    limit_for,
    sentence_sums,
)
from mmedge_lab.rivals.mmedge.live_flight import BLOCKING, CACHED, OURS, changed
from mmedge_lab.rivals.mmedge.stepped_flight import (
    Step,
    SteppedRecord,
    step_sums,
    without_saving,
)
from mmedge_ros.adaptation.configuration_space import ConfigurationSpace, ModalityOptions
from mmedge_ros.adaptation.optimizer_setup import ConfigurationOptimizerParameters
from mmedge_ros.core.data_types import (
    CAMERA,
    NS_PER_S,
    RADAR,
    Configuration,
    Decision,
    StageTiming,
)
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


class Graphs:
    """In place of live graphs: 90 pictures in 3 s, of which 60 are encoded, 20 of 30 windows."""

    def __init__(self, encoder: int | None, encoded: int = 60) -> None:
        self.pids = {} if encoder is None else {'camera_encoder': encoder}
        self.played: list[tuple[str, float, int]] = []
        self._encoded = encoded
        self._before = self._children()

    @staticmethod
    def _children() -> set[int]:
        return {child.pid for child in psutil.Process().children()}

    def replay(
        self,
        options: GraphOptions,
        on_progress: Callable[[float, LiveRecord], None],
        beside: Beside,
        change: Change,
    ) -> RunRecord:
        node = change(NodeDescription('camera_encoder', 'unit_encoder'))
        system = {'encoder': BLOCKING, 'encoder_cached': CACHED}.get(
            node.module.split('.')[-1], OURS
        )
        live = LiveRecord()
        live.figures['camera_encoder'] = {'received': '80', 'encoded': '400'}
        with beside(self, live):  # type: ignore[arg-type]
            live.status = object()  # type: ignore[assignment]
            on_progress(0.5, live)
            busy = len(self._children() - self._before)
            self.played.append((system, node.parameters.get('rate', 0.0), busy))
        record = RunRecord(options.bag, 'live', 0.05, 0.5, 0.1, windows=30, duration=3.0)
        record.decisions = [decision(100 * n, *WORK[system]) for n in range(1, 21)]
        camera = UnitCounts(received=90, encoded=self._encoded)
        record.units = {CAMERA: camera, RADAR: UnitCounts(received=60)}
        return record


@pytest.fixture
def encoder() -> Iterator[int]:
    process = subprocess.Popen([sys.executable, '-c', 'input()'], stdin=subprocess.PIPE)
    yield process.pid
    process.communicate()


@pytest.fixture(autouse=True)
def nothing_is_known_of_the_machine() -> None:
    limit_for.cache_clear()


def test_each_way_is_played_and_the_floor_is_a_row(
    encoder: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    graphs = Graphs(encoder)
    monkeypatch.setattr(live_flight, 'replay_live', graphs.replay)
    write_short_flights(tmp_path / 'set', 1, 1.0)
    made = bench(BenchRequest((tmp_path / 'set',)))
    whole, overload = bench_table('live', made, judge(made, tmp_path / 'kept'))['tables']
    assert [system for system, _, _ in graphs.played[:3]] == [OURS, CACHED, BLOCKING]
    # 20 pictures are encoded per second, 10 are wanted; of these 8 are sure to fit.
    assert limit_for('', made.subjects[0].flight) == pytest.approx((2.5, 10.0))
    rates = [rate for _, rate, _ in graphs.played[3:]]
    assert rates == pytest.approx([0.0, 0.0, 0.0, 8.0, 0.0])
    assert [busy for _, _, busy in graphs.played[-2:]] == [0, 4]
    rows = {row['name']: row['values'] for row in whole['rows']}
    means = {name: values['mean']['value'] for name, values in rows.items()}
    # Received 10 ms before the end, 15 ms of encoding and 1 ms to fusion: a floor of 6 ms.
    assert means == pytest.approx({OURS: 10.0, CACHED: 52.0, BLOCKING: 257.0, FLOOR: 6.0})
    assert rows[FLOOR]['age_p50']['value'] == 36.0
    # Without the first second 10 of 20 windows are decided; blocking ones are late.
    assert (rows[OURS]['on_time']['value'], rows[BLOCKING]['on_time']['value']) == (50.0, 0.0)
    assert rows[OURS]['dropped']['value'] == 50.0
    # Five encodes for each picture, of which there were thirty per second.
    assert rows[BLOCKING]['pictures']['value'] == 150.0
    assert rows[OURS]['memory']['value'] > 1.0
    ratio = whole['rows'][0]['against'][BLOCKING]['mean']['value']
    assert ratio == pytest.approx(10.0 / 257.0, abs=1e-4)
    assert [row['name'] for row in overload['rows']] == [OVERLOADED, FIXED, BUSY]


def test_what_cannot_be_overloaded_is_named(encoder: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_flight, 'replay_live', Graphs(encoder, encoded=0).replay)
    with pytest.raises(ReplayError, match='nothing was encoded of a flight'):
        limit_for('', Path('a flight'))
    monkeypatch.setattr(live_flight, 'replay_live', Graphs(None).replay)
    with pytest.raises(ReplayError, match='a flight has no camera whose encoder'):
        limit_for('', Path('a flight'))


def test_a_graph_that_waits_is_the_same_with_other_encoders_and_fusion() -> None:
    fusion = NodeDescription('fusion', 'fusion', {'detector': 'one'})
    player = NodeDescription('bag_player', 'bag_player')
    assert changed(OURS, fusion) is fusion
    for system in (BLOCKING, CACHED):
        patient = changed(system, fusion)
        own = {'pipeline.windows.deadline': 2.0, 'pipeline.updates': False}
        assert patient.parameters == {'detector': 'one', **own}
        assert patient.module.endswith('.fusion')
        assert changed(system, player) is player


def test_rows_of_the_optimiser_need_a_profile(tmp_path: Path) -> None:
    write_short_flights(tmp_path / 'set', 1, 1.0)
    request = BenchRequest((tmp_path / 'set',))
    names = [row.name for row in bench(request, profile='p', model='m', kinds='count,status').rows]
    assert names[6:8] == [ADAPTIVE, KEPT]
    assert names[9:] == [
        f'{kind} {heard}' for kind in ('count', 'status') for heard in ('with a demand', 'without')
    ]
    with pytest.raises(EvaluationError, match='profile of this machine'):
        bench(request, model='m')
    with pytest.raises(EvaluationError, match='there are'):
        bench(request, kinds='riddle')


def test_each_sentence_counts_once_by_when_it_came_after_its_window() -> None:
    said = [
        {'sentences': str(number), 'newest sentence (ms)': newest}
        for newest, number in (('nan', 0), ('950', 1), ('950', 1), ('1010', 2), ('980', 4))
    ]
    assert sentence_sums(said, 1.0) == {'sentences': 3, 'sentences_in_time': 2}


def at(seconds: float) -> int:
    return round((1_000 + seconds) * NS_PER_S)


def test_decisions_count_from_two_seconds_after_a_step_and_another_reason_is_no_change() -> None:
    space = ConfigurationSpace([ModalityOptions('camera', (10.0, 30.0), ('small', 'large'), '')])
    record = SteppedRecord()
    record.decisions = [
        Decision(at(n / 10), at(n / 10), 'odom', (), {}, published_ns=at(n / 10 + latency))
        for first, last, latency in ((1, 100, 0.05), (101, 198, 0.15))
        for n in range(first, last + 1)
    ]
    record.configurations = [
        Configuration(number, at(seconds), space.parts(place), 0.1, 0.05, reason=reason)
        for number, seconds, place, reason in ((1, -5, 3, ''), (2, 5, 3, 'other'), (3, 12, 0, ''))
    ]
    record.steps = [Step(at(0.0), at(10.0)), Step(at(10.0), at(20.0))]
    sums = step_sums(record, 0.1)
    # A window without a decision is late, too.
    assert (sums['windows'], sums['on_time'], len(sums['latency'])) == (160, 80, 158)  # type: ignore[arg-type]
    assert (sums['changes'], sums['seconds']) == (1, 20.0)


def test_parameters_of_an_optimiser_that_saves_nothing_exist() -> None:
    parameters = ConfigurationOptimizerParameters()
    for name in without_saving():
        of: object = parameters
        for part in name.split('.'):
            of = getattr(of, part)
