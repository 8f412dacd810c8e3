"""`mmedge up` says what nodes report as errors: once, from its cause, and when it is over."""

from __future__ import annotations

from typing import Any

import pytest
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus

from mmedge_ros.ros.input_watch import DOUBLED
from mmedge_ros.ros.sessions.fault_lines import FaultLines

SILENT = 'no camera input on /camera/image for 5 s: it has no publisher'
CONSEQUENCE = 'no camera input on /perception/unit_features for 5 s; published by camera_encoder'


class Graph:
    """Nodes that report, and what is said of them."""

    def __init__(self, tells_inputs: bool = False) -> None:
        self.said: list[str] = []
        self.has_begun = True
        node: Any = self
        self._lines = FaultLines(node, self.said.append, lambda: self.has_begun, tells_inputs)

    def create_subscription(self, *_: Any) -> None:
        pass

    def report(self, name: str, words: str, level: bytes = DiagnosticStatus.ERROR) -> None:
        status = DiagnosticStatus(level=level, name=f'mmedge_ros: {name}', message=words)
        self._lines.take(DiagnosticArray(status=[status]))

    def heal(self, name: str) -> None:
        self.report(name, 'running', DiagnosticStatus.OK)


@pytest.fixture
def graph() -> Graph:
    return Graph()


def test_an_error_is_said_once_however_long_it_lasts_and_when_it_is_over(graph: Graph) -> None:
    graph.heal('camera_encoder')
    for seconds in (5, 6, 7):
        graph.report('camera_encoder', SILENT.replace('5', str(seconds)))
    graph.report('camera_encoder', 'no camera input on /camera/image for 8 s; published by rig')
    graph.heal('camera_encoder')
    assert graph.said == [f'camera_encoder: {SILENT}', 'camera_encoder: running again']


def test_what_follows_from_it_and_silence_while_the_graph_starts_are_not_said(
    graph: Graph,
) -> None:
    graph.has_begun = False
    graph.report('fusion', CONSEQUENCE)
    assert graph.said == []
    graph.has_begun = True
    graph.report('camera_encoder', SILENT)
    graph.report('fusion', CONSEQUENCE)
    assert graph.said == [f'camera_encoder: {SILENT}']
    graph.heal('camera_encoder')
    graph.report('fusion', CONSEQUENCE)
    assert graph.said[2:] == [f'fusion: {CONSEQUENCE}']


def test_two_graphs_in_one_domain_are_one_line(graph: Graph) -> None:
    for name in ('fusion', 'camera_encoder', 'fusion', 'radar_encoder'):
        graph.report(name, f'2 nodes are called /{name}: {DOUBLED}; stop one')
        graph.heal(name)  # the other one, which has not noticed yet
    assert graph.said == [f'fusion: 2 nodes are called /fusion: {DOUBLED}; stop one']


def test_silent_sensors_and_drivers_are_left_to_the_report_of_inputs() -> None:
    graph = Graph(tells_inputs=True)
    graph.report('camera', 'no device /dev/video0')
    graph.report('camera_encoder', SILENT)
    graph.report('fusion', CONSEQUENCE)
    assert graph.said == []
    graph.report('radar_encoder', f'2 nodes are called /radar_encoder: {DOUBLED}; stop one')
    assert len(graph.said) == 1
