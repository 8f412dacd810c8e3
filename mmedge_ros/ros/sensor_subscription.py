"""A subscription to a sensor: reliable where that is offered, and it counts what is lost."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from copy import copy
from typing import Any

from rclpy.node import Node
from rclpy.qos import QoSProfile, ReliabilityPolicy

from mmedge_ros.ros.graph.middleware_profile import profile_in_use
from mmedge_ros.ros.messages import qos
from mmedge_ros.ros.parameters import is_overridden
from mmedge_ros.ros.ros_clock import steady_clock

_LOOK = 0.5
# A loss is worth a warning where it is this share of so many messages in so many seconds.
_SHARE, _LEAST, _SPAN = 0.2, 20, 5.0
# A longer gap is no loss: the publisher has started anew.
_LONGEST_GAP = 1000


class LossCount:
    """Counts messages that were sent and did not come, by the numbers their publishers give them.

    :param monotonic: seconds on the monotonic clock
    """

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._numbers: dict[str, int] = {}
        self._recent: deque[tuple[float, int]] = deque()

    def heard(self, info: Any) -> None:
        """Note what the middleware says of a message; not every one numbers them."""
        number = info.get('publication_sequence_number')
        if number is None:
            return
        publisher = str(info.get('publisher_gid'))
        missed = number - self._numbers.get(publisher, number - 1) - 1
        self._numbers[publisher] = number
        self._recent.append((self._monotonic(), missed if 0 < missed < _LONGEST_GAP else 0))
        self._forget()

    def words(self) -> str:
        """Say how many of the newest messages were lost; '' where they are few."""
        self._forget()
        lost = sum(missed for _, missed in self._recent)
        sent = lost + len(self._recent)
        if sent < _LEAST or lost < _SHARE * sent:
            return ''
        return f'{lost} of {sent} messages of the last {_SPAN:.0f} s were lost on the way'

    def _forget(self) -> None:
        oldest = self._monotonic() - _SPAN
        while self._recent and self._recent[0][0] < oldest:
            self._recent.popleft()


class SensorSubscription:
    """Begins at best effort, which every publisher serves.

    It becomes reliable while all publishers are: a picture that is larger than the shared memory
    of its publisher's middleware goes in pieces, and at best effort most pictures lose one. What a
    user sets by ``qos_overrides`` stays.

    :param on_message: called with a message and what the middleware knows of it
    :param raw: hand on bytes
    """

    def __init__(
        self,
        node: Node,
        kind: type,
        topic: str,
        on_message: Callable[[Any, Any], None],
        raw: bool = False,
    ) -> None:
        self._node = node
        self._kind = kind
        self._topic = node.resolve_topic_name(topic)
        self._on_message = on_message
        self._raw = raw
        self._loss = LossCount()
        self._subscription = self._subscribe(**qos.overridable(qos.SENSOR))
        self.profile: QoSProfile = self._subscription.qos_profile
        override = f'qos_overrides.{self._topic}.subscription.reliability'
        self._timer = None
        if not is_overridden(node, override):
            self._timer = node.create_timer(_LOOK, self._follow, clock=steady_clock())

    def close(self) -> None:
        """Listen no more."""
        if self._timer is not None:
            self._node.destroy_timer(self._timer)
        self._node.destroy_subscription(self._subscription)

    def figures(self) -> dict[str, object]:
        """Return counts for the node's diagnostics: none."""
        return {}

    def loss(self) -> str:
        """Say how much is lost on the way, and the remedy; '' where little is."""
        words = self._loss.words()
        if not words:
            return ''
        text = f'input on {self._topic}: {words}'
        publishers = self._node.get_publishers_info_by_topic(self._topic)
        hasty = sorted({p.node_name for p in publishers if not _is_reliable(p.qos_profile)})
        if not hasty:
            return f'{text}; this machine is too busy to take them'
        profile = profile_in_use()
        where = f'start it where {profile} is set, or ' if profile else ''
        return f'{text}; {", ".join(hasty)} sends at best effort: {where}let it publish reliably'

    def _subscribe(self, **quality: Any) -> Any:
        return self._node.create_subscription(
            self._kind, self._topic, self._take, raw=self._raw, **quality
        )

    def _take(self, message: Any, info: Any) -> None:
        self._loss.heard(info)
        self._on_message(message, info)

    def _follow(self) -> None:
        publishers = self._node.get_publishers_info_by_topic(self._topic)
        if not publishers:
            return
        reliable = all(_is_reliable(publisher.qos_profile) for publisher in publishers)
        if reliable != _is_reliable(self._subscription.qos_profile):
            profile = copy(self.profile)
            if reliable:
                profile.reliability = ReliabilityPolicy.RELIABLE
            self._node.destroy_subscription(self._subscription)
            self._subscription = self._subscribe(qos_profile=profile)


def _is_reliable(profile: QoSProfile) -> bool:
    return bool(profile.reliability == ReliabilityPolicy.RELIABLE)
