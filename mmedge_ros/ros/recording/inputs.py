"""Finds the topics of a recording on the graph and hands their messages on as they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from rclpy.exceptions import InvalidTopicNameException
from rclpy.node import Node
from rclpy.qos import QoSProfile
from rclpy.subscription import Subscription
from rclpy.timer import Timer
from rclpy.validate_topic_name import validate_topic_name
from rosbags.typesys import Stores, get_typestore

from mmedge_ros.core.parameter import group, parameter
from mmedge_ros.core.untrusted_files import shown
from mmedge_ros.geometry.transforms import parse_static_transform, quaternion_from_rotation
from mmedge_ros.replay import ReplayError
from mmedge_ros.ros.messages import names
from mmedge_ros.ros.messages.interfaces import recorded_topics
from mmedge_ros.ros.messages.sensor_input import sent_and_received
from mmedge_ros.ros.recording.qos import matching, recorded
from mmedge_ros.ros.recording.session import RecordingLimits, RecordingSession
from mmedge_ros.ros.recording.types import MessageTypes, message_class
from mmedge_ros.ros.recording.writer import RecordedTopic
from mmedge_ros.ros.ros_clock import RosClock, steady_clock

# Publishers that appear are heard within this many seconds.
_LOOK = 0.25
_TF_MESSAGE = 'tf2_msgs/msg/TFMessage'


@dataclass(frozen=True)
class BagRecorderParameters:
    """What is recorded, and where to."""

    out: str = parameter('', 'folder to be made for the recording')
    topics: tuple[str, ...] = parameter(
        (), 'topics to record instead of the inputs, decisions and results of the graph'
    )
    image_transport: str = parameter(
        'auto',
        'form of the pictures; auto takes raw ones where there are any, and never makes a driver '
        'compress pictures for the recording alone',
        choices=('auto', 'raw', 'compressed'),
    )
    transforms: tuple[str, ...] = parameter(
        (),
        'static transforms to record on /tf_static, each "parent child x y z qx qy qz qw" in m; '
        'for graphs that know them from parameters',
    )
    limits: RecordingLimits = group(RecordingLimits)


class RecordingInputs:
    """Subscribes as publishers appear, with a profile that all publishers of a topic serve.

    :raises ReplayError: for a topic that can have no such name
    :raises GeometryError: for a text that is no transform
    """

    def __init__(self, node: Node, parameters: BagRecorderParameters) -> None:
        self.unknown: dict[str, str] = {}
        self._node = node
        self._transport = parameters.image_transport
        self._clock = RosClock(node)
        self._types = MessageTypes()
        given = parameters.topics or recorded_topics()
        self._wanted = {_resolved(node, topic): topic for topic in given}
        self._chooses = not parameters.topics
        self._heard: dict[str, tuple[QoSProfile, Subscription]] = {}
        self._transforms = transforms_message(parameters.transforms)
        self._timer: Timer | None = None

    def start(self, session: RecordingSession) -> None:
        """Begin to hand what is heard to a session."""
        self._session = session
        self._timer = self._node.create_timer(_LOOK, self.look, clock=steady_clock())

    @property
    def topics(self) -> list[str]:
        """Topics that are being recorded."""
        return list(self._heard)

    def look(self) -> None:
        """Subscribe to what has appeared."""
        if self._clock.simulated and not self._clock.now_ns():
            return  # without /clock the time of arrival is unknown
        for topic, given in self._wanted.items():
            publishers = self._node.get_publishers_info_by_topic(topic)
            if publishers and topic not in self.unknown and self._is_chosen(given):
                self._subscribe(topic, publishers)

    def stop(self) -> None:
        """Stop listening."""
        if self._timer is not None:
            self._timer.cancel()
        for _, subscription in self._heard.values():
            self._node.destroy_subscription(subscription)
        self._heard.clear()

    def _is_chosen(self, given: str) -> bool:
        """Whether a topic is in the form in which pictures are to be recorded."""
        if not self._chooses or given not in (names.CAMERA_IMAGE, names.CAMERA_IMAGE_COMPRESSED):
            return True
        if self._transport == 'auto':
            raw = self._node.resolve_topic_name(names.CAMERA_IMAGE)
            is_raw = bool(self._node.get_publishers_info_by_topic(raw))
        else:
            is_raw = self._transport == 'raw'
        return is_raw == (given == names.CAMERA_IMAGE)

    def _subscribe(self, topic: str, publishers: Sequence[Any]) -> None:
        profile = matching(publishers)
        if topic in self._heard:
            former, subscription = self._heard[topic]
            if former == profile:
                return
            self._node.destroy_subscription(subscription)
        msgtype = publishers[0].topic_type
        try:
            kind = message_class(msgtype)
            definition, digest = self._types.definition(msgtype)
        except ReplayError as error:
            self.unknown[topic] = f'{topic} is not recorded: {error}'
            self._node.get_logger().warning(self.unknown[topic])
            return
        self._session.announce(
            RecordedTopic(topic, msgtype, definition, digest, recorded(publishers))
        )

        def take(data: Any, info: Any) -> None:  # bytes, because raw
            self._take(topic, data, info)

        subscription = self._node.create_subscription(kind, topic, take, profile, raw=True)
        self._heard[topic] = profile, subscription

    def _take(self, topic: str, data: bytes, info: dict[str, Any]) -> None:
        # A simulation may begin at zero, and a message have come before.
        received_ns = max(sent_and_received(info, self._clock)[1], 0)
        if self._transforms:
            # Not earlier: a recording begins with its first message.
            definition, digest = self._types.definition(_TF_MESSAGE)
            static = names.STATIC_TRANSFORMS
            self._session.announce(RecordedTopic(static, _TF_MESSAGE, definition, digest))
            self._session.offer(static, received_ns, self._transforms)
            self._transforms = b''
        self._session.offer(topic, received_ns, data)


def _resolved(node: Node, topic: str) -> str:
    """Return a topic's full name, remapped."""
    try:
        validate_topic_name(topic)
        return str(node.resolve_topic_name(topic))
    except (InvalidTopicNameException, RuntimeError) as error:
        # The middleware points at the place in a second line, or names its own source.
        reason = str(error).partition('\n')[0].partition(', at ')[0].rstrip(':')
        raise ReplayError(f'{shown(topic)} cannot be recorded: {reason}') from error


def transforms_message(texts: Sequence[str]) -> bytes:
    """Serialise a TFMessage of transforms "parent child x y z qx qy qz qw"; empty for none.

    :raises GeometryError: for a text that is no transform
    """
    if not texts:
        return b''
    store = get_typestore(Stores.ROS2_KILTED)
    kinds = store.types
    time = kinds['builtin_interfaces/msg/Time'](sec=0, nanosec=0)
    edges = []
    for text in texts:
        edge = parse_static_transform(text)
        x, y, z = (float(v) for v in edge.translation)
        qx, qy, qz, qw = quaternion_from_rotation(edge.rotation)
        edges.append(
            kinds['geometry_msgs/msg/TransformStamped'](
                header=kinds['std_msgs/msg/Header'](stamp=time, frame_id=edge.parent),
                child_frame_id=edge.child,
                transform=kinds['geometry_msgs/msg/Transform'](
                    translation=kinds['geometry_msgs/msg/Vector3'](x=x, y=y, z=z),
                    rotation=kinds['geometry_msgs/msg/Quaternion'](x=qx, y=qy, z=qz, w=qw),
                ),
            )
        )
    message = kinds['tf2_msgs/msg/TFMessage'](transforms=edges)
    return np.asarray(store.serialize_cdr(message, 'tf2_msgs/msg/TFMessage')).tobytes()
