"""Parameters of the bag player, and publishers typed as the bag recorded its sensors."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass

from nav_msgs.msg import Odometry
from rclpy.node import Node
from rclpy.publisher import Publisher
from sensor_msgs.msg import CameraInfo

from mmedge_ros.parameter import group, parameter
from mmedge_ros.replay.bag_topics import SensorTopics
from mmedge_ros.replay.picture_recording import PictureParameters
from mmedge_ros.replay.playback import playback_sources
from mmedge_ros.replay.recording import TopicChoice
from mmedge_ros.ros.messages import names, qos
from mmedge_ros.ros.messages.sensor_input import doorbell_topic, input_topic


@dataclass(frozen=True)
class BagPlayerParameters:
    """What is played, and how."""

    bag: str = parameter('', 'rosbag2 folder or file, video file, or folder of pictures')
    rate: float = parameter(
        1.0, 'speed; other than 1 publishes /clock for a graph on simulated time', '', 0.05, 20.0
    )
    loop: bool = parameter(False, 'start over at the end; stamps go on rising')
    clock: bool = parameter(False, 'publish /clock also at speed 1')
    stride: float = parameter(
        0.1, 'stamps are moved by a multiple of this, the window stride', 's', 0.01, 10.0
    )
    wait_for: tuple[str, ...] = parameter((), 'nodes to wait for before the first message')
    wait_time: float = parameter(30.0, 'how long to wait for them', 's', 0.0, 600.0)
    topics: TopicChoice = group(TopicChoice)
    pictures: PictureParameters = group(PictureParameters)

    @property
    def simulated(self) -> bool:
        """Whether the graph is to run on /clock."""
        return self.clock or self.rate != 1.0


def create_outputs(node: Node, topics: SensorTopics) -> dict[str, Publisher]:
    """Create a publisher for every source the bag has."""
    transport = 'compressed' if topics.compressed else 'raw'
    outputs: dict[str, Publisher] = {}
    for name, source in playback_sources(topics).items():
        if source.modality:
            topic, kind = input_topic(source.modality, transport)
        elif name == 'odometry':
            topic, kind = names.ODOMETRY, Odometry
        else:
            topic, kind = names.CAMERA_INFO, CameraInfo
        outputs[name] = node.create_publisher(kind, topic, qos.SENSOR)
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
