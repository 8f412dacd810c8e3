"""Records what goes into the graph and what comes out of it, as a rosbag2 folder of MCAP files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rclpy.exceptions import InvalidTopicNameException
from rclpy.node import Node
from rclpy.qos import QoSProfile
from rclpy.subscription import Subscription
from rclpy.validate_topic_name import validate_topic_name

from mmedge_ros.core.parameter import group, parameter
from mmedge_ros.core.untrusted_files import shown
from mmedge_ros.replay import ReplayError
from mmedge_ros.ros.diagnostics import Diagnostics
from mmedge_ros.ros.messages import names
from mmedge_ros.ros.messages.interfaces import recorded_topics
from mmedge_ros.ros.messages.sensor_input import sent_and_received
from mmedge_ros.ros.node_main import program
from mmedge_ros.ros.parameters import declare
from mmedge_ros.ros.recording.session import MEGABYTE, RecordingLimits, RecordingSession
from mmedge_ros.ros.recording.topics import (
    TF_MESSAGE,
    MessageTypes,
    matching,
    message_class,
    recorded,
    transforms_message,
)
from mmedge_ros.ros.recording.writer import BagWriter, RecordedTopic
from mmedge_ros.ros.ros_clock import RosClock, steady_clock

# Publishers that appear are recorded, and a full disk is reported, within so many seconds.
_LOOK = 0.25
_PICTURES = (names.CAMERA_IMAGE, names.CAMERA_IMAGE_COMPRESSED)


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


class BagRecorder(Node):
    """Hands messages from the middleware to the disk as they are.

    It subscribes as publishers appear, with a profile that all publishers of a topic serve. When
    the disk is full, recording stops and says so; the node and the graph go on.

    :raises ReplayError: without a folder, or for a topic that can have no such name
    :raises GeometryError: for a text that is no transform
    """

    def __init__(self, **node_options: Any) -> None:
        super().__init__('bag_recorder', **node_options)
        self._options = p = declare(self, BagRecorderParameters)
        if not p.out:
            raise ReplayError('no folder to record to; set "out"')
        self._ros_clock = RosClock(self)
        self._types = MessageTypes()
        self._wanted = {_resolved(self, topic): topic for topic in p.topics or recorded_topics()}
        self._heard: dict[str, tuple[QoSProfile, Subscription]] = {}
        self._unknown: dict[str, str] = {}
        self._transforms = transforms_message(p.transforms)
        self._writer = BagWriter(Path(p.out), p.limits.split_size * MEGABYTE)
        self.session = RecordingSession(self._writer, p.limits)
        self._is_told = False
        self._diagnostics = Diagnostics(
            self, self, self._figures, lambda: bool(self.session.failure), p.out
        )
        self.session.start()
        self._timer = self.create_timer(_LOOK, self._look, clock=steady_clock())

    def stop(self) -> None:
        """Write what waits, and end the recording."""
        self._hear_no_more()
        self.session.stop()

    def missing(self) -> list[str]:
        """Say what is wrong with the recording."""
        problems = [self.session.failure] if self.session.failure else []
        if self.session.dropped:
            problems.append(f'{self.session.dropped} messages dropped: the disk is too slow')
        return [*problems, *self._unknown.values()]

    def counts(self) -> dict[str, int]:
        """Return how many messages were written, per topic."""
        return dict(self._writer.counts)

    def _look(self) -> None:
        """Subscribe to what has appeared; say once that recording has stopped."""
        if self.session.failure:
            if not self._is_told:
                self._is_told = True
                self._hear_no_more()
                self.get_logger().error(self.session.failure)
            return
        if self._ros_clock.simulated and not self._ros_clock.now_ns():
            return  # without /clock the time of arrival is unknown
        for topic, given in self._wanted.items():
            publishers = self.get_publishers_info_by_topic(topic)
            if publishers and topic not in self._unknown and self._is_chosen(given):
                self._subscribe(topic, publishers)

    def _hear_no_more(self) -> None:
        self._timer.cancel()
        for _, subscription in self._heard.values():
            self.destroy_subscription(subscription)
        self._heard.clear()

    def _is_chosen(self, given: str) -> bool:
        """Whether a topic is in the form in which pictures are to be recorded."""
        if self._options.topics or given not in _PICTURES:
            return True
        if self._options.image_transport == 'auto':
            raw = self.resolve_topic_name(names.CAMERA_IMAGE)
            is_raw = bool(self.get_publishers_info_by_topic(raw))
        else:
            is_raw = self._options.image_transport == 'raw'
        return is_raw == (given == names.CAMERA_IMAGE)

    def _subscribe(self, topic: str, publishers: Sequence[Any]) -> None:
        profile = matching(publishers)
        if topic in self._heard:
            former, subscription = self._heard[topic]
            if former == profile:
                return
            self.destroy_subscription(subscription)
        msgtype = publishers[0].topic_type
        try:
            kind = message_class(msgtype)
            described = self._types.definition(msgtype)
        except ReplayError as error:
            self._unknown[topic] = f'{topic} is not recorded: {error}'
            self.get_logger().warning(self._unknown[topic])
            return
        self.session.announce(RecordedTopic(topic, msgtype, *described, recorded(publishers)))

        def take(data: Any, info: Any) -> None:  # bytes, because raw
            self._take(topic, data, info)

        subscription = self.create_subscription(kind, topic, take, profile, raw=True)
        self._heard[topic] = profile, subscription

    def _take(self, topic: str, data: bytes, info: dict[str, Any]) -> None:
        # A simulation may begin at zero, and a message have come before.
        received_ns = max(sent_and_received(info, self._ros_clock)[1], 0)
        if self._transforms:
            # Not earlier: a recording begins with its first message.
            static = names.STATIC_TRANSFORMS
            described = self._types.definition(TF_MESSAGE)
            self.session.announce(RecordedTopic(static, TF_MESSAGE, *described))
            self.session.offer(static, received_ns, self._transforms)
            self._transforms = b''
        self.session.offer(topic, received_ns, data)

    def _figures(self) -> dict[str, object]:
        counts = self.counts()
        return {
            'messages': sum(counts.values()),
            'dropped': self.session.dropped,
            'files': self._writer.files,
            'topics': ' '.join(self._heard),
            **counts,
        }


def _resolved(node: Node, topic: str) -> str:
    """Return a topic's full name, remapped."""
    try:
        validate_topic_name(topic)
        return str(node.resolve_topic_name(topic))
    except (InvalidTopicNameException, RuntimeError) as error:
        # The middleware points at the place in a second line, or names its own source.
        reason = str(error).partition('\n')[0].partition(', at ')[0].rstrip(':')
        raise ReplayError(f'{shown(topic)} cannot be recorded: {reason}') from error


main = program(BagRecorder)


if __name__ == '__main__':
    main()
