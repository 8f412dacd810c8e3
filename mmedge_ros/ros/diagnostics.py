"""One status per node on /diagnostics, once a second, and at once when it gets better or worse."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from rclpy.node import Node

from mmedge_ros.ros.input_watch import Fault
from mmedge_ros.ros.ros_clock import steady_clock
from mmedge_ros.sensing.radar.filter import PROBLEM_WORDS

NAME_PREFIX = 'mmedge_ros: '
# Begins the keys that count what was wrong in the input; a recorder collects these.
PROBLEM_PREFIX = 'problem '

_PERIOD = 1.0
_LOOK = 0.2


def problem_figures(modality: str, counts: Counter[str]) -> dict[str, object]:
    """Make figures of what was wrong in the units of a modality, for a report to collect."""
    words = ((PROBLEM_WORDS.get(text, text), count) for text, count in counts.items())
    return {f'{PROBLEM_PREFIX}{modality}: {text}': count for text, count in words}


def node_name(status: DiagnosticStatus) -> str:
    """Return which node of this package a status is about; '' for others."""
    name = status.name
    return name.removeprefix(NAME_PREFIX) if name.startswith(NAME_PREFIX) else ''


def status_name(node: Node) -> str:
    """Return what the status of a node is called; two drones share one /diagnostics."""
    return f'{NAME_PREFIX}{node.get_fully_qualified_name().lstrip("/")}'


class Watch(Protocol):
    """Knows what a node is missing: an InputWatch, or a driver's own."""

    def missing(self) -> list[str]:
        """Say in words what is missing or wrong at present; a `Fault` is an error."""


def level_of(missing: Sequence[str]) -> bytes:
    """Return the level of a status that says this."""
    if any(isinstance(words, Fault) for words in missing):
        return DiagnosticStatus.ERROR
    return DiagnosticStatus.WARN if missing else DiagnosticStatus.OK


class Diagnostics:
    """Publishes counts of a node, and what it is missing.

    :param values: called for the figures to show
    :param is_failing: whether the node cannot do its work at all, such as without its device
    :param hardware_id: which device it is about
    """

    def __init__(
        self,
        node: Node,
        watch: Watch,
        values: Callable[[], Mapping[str, object]],
        is_failing: Callable[[], bool] = lambda: False,
        hardware_id: str = '',
    ) -> None:
        self._node = node
        self._watch = watch
        self._values = values
        self._is_failing = is_failing
        self._hardware_id = hardware_id
        self._told = DiagnosticStatus.OK
        self._published_at = time.monotonic()
        self._publisher = node.create_publisher(DiagnosticArray, '/diagnostics', 10)
        self._timer = node.create_timer(_LOOK, self._look, clock=steady_clock())

    def publish(self) -> None:
        """Publish the present state."""
        missing = self._watch.missing()
        self._told = self._level(missing)
        self._published_at = time.monotonic()
        status = DiagnosticStatus(
            level=self._told,
            name=status_name(self._node),
            message='; '.join(missing) or 'running',
            hardware_id=self._hardware_id,
            values=[KeyValue(key=k, value=str(v)) for k, v in self._values().items()],
        )
        message = DiagnosticArray(status=[status])
        message.header.stamp = self._node.get_clock().now().to_msg()
        self._publisher.publish(message)

    def _look(self) -> None:
        """Publish when it is time, or when the state has changed."""
        due = time.monotonic() - self._published_at > _PERIOD - _LOOK / 2
        if due or self._level(self._watch.missing()) != self._told:
            self.publish()

    def _level(self, missing: list[str]) -> bytes:
        if self._is_failing():
            return DiagnosticStatus.ERROR
        return level_of(missing)
