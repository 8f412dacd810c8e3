"""The bench of overload, from a record of each way to its rows."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
import yaml

from mmedge_lab.judging.bench import Subject, Sums
from mmedge_lab.rivals.mmedge import overload_bench
from mmedge_lab.rivals.mmedge.overload_bench import WAYS, OverloadPlan, limit_for, play
from mmedge_ros.core.data_types import CAMERA, NS_PER_S, Decision
from mmedge_ros.core.run_record import RunRecord, UnitCounts
from mmedge_ros.replay import ReplayError
from mmedge_ros.replay.live_record import LiveRecord
from mmedge_ros.ros.graph.options import GraphOptions
from mmedge_ros.ros.sessions.live_session import Beside

FLIGHT = Path('a flight')


def decision(number: int, latency: float, age: float) -> Decision:
    """The decision of a window that ends a tenth of a second after the one before."""
    end_ns = number * NS_PER_S // 10
    published_ns = end_ns + round(latency * NS_PER_S)
    newest = {CAMERA: published_ns - round(age * NS_PER_S)}
    return Decision(end_ns, end_ns, 'map', (), newest, published_ns=published_ns)


def children() -> set[int]:
    """The processes that this one has started; their command lines may still change."""
    return {child.pid for child in psutil.Process().children()}


class Graph:
    """Takes the place of a live graph: a camera at 30 Hz, an encoder of a process that sleeps."""

    def __init__(self, encoder: int | None = None, encoded: int = 200) -> None:
        self.pids = {} if encoder is None else {'camera_encoder': encoder}
        self.rates: list[float] = []
        self.busy: list[int] = []
        self._encoded = encoded
        self._before = children()

    def replay(self, options: GraphOptions, *, beside: Beside) -> RunRecord:
        """Play nothing; ten windows are decided, one late, one by an old picture, one lost."""
        if not options.params:
            self.rates.append(0.0)
        else:
            given = yaml.safe_load(Path(options.params).read_text())
            self.rates.append(given['camera_encoder']['ros__parameters']['rate'])
        with beside(self, LiveRecord()):  # type: ignore[arg-type]
            self.busy.append(len(children() - self._before))
        record = RunRecord(options.bag, 'live', 0.05, 0.5, 0.1, windows=10, duration=10.0)
        record.decisions = [decision(n, 0.04, 0.2) for n in range(7)]
        record.decisions += [decision(7, 0.07, 0.2), decision(8, 0.04, 0.4)]
        record.units = {CAMERA: UnitCounts(received=300, encoded=self._encoded, dropped=100)}
        return record


@pytest.fixture
def encoder() -> Iterator[int]:
    process = subprocess.Popen([sys.executable, '-c', 'input()'], stdin=subprocess.PIPE)
    yield process.pid
    process.communicate()


@pytest.fixture(autouse=True)
def nothing_is_known_of_the_machine() -> None:
    limit_for.cache_clear()


def play_all(plan: OverloadPlan) -> dict[str, Sums]:
    return {name: play(plan, FLIGHT, name, Subject('a flight', FLIGHT)) for name in WAYS}


def test_each_way_is_played_and_judged(encoder: int, monkeypatch: pytest.MonkeyPatch) -> None:
    graph, plan = Graph(encoder), OverloadPlan(busy=2)
    monkeypatch.setattr(overload_bench, 'replay_live', graph.replay)
    for sums in play_all(plan).values():
        assert (sums['windows'], sums['on_time'], sums['fresh']) == (10, 8, 7)
        assert (sums['received_hz'], sums['encoded_hz']) == (30.0, 20.0)
    # Of 10 pictures that can be encoded per second, 8 are sure to fit.
    assert graph.rates == pytest.approx([0.0, 0.0, 0.0, 8.0, 0.0])
    assert graph.busy == [0, 0, 0, 0, 2]
    # 20 pictures per second are twice too many: half of 10 % of the machine, and again half of it.
    assert limit_for(FLIGHT, plan) == pytest.approx((2.5, 10.0))


def test_an_encoder_that_encodes_nothing_is_named(
    encoder: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(overload_bench, 'replay_live', Graph(encoder, encoded=0).replay)
    with pytest.raises(ReplayError, match='nothing was encoded of a flight'):
        play_all(OverloadPlan())


def test_a_flight_without_a_camera_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(overload_bench, 'replay_live', Graph().replay)
    with pytest.raises(ReplayError, match='a flight has no camera whose encoder'):
        play_all(OverloadPlan())
