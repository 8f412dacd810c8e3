"""A node that hangs is named by another one; one that has ended is not."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import rclpy
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from live_graph import wait_until
from rclpy.node import Node

from mmedge_ros.ros.diagnostics import level_of, status_name
from mmedge_ros.ros.lean_executor import LeanExecutor
from mmedge_ros.ros.nodes.monitor import NODE_SILENCE, NodeWatch

NOW = 100.0


class Watched:
    """A node that watches, and one that reports."""

    def __init__(self) -> None:
        self.now = NOW
        self.monitor = rclpy.create_node('monitor')
        self.watch = NodeWatch(self.monitor, lambda: self.now)
        self.other: Node | None = rclpy.create_node('fusion')
        self._publisher = self.other.create_publisher(DiagnosticArray, '/diagnostics', 10)
        self._executor = LeanExecutor()
        self._executor.add_node(self.monitor)
        wait_until(self._executor, self._publisher.get_subscription_count)
        self.report()

    def report(self) -> None:
        self._publisher.publish(
            DiagnosticArray(status=[DiagnosticStatus(name='mmedge_ros: fusion')])
        )
        wait_until(self._executor, lambda: self.watch._heard.get('fusion') == self.now)

    def end(self) -> None:
        assert self.other is not None
        self.other.destroy_node()
        self.other = None
        wait_until(self._executor, lambda: 'fusion' not in self.monitor.get_node_names())

    def close(self) -> None:
        self._executor.shutdown()
        for node in (self.monitor, self.other):
            if node is not None:
                node.destroy_node()


@pytest.fixture
def watched(ros: None) -> Iterator[Watched]:
    made = Watched()
    yield made
    made.close()


def test_one_that_is_silent_in_the_graph_is_an_error_until_it_is_heard_again(
    watched: Watched,
) -> None:
    watched.now += NODE_SILENCE - 0.1
    assert watched.watch.missing() == []
    watched.now += 0.2
    assert watched.watch.missing() == [
        'fusion gives no sign of life for 3 s: it hangs or was stopped; start it again'
    ]
    assert level_of(watched.watch.missing()) == DiagnosticStatus.ERROR
    watched.report()
    assert watched.watch.missing() == []


def test_one_that_has_left_is_silent_by_right(watched: Watched) -> None:
    watched.end()
    watched.now += NODE_SILENCE
    assert watched.watch.missing() == []


@pytest.mark.parametrize(
    ('namespace', 'name'), [('', 'mmedge_ros: fusion'), ('drone1', 'mmedge_ros: drone1/fusion')]
)
def test_two_drones_that_share_diagnostics_are_told_apart(
    ros: None, namespace: str, name: str
) -> None:
    node = rclpy.create_node('fusion', namespace=namespace)
    assert status_name(node) == name
    node.destroy_node()
