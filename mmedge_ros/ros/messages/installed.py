"""What a ROS installation reads beyond our own conversions: cv_bridge and sensor_msgs_py.

Ours read the usual layouts without a copy. Where these two are installed, they serve for what is
left: encodings that OpenCV does not name alike, and clouds whose rows are declared wrongly. ROS 2
from PyPI has neither; a message then stays as it is, and its encoder says what it cannot read.
"""

from __future__ import annotations

import importlib
from functools import cache
from typing import Any

from sensor_msgs.msg import Image, PointCloud2

from mmedge_ros.ros.messages.conversions import from_time
from mmedge_ros.ros.messages.sensor_output import to_image
from mmedge_ros.sensing.camera.image import SUPPORTED_ENCODINGS


def readable(message: Any) -> Any:
    """Return a message that our conversions read; the same one where nothing is to be done."""
    if isinstance(message, Image) and message.encoding not in SUPPORTED_ENCODINGS:
        return _in_bgr(message)
    if isinstance(message, PointCloud2) and message.row_step < message.width * message.point_step:
        return _with_true_rows(message)
    return message


@cache
def _installed(name: str) -> Any:
    """Return a package, or None where it is not installed."""
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


def _in_bgr(message: Image) -> Image:
    cv_bridge = _installed('cv_bridge')
    if cv_bridge is None:
        return message
    try:
        picture = cv_bridge.CvBridge().imgmsg_to_cv2(message, desired_encoding='bgr8')
    except cv_bridge.CvBridgeError:
        return message
    return to_image(picture, from_time(message.header.stamp), message.header.frame_id)


def _with_true_rows(message: PointCloud2) -> PointCloud2:
    """Return the cloud with a row step that fits: readers in ROS ignore it, and so do drivers."""
    clouds = _installed('sensor_msgs_py.point_cloud2')
    if clouds is None:
        return message
    try:
        points = clouds.read_points(message)
    except (TypeError, ValueError, AssertionError):
        return message
    made: PointCloud2 = clouds.create_cloud(message.header, message.fields, points)
    return made
