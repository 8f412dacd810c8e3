"""Any node may be killed: the others say what is missing and go on, and a new one heals."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from live_graph import Bystander, check_decision, looping

from mmedge_ros.ros.graph.process_group import ProcessGroup
from mmedge_ros.ros.messages.conversions import from_time

WINDOW = 5  # decisions
STRIDE_NS = 100_000_000


class Graph:
    """A graph that plays for ever, and how to hurt it."""

    def __init__(self, group: ProcessGroup, bystander: Bystander, events: list[str]) -> None:
        self.group = group
        self.bystander = bystander
        self.events = events

    def kill(self, name: str) -> None:
        os.kill(self.group.pids[name], signal.SIGKILL)

    def stop(self, name: str) -> float:
        """Stop a process, and return the seconds until it was started again."""
        os.kill(self.group.pids[name], signal.SIGSTOP)
        stopped = time.monotonic()
        self.bystander.wait_until(lambda: f'{name} was started again' in self.events)
        return time.monotonic() - stopped

    def wait_until_healed(self, name: str, decisions: int = 3) -> None:
        """Wait until the node was started again and nothing is missing for a while."""
        bystander = self.bystander
        bystander.wait_until(lambda: f'{name} was started again' in self.events)
        bystander.wait_until(lambda: not bystander.decisions[-1].lost)
        since = len(bystander.decisions)
        bystander.wait_until(
            lambda: (
                [list(d.lost) for d in bystander.decisions[since:]][-decisions:]
                == [[]] * decisions
            )
        )

    def wait_for_log(self, name: str, words: str) -> str:
        """Wait until a node has logged a line with these words, and return it."""

        def line() -> str:
            lines = self.group.log_of(name).read_text().splitlines()
            return next((line for line in lines if words in line), '')

        found: str = self.bystander.wait_until(line)
        return found


@pytest.fixture
def graph(
    little_bag: Path,
    detector: Path,
    bystander: Bystander,
    tmp_path: Path,
    request: pytest.FixtureRequest,
) -> Iterator[Graph]:
    events: list[str] = []
    nodes = looping(little_bag, detector, visualizer=request.param)
    with ProcessGroup(nodes, tmp_path, (), events.append, respawn=request.param) as group:
        bystander.group = group
        bystander.wait_for_decisions(2 * WINDOW)
        yield Graph(group, bystander, events)


@pytest.mark.parametrize('graph', [True], indirect=True, ids=['started again'])
def test_a_killed_or_stopped_node_is_started_again_and_heals_the_graph(graph: Graph) -> None:
    bystander = graph.bystander
    for name, lost in (
        ('camera_encoder', ['camera']),
        ('radar_encoder', ['radar']),
        ('bag_player', ['camera', 'radar']),
    ):
        graph.kill(name)
        since = len(bystander.decisions)
        # A window after the last unit. But whoever publishes to a killed process may hang in
        # the middleware for a second or two, and then its units are missing as well.
        bystander.wait_until(
            lambda lost=lost, since=since: (
                lost in [list(d.lost) for d in bystander.decisions[since:]]
            )
        )
        ends = [from_time(d.window_end) for d in bystander.decisions[since - 1 :]]
        assert {b - a for a, b in pairwise(ends)} == {STRIDE_NS}
        graph.wait_until_healed(name)

    graph.kill('visualizer')
    bystander.wait_until(lambda: 'visualizer was started again' in graph.events)

    graph.kill('fusion')
    decided, encoded = len(bystander.decisions), len(bystander.features)
    bystander.wait_until(lambda: len(bystander.features) > encoded + 20)
    graph.wait_until_healed('fusion')
    assert len(bystander.decisions) > decided
    for message in bystander.decisions:
        check_decision(message)
    assert len(graph.events) == 2 * 5, '\n'.join(graph.events)

    # One that was stopped, as by a debugger, is killed and started again.
    graph.events.clear()
    bystander.wait_for_decisions(5 * WINDOW)
    for name in ('radar_encoder', 'fusion'):
        assert graph.stop(name) < 3.0
        graph.wait_until_healed(name)
    assert [e for e in graph.events if e.endswith('is killed')] == [
        'radar_encoder is stopped; it is killed',
        'fusion is stopped; it is killed',
    ]


@pytest.mark.parametrize('graph', [False], indirect=True, ids=['left alone'])
def test_after_five_seconds_each_node_says_whom_it_misses(graph: Graph) -> None:
    graph.kill('bag_player')
    camera = graph.wait_for_log('camera_encoder', 'no camera input')
    assert 'on /camera/image/compressed for ' in camera
    radar = graph.wait_for_log('radar_encoder', 'no radar input')
    assert 'on /radar/points for ' in radar
    fusion = graph.wait_for_log('fusion', 'no camera input')
    assert 'on /perception/unit_features for ' in fusion
    assert 'published by camera_encoder, radar_encoder, which sends none' in fusion
    # Either of them may be missed first.
    graph.bystander.wait_until(
        lambda: all(
            f'no {modality} input on /perception/unit_features'
            in graph.bystander.diagnostics['fusion'].message
            for modality in ('camera', 'radar')
        )
    )
    assert graph.group.watch() == ['bag_player']
    for name in graph.group.pids:
        assert 'Traceback' not in graph.group.log_of(name).read_text()
