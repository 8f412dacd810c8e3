"""What is seen of a ROS graph from outside, in plain records, and what keeps two ends apart."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from mmedge_ros.core.data_types import CAMERA

# Pictures as JPEG or PNG; one of the two forms is in use.
COMPRESSED = 'camera, compressed'
CAMERA_INFO = 'camera_info'
ODOMETRY = 'odometry'
# On a topic and in a form of its own.
PX4_ODOMETRY = 'odometry of PX4'
STATIC_TRANSFORMS = 'static transforms'
BATTERY = 'battery'


class TopicEndpoint(NamedTuple):
    """A publisher or subscriber: its node, message type and quality of service."""

    node: str
    msgtype: str
    reliable: bool = False
    latched: bool = False


class TopicArrival(NamedTuple):
    """When a message came, and its stamp, both in ns of the graph's clock."""

    received_ns: int
    stamp_ns: int


class TopicView(NamedTuple):
    """One input: the type that is wanted, its ends, and what was heard for a while.

    ``detail`` describes the newest message, ``problem`` says why it cannot be used.
    """

    topic: str
    msgtype: str
    publishers: tuple[TopicEndpoint, ...] = ()
    subscribers: tuple[TopicEndpoint, ...] = ()
    arrivals: tuple[TopicArrival, ...] = ()
    frame_id: str = ''
    detail: str = ''
    problem: str = ''

    @property
    def senders(self) -> str:
        """Names of the nodes that publish."""
        return ', '.join(sorted({publisher.node for publisher in self.publishers}))


class NodeStatus(NamedTuple):
    """What a node says of itself on /diagnostics; ``level`` 0 is good, 1 a warning, 2 an error.

    ``degraded`` is what decisions have to do without, as fusion reports it.
    """

    node: str
    level: int
    message: str
    degraded: tuple[str, ...] = ()


class GraphView(NamedTuple):
    """Inputs by name (camera, radar, ...), all other topics with their type, nodes, statuses.

    ``transforms`` are static ones, "parent child x y z qx qy qz qw"; ``simulated``: there is a
    /clock.
    """

    inputs: dict[str, TopicView]
    others: dict[str, str]
    nodes: tuple[str, ...] = ()
    statuses: tuple[NodeStatus, ...] = ()
    transforms: tuple[str, ...] = ()
    simulated: bool = False

    def to_json(self) -> str:
        """Write it as text."""
        return json.dumps(self)

    @staticmethod
    def from_json(text: str) -> GraphView:
        """Read what `to_json` wrote.

        :raises ValueError, TypeError: for another text
        """
        inputs, others, nodes, statuses, transforms, simulated = json.loads(text)
        return GraphView(
            {name: _topic(fields) for name, fields in inputs.items()},
            others,
            tuple(nodes),
            tuple(NodeStatus(n, level, words, tuple(d)) for n, level, words, d in statuses),
            tuple(transforms),
            simulated,
        )


def _topic(fields: list[Any]) -> TopicView:
    topic, msgtype, publishers, subscribers, arrivals, *texts = fields
    return TopicView(
        topic,
        msgtype,
        tuple(TopicEndpoint(*end) for end in publishers),
        tuple(TopicEndpoint(*end) for end in subscribers),
        tuple(TopicArrival(*pair) for pair in arrivals),
        *texts,
    )


def with_one_camera(views: dict[str, TopicView]) -> dict[str, TopicView]:
    """Keep that form of the pictures which is in use; the raw one if neither is."""
    raw, compressed = views[CAMERA], views[COMPRESSED]
    if raw.subscribers or compressed.subscribers:
        is_compressed = not raw.subscribers
    else:
        is_compressed = bool(compressed.publishers) and not raw.publishers
    chosen = {**views, CAMERA: compressed if is_compressed else raw}
    del chosen[COMPRESSED]
    return chosen


def with_one_odometry(views: dict[str, TopicView]) -> dict[str, TopicView]:
    """Keep that odometry which is in use, as nodes do: PX4's where nothing else is published."""
    chosen = dict(views)
    px4 = chosen.pop(PX4_ODOMETRY, None)
    if px4 is not None and px4.publishers and not views[ODOMETRY].publishers:
        chosen[ODOMETRY] = px4
    return chosen


def mismatch(offered: TopicEndpoint, wanted: TopicEndpoint) -> str:
    """Say why a publisher cannot serve a subscriber; '' if it can."""
    if wanted.msgtype and offered.msgtype != wanted.msgtype:
        return f'offers {offered.msgtype}, {wanted.msgtype} is wanted'
    if wanted.reliable and not offered.reliable:
        return 'offers reliability BEST_EFFORT, RELIABLE is wanted'
    if wanted.latched and not offered.latched:
        return 'offers durability VOLATILE, TRANSIENT_LOCAL is wanted'
    return ''
