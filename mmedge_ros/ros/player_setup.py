"""Parameters of the bag player, and publishers typed as the bag recorded its sensors."""

from __future__ import annotations

from dataclasses import dataclass

from nav_msgs.msg import Odometry
from rclpy.node import Node
from rclpy.publisher import Publisher
from sensor_msgs.msg import CameraInfo, CompressedImage, Image, PointCloud2

from mmedge_ros.data_types import CAMERA, RADAR
from mmedge_ros.parameter import group, parameter
from mmedge_ros.replay.bag import SensorTopics
from mmedge_ros.replay.playback import playback_sources
from mmedge_ros.replay.recording import TopicChoice
from mmedge_ros.ros.messages import names, qos


@dataclass(frozen=True)
class BagPlayerParameters:
    """What is played, and how."""

    bag: str = parameter('', 'rosbag2 folder or file')
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

    @property
    def simulated(self) -> bool:
        """Whether the graph is to run on /clock."""
        return self.clock or self.rate != 1.0


def create_outputs(node: Node, topics: SensorTopics) -> dict[str, Publisher]:
    """Create a publisher for every source the bag has."""
    image = (CompressedImage, names.CAMERA_IMAGE_COMPRESSED)
    kinds = {
        CAMERA: image if topics.compressed else (Image, names.CAMERA_IMAGE),
        'camera_info': (CameraInfo, names.CAMERA_INFO),
        RADAR: (PointCloud2, names.RADAR_POINTS),
        'odometry': (Odometry, names.ODOMETRY),
    }
    return {
        name: node.create_publisher(*kinds[name], qos.SENSOR) for name in playback_sources(topics)
    }
