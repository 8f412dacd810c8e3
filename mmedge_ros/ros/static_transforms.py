"""Static transforms from /tf_static, where the message type is installed.

The pip packages of ROS have no tf2_msgs; there extrinsics come as parameters.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rclpy.node import Node

from mmedge_ros.fusion.errors import FusionError
from mmedge_ros.fusion.transforms import StampedTransform, transform_from_message
from mmedge_ros.ros.qos import STATIC_TRANSFORMS


def subscribe_static_transforms(
    node: Node, on_transforms: Callable[[list[StampedTransform]], None]
) -> bool:
    """Subscribe to /tf_static; returns False where tf2_msgs is not installed."""
    try:
        from tf2_msgs.msg import TFMessage
    except ImportError:
        return False

    def take(message: Any) -> None:
        usable = []
        for transform in message.transforms:
            try:
                usable.append(transform_from_message(transform))
            except FusionError as err:
                node.get_logger().warning(f'transform not used: {err}')
        on_transforms(usable)

    node.create_subscription(TFMessage, '/tf_static', take, STATIC_TRANSFORMS)
    return True
