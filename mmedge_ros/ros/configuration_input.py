"""The subscriptions of a node to configurations, which are not trusted, and to skip leases."""

from __future__ import annotations

from collections.abc import Callable

from rclpy.node import Node

from mmedge_ros import msg
from mmedge_ros.core.data_types import NS_PER_S, Configuration, SkipDecision
from mmedge_ros.ros.messages import conversions, names, qos

# The package's own are announced 0.02 s ahead.
_FARTHEST_NS = NS_PER_S


class ConfigurationInput:
    """Hands on configurations; one that holds from far ahead of now is refused, with a warning.

    :param take: called with each that is used
    :param device: where modalities that name none are encoded
    :param now_ns: by the clock that the graph runs on, if that is not the node's
    :param lease: called with each lease
    """

    def __init__(
        self,
        node: Node,
        take: Callable[[Configuration], object],
        device: str = 'cpu',
        now_ns: Callable[[], int] | None = None,
        lease: Callable[[SkipDecision], None] | None = None,
    ) -> None:
        self._node = node
        self._now_ns = now_ns or (lambda: int(node.get_clock().now().nanoseconds))
        self._take = take
        self._device = device
        self._newest: Configuration | None = None
        node.create_subscription(
            msg.Configuration, names.CONFIGURATION, self._on_message, qos.LATCHED
        )
        if lease is not None:
            node.create_subscription(
                msg.SkipDecision,
                names.SKIP_DECISION,
                lambda message: lease(conversions.from_skip_decision(message)),
                qos.RESULT,
            )

    def words(self, modality: str) -> str:
        """Name the configuration in force and what it asks of a modality; '' where none came."""
        if self._newest is None:
            return ''
        return f'configuration {self._newest.id} is in force: {self._newest.of(modality).words()}'

    def _on_message(self, message: msg.Configuration) -> None:
        made = conversions.from_configuration(message, self._device)
        now_ns = self._now_ns()
        ahead_ns = made.effective_from_ns - now_ns
        # Simulated time that has not begun says nothing.
        if now_ns > 0 and ahead_ns > _FARTHEST_NS:
            self._node.get_logger().warning(
                f'configuration {made.id} not used: it would hold in {ahead_ns / NS_PER_S:.0f} s; '
                'one may be announced 1 s ahead, by the clock that the graph runs on',
                throttle_duration_sec=5.0,
            )
            return
        self._newest = made
        self._take(made)
