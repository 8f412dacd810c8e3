"""One status per node on /diagnostics, once a second."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from rclpy.node import Node

from mmedge_ros.ros.input_watch import InputWatch
from mmedge_ros.ros.ros_clock import steady_clock
from mmedge_ros.sensing.radar_filter import PROBLEM_WORDS

# Begins the keys that count what was wrong in the input; a recorder collects these.
PROBLEM_PREFIX = 'problem '


def problem_figures(modality: str, counts: Counter[str]) -> dict[str, object]:
    """Make figures of what was wrong in the units of a modality, for a report to collect."""
    words = ((PROBLEM_WORDS.get(text, text), count) for text, count in counts.items())
    return {f'{PROBLEM_PREFIX}{modality}: {text}': count for text, count in words}


class Diagnostics:
    """Publishes counts of a node, and what it is missing.

    :param values: called once a second for the figures to show
    """

    def __init__(
        self, node: Node, watch: InputWatch, values: Callable[[], Mapping[str, object]]
    ) -> None:
        self._node = node
        self._watch = watch
        self._values = values
        self._publisher = node.create_publisher(DiagnosticArray, '/diagnostics', 10)
        self._timer = node.create_timer(1.0, self.publish, clock=steady_clock())

    def publish(self) -> None:
        """Publish the present state."""
        missing = self._watch.missing()
        status = DiagnosticStatus(
            level=DiagnosticStatus.WARN if missing else DiagnosticStatus.OK,
            name=f'mmedge_ros: {self._node.get_name()}',
            message='; '.join(missing) or 'running',
            hardware_id='',
            values=[KeyValue(key=k, value=str(v)) for k, v in self._values().items()],
        )
        message = DiagnosticArray(status=[status])
        message.header.stamp = self._node.get_clock().now().to_msg()
        self._publisher.publish(message)
