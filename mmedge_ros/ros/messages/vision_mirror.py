"""The tracks in the words of vision_msgs, for programs that know nothing of this package.

vision_msgs is on ROS machines only; where it is absent there is no mirror.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from importlib import import_module
from typing import Any, TypeAlias

from rclpy.node import Node
from std_msgs.msg import Header

from mmedge_ros import msg
from mmedge_ros.core.data_types import CAMERA, Decision, Track
from mmedge_ros.ros.messages import names, qos
from mmedge_ros.ros.messages.conversions import from_time, header, to_track

# Headers of pictures, by their numbers as units.
Pictures: TypeAlias = dict[int, Header]

# What a person takes up, m; a track has a middle, but no size.
_SIZE = (0.5, 0.5, 1.7)
# Pictures; a track is deleted sooner.
_REMEMBERED = 200


def vision_messages(imported: Callable[[str], Any] = import_module) -> Any:
    """Return the module vision_msgs.msg; None where it is not installed."""
    try:
        return imported('vision_msgs.msg')
    except ImportError:
        return None


class VisionMirror:
    """Publishes Detection3DArray and Detection2DArray, each only while it has a subscriber.

    Which picture a box is of, receipts of the encoder say.

    :param messages: the module vision_msgs.msg
    """

    def __init__(self, node: Node, messages: Any) -> None:
        self._node = node
        self._messages = messages
        self._receipts: Any = None
        self._pictures: Pictures = {}
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
            self._boxes.publish(to_detections_2d(decision, self._pictures, self._messages))
        self._follow_demand(self._boxes.get_subscription_count() > 0)

    def _follow_demand(self, wanted: bool) -> None:
        if wanted and self._receipts is None:
            self._receipts = self._node.create_subscription(
                msg.UnitReceipt, names.UNIT_RECEIPTS, self._on_receipt, qos.RESULT
            )
        elif not wanted and self._receipts is not None:
            self._node.destroy_subscription(self._receipts)
            self._receipts = None
            self._pictures.clear()

    def _on_receipt(self, message: msg.UnitReceipt) -> None:
        if message.modality == CAMERA:
            self._pictures.pop(message.sequence, None)  # of an encoder that has started anew
            self._pictures[message.sequence] = message.header
            while len(self._pictures) > _REMEMBERED:
                del self._pictures[next(iter(self._pictures))]


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


def to_detections_2d(decision: Decision, pictures: Pictures, messages: Any) -> Any:
    """Make a Detection2DArray of the tracks that the camera sees; pixels of the picture.

    Each box has the header of its picture, and all together that of the newest one. A box whose
    picture is not known is left out.
    """
    detections = []
    for track in decision.tracks:
        if track.box is None or not all(map(math.isfinite, track.box)):
            continue
        top = pictures.get(track.detection.unit_sequence) if track.detection else None
        if top is None:
            continue
        detection = messages.Detection2D(header=top, id=str(track.id))
        centre = detection.bbox.center.position
        centre.x = float(track.box.x0 + track.box.x1) / 2
        centre.y = float(track.box.y0 + track.box.y1) / 2
        detection.bbox.size_x = float(track.box.width)
        detection.bbox.size_y = float(track.box.height)
        detection.results = [_result(track, messages)]
        detections.append(detection)
    shown = [detection.header for detection in detections] or [*pictures.values()]
    newest = max(shown, key=lambda top: from_time(top.stamp), default=header(decision.state_ns))
    return messages.Detection2DArray(header=newest, detections=detections)


def _result(track: Track, messages: Any) -> Any:
    result = messages.ObjectHypothesisWithPose()
    result.hypothesis.class_id = track.label
    result.hypothesis.score = float(track.score)
    return result
