"""Says which input is missing and why: no publisher, a silent one, another type or QoS."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy

from mmedge_ros.preflight.graph_view import Endpoint, mismatch
from mmedge_ros.ros.ros_clock import steady_clock

SILENCE = 5.0
_REPEAT = 30.0


class InputWatch:
    """Watches subscriptions of a node; warns once per silence and when it ends.

    :param monotonic: seconds on the monotonic clock; the ROS clock may stand still
    :param silence: how long an input may be silent, s
    """

    def __init__(
        self, node: Node, monotonic: Callable[[], float], silence: float = SILENCE
    ) -> None:
        self._node = node
        self._monotonic = monotonic
        self._silence = silence
        self._heard: dict[str, float] = {}
        self._wanted: dict[str, tuple[str, Endpoint]] = {}
        self._warned: dict[str, float] = {}
        self._losses: dict[str, Callable[[], str]] = {}
        self._lossy_at: dict[str, float] = {}
        self._timer = node.create_timer(1.0, self.check, clock=steady_clock())

    def expect(
        self,
        name: str,
        topic: str,
        profile: QoSProfile,
        kind: type | None = None,
        loss: Callable[[], str] = str,
    ) -> None:
        """Begin to expect the input called ``name`` (such as camera) on a topic.

        :param kind: class of its messages; publishers of another one are named
        :param loss: says how much of it is lost on the way, '' where little is
        """
        self._heard[name] = self._monotonic()
        msgtype = message_type(kind) if kind else ''
        self._losses[name] = loss
        self._wanted[name] = (topic, endpoint(self._node.get_name(), msgtype, profile))

    def heard(self, name: str) -> None:
        """Note that the input is there."""
        if name not in self._wanted:
            return
        self._heard[name] = self._monotonic()
        if self._warned.pop(name, None) is not None:
            self._node.get_logger().info(f'{name} input is back')

    def missing(self) -> list[str]:
        """Describe every input that has been silent for too long, or of which much is lost."""
        now = self._monotonic()
        silent = [
            self._describe(name, now - heard)
            for name, heard in self._heard.items()
            if now - heard >= self._silence
        ]
        losses = {name: loss() for name, loss in self._losses.items()}
        return silent + [f'{name} {words}' for name, words in losses.items() if words]

    def check(self) -> None:
        """Warn about silent inputs and losses, each at most every half minute."""
        now = self._monotonic()
        for name, loss in self._losses.items():
            words = loss() if now - self._lossy_at.get(name, -math.inf) >= _REPEAT else ''
            if words:
                self._lossy_at[name] = now
                self._node.get_logger().warning(f'{name} {words}')
        for name, heard in self._heard.items():
            last = self._warned.get(name)
            if now - heard < self._silence or (last is not None and now - last < _REPEAT):
                continue
            self._warned[name] = now
            self._node.get_logger().warning(self._describe(name, now - heard))

    def _describe(self, name: str, silence: float) -> str:
        topic, wanted = self._wanted[name]
        resolved = self._node.resolve_topic_name(topic)
        text = f'no {name} input on {resolved} for {silence:.0f} s'
        publishers = self._node.get_publishers_info_by_topic(resolved)
        if not publishers:
            return f'{text}: it has no publisher'
        ends = [endpoint_of(publisher) for publisher in publishers]
        seen = ', '.join(sorted({end.node for end in ends}))
        reasons = ((end.node, mismatch(end, wanted)) for end in ends)
        refused = sorted({f'{node} {reason}' for node, reason in reasons if reason})
        if refused:
            return f'{text}; published by {seen}; incompatible: {"; ".join(refused)}'
        return f'{text}; published by {seen}, which sends none'


def endpoint_of(info: Any) -> Endpoint:
    """Return a publisher or subscriber as rclpy describes it."""
    return endpoint(info.node_name, info.topic_type, info.qos_profile)


def endpoint(node: str, msgtype: str, profile: QoSProfile) -> Endpoint:
    """Return one end of a topic with what matters of its quality of service."""
    return Endpoint(
        node,
        msgtype,
        profile.reliability == ReliabilityPolicy.RELIABLE,
        profile.durability == DurabilityPolicy.TRANSIENT_LOCAL,
    )


def message_type(kind: type) -> str:
    """Return the name of a message class, such as sensor_msgs/msg/Image."""
    return f'{kind.__module__.partition(".")[0]}/msg/{kind.__name__}'
