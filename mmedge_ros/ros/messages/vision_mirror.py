"""The tracks in the words of vision_msgs, for programs that know nothing of this package.

vision_msgs is on ROS machines only; where it is absent there is no mirror.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from importlib import import_module
from typing import Any

from rclpy.node import Node

from mmedge_ros.data_types import Decision, Track
from mmedge_ros.ros.messages import names, qos
from mmedge_ros.ros.messages.conversions import header, to_track

# What a person takes up, m; a track has a middle, but no size.
_SIZE = (0.5, 0.5, 1.7)


def vision_messages(imported: Callable[[str], Any] = import_module) -> Any:
    """Return the module vision_msgs.msg; None where it is not installed."""
    try:
        return imported('vision_msgs.msg')
    except ImportError:
        return None


class VisionMirror:
    """Publishes Detection3DArray and Detection2DArray, each only while it has a subscriber.

    :param messages: the module vision_msgs.msg
    """

    def __init__(self, node: Node, messages: Any) -> None:
        self._messages = messages
        self._boxes = node.create_publisher(
            messages.Detection2DArray, names.DETECTIONS_2D, qos.RESULT
        )
        self._bodies = node.create_publisher(
            messages.Detection3DArray, names.DETECTIONS_3D, qos.RESULT
        )

    def publish(self, decision: Decision) -> None:
        """Publish a decision's tracks."""
        if self._bodies.get_subscription_count():
            self._bodies.publish(to_detections_3d(decision, self._messages))
        if self._boxes.get_subscription_count():
            self._boxes.publish(to_detections_2d(decision, self._messages))


def to_detections_3d(decision: Decision, messages: Any) -> Any:
    """Make a Detection3DArray: one body per track, with its covariance, named by its id."""
    top = header(decision.state_ns, decision.frame_id)
    detections = []
    for track in decision.tracks:
        detection = messages.Detection3D(header=top, id=str(track.id))
        pose = to_track(track).pose
        detection.bbox.center = pose.pose
        size = detection.bbox.size
        size.x, size.y, size.z = _SIZE
        result = _result(track, messages)
        result.pose = pose
        detection.results = [result]
        detections.append(detection)
    return messages.Detection3DArray(header=top, detections=detections)


def to_detections_2d(decision: Decision, messages: Any) -> Any:
    """Make a Detection2DArray of the tracks that the camera sees; pixels of the picture."""
    # The frame of the pictures is not known here, and pixels need none.
    top = header(decision.state_ns)
    detections = []
    for track in decision.tracks:
        if track.box is None or not all(map(math.isfinite, track.box)):
            continue
        detection = messages.Detection2D(header=top, id=str(track.id))
        centre = detection.bbox.center.position
        centre.x = float(track.box.x0 + track.box.x1) / 2
        centre.y = float(track.box.y0 + track.box.y1) / 2
        detection.bbox.size_x = float(track.box.width)
        detection.bbox.size_y = float(track.box.height)
        detection.results = [_result(track, messages)]
        detections.append(detection)
    return messages.Detection2DArray(header=top, detections=detections)


def _result(track: Track, messages: Any) -> Any:
    result = messages.ObjectHypothesisWithPose()
    result.hypothesis.class_id = track.label
    result.hypothesis.score = float(track.score)
    return result
