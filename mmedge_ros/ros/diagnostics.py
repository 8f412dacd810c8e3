"""One status per node on /diagnostics, once a second, and at once when it gets better or worse."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

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


class Refusals:
    """Says which kind of input is not used and why; of each kind at most once in five seconds."""

    def __init__(self, node: Node) -> None:
        self._logger = node.get_logger()
        self._apart: dict[str, Any] = {}

    def say(self, what: str, why: object, verb: str = 'not used') -> None:
        """Warn of one that cannot be used."""
        # A logger throttles by where it is called; each kind has its own.
        logger = self._apart.setdefault(what, self._logger.get_child(what.replace(' ', '_')))
        words = f'{what} {verb}: {why}'
        logger.warning(words, throttle_duration_sec=5.0)

    @contextmanager
    def of(self, what: str, verb: str = 'not used') -> Iterator[None]:
        """Let what cannot be (a ValueError) be said, and go on."""
        try:
            yield
        except ValueError as err:
            self.say(what, err, verb)


class Diagnostics:
    """Publishes counts of a node, and what it is missing.

    :param values: called for the figures to show
    :param is_failing: whether the node cannot do its work at all, such as without its device
    :param hardware_id: which device it is about
    :param has_timer: else its owner calls `look`
    """

    def __init__(
        self,
        node: Node,
        watch: Watch,
        values: Callable[[], Mapping[str, object]],
        is_failing: Callable[[], bool] = lambda: False,
        hardware_id: str = '',
        has_timer: bool = True,
    ) -> None:
        self._node = node
        self._watch = watch
        self._values = values
        self._is_failing = is_failing
        self._hardware_id = hardware_id
        self._told: tuple[object, ...] = (DiagnosticStatus.OK,)
        self._published_at = time.monotonic()
        self._publisher = node.create_publisher(DiagnosticArray, '/diagnostics', 10)
        if has_timer:
            self._timer = node.create_timer(_LOOK, self.look, clock=steady_clock())

    def look(self, parts: Sequence[DiagnosticStatus] = ()) -> None:
        """Publish when it is time, or when a level has changed.

        :param parts: statuses of parts of the node
        """
        missing = self._watch.missing()
        level = DiagnosticStatus.ERROR if self._is_failing() else level_of(missing)
        levels = (level, *(part.level for part in parts))
        due = time.monotonic() - self._published_at > _PERIOD - _LOOK / 2
        if not due and levels == self._told:
            return
        self._told, self._published_at = levels, time.monotonic()
        own = DiagnosticStatus(
            level=level,
            name=status_name(self._node),
            message='; '.join(missing) or 'running',
            hardware_id=self._hardware_id,
            values=key_values(self._values()),
        )
        message = DiagnosticArray(status=[own, *parts])
        message.header.stamp = self._node.get_clock().now().to_msg()
        self._publisher.publish(message)


def key_values(values: Mapping[str, object]) -> list[KeyValue]:
    return [KeyValue(key=key, value=str(value)) for key, value in values.items()]
