"""Publishers for the inputs of the graph, typed as a bag recorded them."""

from __future__ import annotations

from nav_msgs.msg import Odometry
from rclpy.node import Node
from rclpy.publisher import Publisher
from sensor_msgs.msg import CameraInfo, CompressedImage, Image, PointCloud2

from mmedge_ros.data_types import CAMERA, RADAR
from mmedge_ros.replay.bag import SensorTopics
from mmedge_ros.replay.playback import playback_sources
from mmedge_ros.ros import names, qos


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
