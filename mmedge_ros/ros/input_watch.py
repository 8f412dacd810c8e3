"""Says which input is missing and why, and which comes from two publishers."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy

from mmedge_ros.preflight.graph_view import TopicEndpoint, mismatch
from mmedge_ros.ros.ros_clock import steady_clock

SILENCE = 5.0
_REPEAT = 30.0
# A process that was killed stays in the graph for 10 s, the lease of the middleware's profile.
LASTING = 12.0
DOUBLED = 'two graphs in one domain mix'


class Fault(str):
    """Words about what is missing or wrong that are an error, and no mere warning."""

    __slots__ = ()


class InputWatch:
    """Watches subscriptions of a node; warns once per silence and when it ends.

    Two publishers of one input, or a second node of this one's name, are two graphs in one domain,
    or two drivers of one sensor: their messages would mix in silence.

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
        self._wanted: dict[str, tuple[str, TopicEndpoint]] = {}
        self._warned: dict[str, float] = {}
        self._losses: dict[str, Callable[[], str]] = {}
        self._lossy_at: dict[str, float] = {}
        self._optional: set[str] = set()
        self._shared: set[str] = set()
        self._doubled: dict[str, tuple[float, str]] = {}
        # Says of an input which configuration it is under; '' where there is none.
        self.configured: Callable[[str], str] = lambda _: ''
        self._timer = node.create_timer(1.0, self.check, clock=steady_clock())

    def expect(
        self,
        name: str,
        topic: str,
        profile: QoSProfile,
        kind: type | None = None,
        loss: Callable[[], str] = str,
        *,
        is_optional: bool = False,
        is_shared: bool = False,
    ) -> None:
        """Begin to expect the input called ``name`` (such as camera) on a topic.

        :param kind: class of its messages; publishers of another one are named
        :param loss: says how much of it is lost on the way, '' where little is
        :param is_optional: its silence is no error
        :param is_shared: it may have several publishers
        """
        if is_optional:
            self._optional.add(name)
        if is_shared:
            self._shared.add(name)
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
        """Describe every input that is silent or loses much, and what is there twice."""
        now = self._monotonic()
        silent = [
            self._describe(name, now - heard)
            for name, heard in self._heard.items()
            if now - heard >= self._silence
        ]
        losses = {name: loss() for name, loss in self._losses.items()}
        lossy = [f'{name} {words}' for name, words in losses.items() if words]
        doubled = [words for since, words in self._doubled.values() if now - since >= LASTING]
        return [*map(Fault, doubled), *silent, *lossy]

    def check(self) -> None:
        """Warn of silent inputs and losses, each at most every half minute; look for doubles."""
        now = self._monotonic()
        self._look_for_doubles(now)
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

    def _look_for_doubles(self, now: float) -> None:
        doubles: dict[str, str] = {}
        own = self._node.get_name(), self._node.get_namespace()
        count = self._node.get_node_names_and_namespaces().count(own)
        if count > 1:
            doubles[''] = (
                f'{count} nodes are called {self._node.get_fully_qualified_name()}: {DOUBLED}; '
                'stop one, or give it a ROS_DOMAIN_ID or a namespace of its own'
            )
        # Else publishers of another graph are two as well.
        for name, (topic, _) in () if doubles else self._wanted.items():
            resolved = self._node.resolve_topic_name(topic)
            if name not in self._shared and self._node.count_publishers(resolved) > 1:
                ends = self._node.get_publishers_info_by_topic(resolved)
                nodes = ', '.join(sorted(end.node_name for end in ends))
                doubles[name] = (
                    f'{name} input on {resolved} has {len(ends)} publishers, which mix: {nodes}; '
                    'stop all but one, or remap'
                )
        self._doubled = {
            name: (self._doubled.get(name, (now, ''))[0], words) for name, words in doubles.items()
        }

    def _describe(self, name: str, silence: float) -> str:
        words = self._why(name, silence)
        return words if name in self._optional else Fault(words)

    def _why(self, name: str, silence: float) -> str:
        topic, wanted = self._wanted[name]
        resolved = self._node.resolve_topic_name(topic)
        text = f'no {name} input on {resolved} for {silence:.0f} s'
        configured = self.configured(name)
        if configured:
            text = f'{text} ({configured})'
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


def endpoint_of(info: Any) -> TopicEndpoint:
    """Return a publisher or subscriber as rclpy describes it."""
    return endpoint(info.node_name, info.topic_type, info.qos_profile)


def endpoint(node: str, msgtype: str, profile: QoSProfile) -> TopicEndpoint:
    """Return one end of a topic with what matters of its quality of service."""
    return TopicEndpoint(
        node,
        msgtype,
        profile.reliability == ReliabilityPolicy.RELIABLE,
        profile.durability == DurabilityPolicy.TRANSIENT_LOCAL,
    )


def message_type(kind: type) -> str:
    """Return the name of a message class, such as sensor_msgs/msg/Image."""
    return f'{kind.__module__.partition(".")[0]}/msg/{kind.__name__}'
