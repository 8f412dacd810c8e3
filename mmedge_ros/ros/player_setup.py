"""Parameters of the bag player, and publishers typed as the bag recorded its sensors."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from nav_msgs.msg import Odometry
from rclpy.node import Node
from rclpy.publisher import Publisher
from sensor_msgs.msg import CameraInfo

from mmedge_ros.geometry.transforms import parse_static_transform
from mmedge_ros.parameter import group, parameter
from mmedge_ros.replay.picture_recording import PictureParameters
from mmedge_ros.replay.playback import TRANSFORMS
from mmedge_ros.replay.recording import Recording, TopicChoice
from mmedge_ros.ros.messages import names, qos
from mmedge_ros.ros.messages.sensor_input import doorbell_topic, input_topic
from mmedge_ros.ros.odometry_transform import to_transform

STATIC = 'static_transforms'


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

    REMOVED: ClassVar[dict[str, str]] = {
        'stride': 'it is pipeline.windows.stride, as in the fusion node'
    }

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
    outputs: dict[str, Publisher] = {}
    edges = {e.child: e for e in (*recording.transforms, *map(parse_static_transform, given))}
    if edges:
        static = node.create_publisher(TFMessage, names.STATIC_TRANSFORMS, qos.LATCHED)
        messages = [to_transform(e.parent, e.child, e.transform) for e in edges.values()]
        static.publish(TFMessage(transforms=messages))
        outputs[STATIC] = static
    if recording.moving_frames:
        outputs[TRANSFORMS] = node.create_publisher(TFMessage, names.TRANSFORMS, qos.RESULT)
    return outputs


_LOOK = 0.05


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
        if node_names:
            missing += [
                f'a subscriber of {topic}'
                for topic in topics
                if not node.count_subscribers(topic)
                and not node.count_subscribers(doorbell_topic(topic))
            ]
        if not missing or time.monotonic() > deadline or ended.wait(_LOOK):
            return missing
