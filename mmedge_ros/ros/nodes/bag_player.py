"""Plays a recording as if its sensors were here; obeys configurations and skip leases."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from nav_msgs.msg import Odometry
from rclpy.node import Node
from rclpy.publisher import Publisher
from rosgraph_msgs.msg import Clock as ClockMessage
from sensor_msgs.msg import CameraInfo, Range

from mmedge_ros import msg
from mmedge_ros.core.data_types import CAMERA, NS_PER_S
from mmedge_ros.core.parameter import group, parameter
from mmedge_ros.geometry.transforms import parse_static_transform
from mmedge_ros.replay.picture_recording import PictureParameters
from mmedge_ros.replay.playback import TRANSFORMS, Pace, Playback, live_offset_ns
from mmedge_ros.replay.recording import Recording, TopicChoice
from mmedge_ros.ros.configuration_input import ConfigurationInput
from mmedge_ros.ros.geometry_inputs import to_transform
from mmedge_ros.ros.messages import conversions, names, qos
from mmedge_ros.ros.messages.conversions import to_time
from mmedge_ros.ros.messages.sensor_input import doorbell_topic, input_topic
from mmedge_ros.ros.node_main import program
from mmedge_ros.ros.parameters import declare
from mmedge_ros.ros.picture_output import PictureOutput

# s, between ticks of /clock, and looks for the nodes that are waited for.
_CLOCK_PERIOD, _LOOK = 0.01, 0.05
# From the moment that we see everybody, seconds in which they find each other as well.
_LEAD = 1.0
# A picture that waits this long for an encoder is late anyway, s.
_PATIENCE = 0.1


@dataclass(frozen=True)
class _WindowParameters:
    """Of the windows, as the fusion node has them."""

    stride: float = parameter(0.1, 'stamps are moved by a multiple of it', 's', 0.01, 10.0)


@dataclass(frozen=True)
class _PipelineParameters:
    """What must agree with the fusion node."""

    windows: _WindowParameters = group(_WindowParameters)


@dataclass(frozen=True)
class BagPlayerParameters:
    """What is played, and how."""

    bag: str = parameter('', 'rosbag2 folder or file, video file, or folder of pictures')
    rate: float = parameter(
        1.0, 'speed; other than 1 publishes /clock for a graph on simulated time', '', 0.05, 20.0
    )
    loop: bool = parameter(False, 'start over at the end; stamps go on rising')
    clock: bool = parameter(False, 'publish /clock also at speed 1')
    transforms: tuple[str, ...] = parameter(
        (),
        'static transforms, each "parent child x y z qx qy qz qw" in m, that are published with '
        'those of the recording or in their place',
    )
    pipeline: _PipelineParameters = group(_PipelineParameters)
    wait_for: tuple[str, ...] = parameter((), 'nodes to wait for before the first message')
    wait_time: float = parameter(30.0, 'how long to wait for them', 's', 0.0, 600.0)
    topics: TopicChoice = group(TopicChoice)
    pictures: PictureParameters = group(PictureParameters)

    @property
    def simulated(self) -> bool:
        """Whether the graph is to run on /clock."""
        return self.clock or self.rate != 1.0


class BagPlayer(Node):
    """Publishes sensor messages at the instants the recording received them."""

    def __init__(self, **node_options: Any) -> None:
        super().__init__('bag_player', **node_options)
        self._options = p = declare(self, BagPlayerParameters)
        self._recording = Recording(p.bag, p.topics, pictures=p.pictures)
        self._stride_ns = round(p.pipeline.windows.stride * NS_PER_S)
        self._outputs = create_outputs(self, self._recording, p.transforms)
        has_raw = CAMERA in self._outputs and not self._recording.topics.compressed
        self._pictures = PictureOutput(self, self._outputs[CAMERA], _PATIENCE) if has_raw else None
        clock = self.create_publisher(ClockMessage, names.CLOCK, 10) if p.simulated else None
        self._clock_output = clock
        self._state = self.create_publisher(msg.PlaybackState, names.PLAYBACK, qos.LATCHED)
        self._playback = Playback(
            self._recording.bag,
            self._recording.sources,
            0,
            self._stride_ns,
            self._recording.periods_ns,
            p.loop,
            self._recording.moving_frames if TRANSFORMS in self._outputs else (),
        )
        self._pace = Pace(-sys.maxsize, 0, 1.0, time.monotonic_ns)  # the graph's time is not known
        ConfigurationInput(
            self,
            self._playback.configure,
            now_ns=lambda: self._pace.now_ns(),  # noqa: PLW0108  # another pace follows
            lease=self._playback.lease,
        )
        self._finished = False
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._play, name='player', daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End playing."""
        self._ended.set()
        self._thread.join(1.0)
        if self._pictures is not None:
            self._pictures.close()
        self._recording.close()

    def _play(self) -> None:
        p = self._options
        for problem in (*self._recording.bag.problems, *self._recording.problems):
            self.get_logger().warning(problem)
        # Only units: camera_info and odometry may have no subscriber.
        topics = [self._outputs[modality].topic_name for modality in self._playback.counts]
        missing = wait_for_peers(self, p.wait_for, topics, p.wait_time, self._ended)
        if missing:
            self.get_logger().warning(f'playing without {", ".join(missing)}')
        self._start()
        for due in self._playback:
            if not self._wait_until(due.due_ns):
                return
            if due.source == CAMERA and self._pictures is not None:
                self._pictures.publish_serialised(due.data)
            else:
                self._outputs[due.source].publish(due.data)
        self._finished = True
        self._publish_state()
        for problem, count in self._playback.problems.items():
            self.get_logger().warning(f'{count} messages not played: {problem}')
        self.get_logger().info('the recording has ended')
        while p.simulated and self._wait_until(self._pace.now_ns() + NS_PER_S):
            pass  # simulated time goes on, so that the graph can finish its windows

    def _start(self) -> None:
        """Fix the one constant between bag time and stamps, and the pace."""
        begin_ns = self._recording.bag.begin_ns
        lead_ns = round(_LEAD * self._options.rate * NS_PER_S)
        if not self._options.simulated:
            now_ns = time.time_ns()
            self._playback.offset_ns = live_offset_ns(begin_ns, now_ns, self._stride_ns, _LEAD)
            lead_ns = begin_ns + self._playback.offset_ns - now_ns
        first_ns = begin_ns + self._playback.offset_ns
        self._pace = Pace(first_ns, lead_ns, self._options.rate, time.monotonic_ns)
        self._publish_state()

    def _wait_until(self, due_ns: int) -> bool:
        """Wait for an instant of the graph's time; False when it is to stop."""
        while not self._ended.is_set():
            self._tick()
            remaining = self._pace.seconds_until(due_ns)
            if remaining <= 0.0:
                return True
            self._ended.wait(min(remaining, _CLOCK_PERIOD if self._clock_output else 0.5))
        return False

    def _tick(self) -> None:
        if self._clock_output is not None:
            self._clock_output.publish(ClockMessage(clock=to_time(self._pace.now_ns())))
        if time.monotonic() - self._last_state > 0.5:
            self._publish_state()

    def _publish_state(self) -> None:
        self._last_state = time.monotonic()
        status = self._playback.status(self._options.rate, self._finished)
        self._state.publish(conversions.to_playback_state(status, self._pace.now_ns()))


def create_outputs(
    node: Node, recording: Recording, transforms: Sequence[str]
) -> dict[str, Publisher]:
    """Create a publisher for every source the bag has, and publish static transforms.

    :param transforms: static ones that come on top of the recorded ones, or in their place
    """
    transport = 'compressed' if recording.topics.compressed else 'raw'
    outputs: dict[str, Publisher] = {}
    for name, source in recording.sources.items():
        if source.modality:
            topic, kind = input_topic(source.modality, transport)
        elif name == 'odometry':
            topic, kind = names.ODOMETRY, Odometry
        elif name == 'rangefinder':
            topic, kind = names.RANGEFINDER, Range
        else:
            topic, kind = names.CAMERA_INFO, CameraInfo
        outputs[name] = node.create_publisher(kind, topic, qos.SENSOR)
    return {**outputs, **_transform_outputs(node, recording, transforms)}


def _transform_outputs(
    node: Node, recording: Recording, given: Sequence[str]
) -> dict[str, Publisher]:
    """Do so for transforms; without tf2_msgs, as where ROS comes from PyPI, there are none."""
    try:
        from tf2_msgs.msg import TFMessage
    except ImportError:
        return {}
    edges = {e.child: e for e in (*recording.transforms, *map(parse_static_transform, given))}
    if edges:
        static = node.create_publisher(TFMessage, names.STATIC_TRANSFORMS, qos.LATCHED)
        messages = [to_transform(e.parent, e.child, e.transform) for e in edges.values()]
        static.publish(TFMessage(transforms=messages))
    if not recording.moving_frames:
        return {}
    return {TRANSFORMS: node.create_publisher(TFMessage, names.TRANSFORMS, qos.RESULT)}


def wait_for_peers(
    node: Node,
    node_names: Sequence[str],
    topics: Sequence[str],
    timeout: float,
    ended: threading.Event,
) -> list[str]:
    """Wait until the nodes are there and every topic has a subscriber; return what is missing."""
    deadline = time.monotonic() + timeout
    while True:
        present = set(node.get_node_names())
        missing = [name for name in node_names if name not in present]
        missing += [
            f'a subscriber of {topic}'
            for topic in (topics if node_names else ())
            if not any(map(node.count_subscribers, (topic, doorbell_topic(topic))))
        ]
        if not missing or time.monotonic() > deadline or ended.wait(_LOOK):
            return missing


main = program(BagPlayer)


if __name__ == '__main__':
    main()
