"""Publishes what the networks of a node do: once a second, and at once when a state changes."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from rclpy.node import Node

from mmedge_ros import msg
from mmedge_ros.encoding.bricks import BrickState, BrickStatus
from mmedge_ros.ros.messages import conversions, names, qos
from mmedge_ros.ros.ros_clock import RosClock, steady_clock

_PERIOD = 1.0
_LOOK = 0.2


class BrickPlanOutput:
    """Looks at the bricks of a node.

    :param bricks: called for what they do, in the thread of the node's timers
    """

    def __init__(self, node: Node, bricks: Callable[[], Sequence[BrickStatus]]) -> None:
        self._name = node.get_name()
        self._ros_clock = RosClock(node)
        self._bricks = bricks
        self._published_states: list[tuple[str, str, BrickState]] = []
        self._published_at = -_PERIOD
        self._publisher = node.create_publisher(msg.BrickPlan, names.BRICK_PLAN, qos.RESULT)
        self._timer = node.create_timer(_LOOK, self._look, clock=steady_clock())

    def figures(self) -> dict[str, object]:
        """Return what diagnostics show."""
        return {f'brick {b.name} on {b.device}': b.words() for b in self._bricks()}

    def _look(self) -> None:
        bricks = self._bricks()
        states = [(brick.name, brick.device, brick.state) for brick in bricks]
        now = time.monotonic()
        if not bricks or (states == self._published_states and now - self._published_at < _PERIOD):
            return
        self._published_states, self._published_at = states, now
        now_ns = self._ros_clock.now_ns()
        self._publisher.publish(conversions.to_brick_plan(self._name, bricks, now_ns))
