"""Says which nodes of the package have fallen silent: stopped, or hanging."""

from __future__ import annotations

from collections.abc import Callable

from diagnostic_msgs.msg import DiagnosticArray
from rclpy.node import Node

from mmedge_ros.ros.diagnostics import node_name
from mmedge_ros.ros.input_watch import Fault
from mmedge_ros.ros.messages import names
from mmedge_ros.ros.waited_entities import defer

# s. Nodes publish their status every second.
SILENCE = 3.0


class NodeWatch:
    """Listens to the statuses of other nodes, which they publish in the thread that may hang.

    A node that has left the graph is silent by right. One that hangs leaves it too, when the
    middleware takes it for dead; it is named until it is heard again.

    :param monotonic: seconds
    """

    def __init__(self, node: Node, monotonic: Callable[[], float]) -> None:
        self._node = node
        self._own = node.get_fully_qualified_name().lstrip('/')
        self._monotonic = monotonic
        self._heard: dict[str, float] = {}
        self._silent: set[str] = set()
        # It wakes nothing: the watch of the inputs looks every second.
        defer(node.create_subscription(DiagnosticArray, names.DIAGNOSTICS, self._on_statuses, 100))

    def _on_statuses(self, message: DiagnosticArray) -> None:
        for status in message.status:
            name = node_name(status)
            if name and not name.startswith(self._own):
                self._heard[name] = self._monotonic()
                self._silent.discard(name)

    def missing(self) -> list[str]:
        """Name the nodes that are silent and should not be."""
        now = self._monotonic()
        late = {name for name, heard in dict(self._heard).items() if now - heard >= SILENCE}
        nodes = self._node.get_node_names_and_namespaces() if late else []
        present = {f'{namespace}/{name}'.lstrip('/') for name, namespace in nodes}
        for name in late - self._silent:
            if name in present:
                self._silent.add(name)
            else:
                del self._heard[name]
        return [
            Fault(
                f'{name} gives no sign of life for {now - self._heard[name]:.0f} s: it hangs '
                'or was stopped; start it again'
            )
            for name in sorted(self._silent)
        ]
