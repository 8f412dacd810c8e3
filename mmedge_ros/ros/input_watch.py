"""Says which input is missing and why: no publisher, a silent one, or incompatible QoS."""

from __future__ import annotations

from collections.abc import Callable

from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy

SILENCE = 5.0
_REPEAT = 30.0


class InputWatch:
    """Watches subscriptions of a node; warns once per silence and when it ends.

    :param monotonic: seconds on the monotonic clock; the ROS clock may stand still
    """

    def __init__(self, node: Node, monotonic: Callable[[], float]) -> None:
        self._node = node
        self._monotonic = monotonic
        self._heard: dict[str, float] = {}
        self._wanted: dict[str, tuple[str, QoSProfile]] = {}
        self._warned: dict[str, float] = {}
        self._timer = node.create_timer(1.0, self.check)

    def expect(self, name: str, topic: str, profile: QoSProfile) -> None:
        """Begin to expect the input called ``name`` (such as camera) on a topic."""
        self._heard[name] = self._monotonic()
        self._wanted[name] = (topic, profile)

    def heard(self, name: str) -> None:
        """Note that the input is there."""
        if name not in self._wanted:
            return
        self._heard[name] = self._monotonic()
        if self._warned.pop(name, None) is not None:
            self._node.get_logger().info(f'{name} input is back')

    def missing(self) -> list[str]:
        """Describe every input that has been silent for too long."""
        now = self._monotonic()
        return [
            self._describe(name, now - heard)
            for name, heard in self._heard.items()
            if now - heard >= SILENCE
        ]

    def check(self) -> None:
        """Warn about silent inputs, each at most every half minute."""
        now = self._monotonic()
        for name, heard in self._heard.items():
            last = self._warned.get(name)
            if now - heard < SILENCE or (last is not None and now - last < _REPEAT):
                continue
            self._warned[name] = now
            self._node.get_logger().warning(self._describe(name, now - heard))

    def _describe(self, name: str, silence: float) -> str:
        topic, wanted = self._wanted[name]
        resolved = self._node.resolve_topic_name(topic)
        publishers = self._node.get_publishers_info_by_topic(resolved)
        if not publishers:
            return f'no {name} input for {silence:.0f} s: nobody publishes {resolved}'
        seen, refused = [], []
        for publisher in publishers:
            seen.append(publisher.node_name)
            reason = _incompatible(publisher.qos_profile, wanted)
            if reason:
                refused.append(f'{publisher.node_name} {reason}')
        sources = ', '.join(sorted(set(seen)))
        text = f'no {name} input for {silence:.0f} s: {sources} on {resolved} sends none'
        return f'{text}; incompatible: {"; ".join(refused)}' if refused else text


def _incompatible(offered: QoSProfile, wanted: QoSProfile) -> str:
    if (
        wanted.reliability == ReliabilityPolicy.RELIABLE
        and offered.reliability == ReliabilityPolicy.BEST_EFFORT
    ):
        return 'offers reliability BEST_EFFORT, RELIABLE is wanted'
    if (
        wanted.durability == DurabilityPolicy.TRANSIENT_LOCAL
        and offered.durability == DurabilityPolicy.VOLATILE
    ):
        return 'offers durability VOLATILE, TRANSIENT_LOCAL is wanted'
    return ''
