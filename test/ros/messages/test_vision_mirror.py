"""Tracks in the words of vision_msgs, which are made by hand here: the wheels have none."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from geometry_msgs.msg import Pose, PoseWithCovariance, Vector3
from hand_made_decisions import a_decision, a_track
from std_msgs.msg import Header

from mmedge_ros import msg
from mmedge_ros.core.data_types import Box, DetectionKey, Track
from mmedge_ros.ros.messages import names
from mmedge_ros.ros.messages.conversions import header
from mmedge_ros.ros.messages.vision_mirror import (
    VisionMirror,
    to_detections_2d,
    to_detections_3d,
)

SECOND = 1_000_000_000


def part(**fields: Callable[[], Any]) -> Callable[..., Any]:
    """Stands for a class of messages: makes one with fresh fields, and those that are given."""
    return lambda **given: SimpleNamespace(
        **{name: make() for name, make in fields.items()} | given
    )


POINT = part(x=float, y=float)
BOX_2D = part(center=part(position=POINT, theta=float), size_x=float, size_y=float)
HYPOTHESIS = part(class_id=str, score=float)
VISION = SimpleNamespace(
    ObjectHypothesisWithPose=part(hypothesis=HYPOTHESIS, pose=PoseWithCovariance),
    Detection2D=part(header=Header, results=list, bbox=BOX_2D, id=str),
    Detection3D=part(header=Header, results=list, bbox=part(center=Pose, size=Vector3), id=str),
    Detection2DArray=SimpleNamespace,
    Detection3DArray=SimpleNamespace,
)


class Publishing:
    """The part of a node that makes publishers, and subscriptions, which are topics here."""

    def __init__(self) -> None:
        self.listeners = 1
        self.published: dict[str, list[Any]] = {}
        self.callbacks: dict[str, Callable[[Any], None]] = {}

    def create_subscription(
        self, kind: type, topic: str, callback: Callable[[Any], None], profile: Any
    ) -> str:
        self.callbacks[topic] = callback
        return topic

    def destroy_subscription(self, subscription: str) -> None:
        del self.callbacks[subscription]

    def create_publisher(self, kind: type, topic: str, profile: Any) -> SimpleNamespace:
        published = self.published.setdefault(topic, [])
        is_2d = topic == names.DETECTIONS_2D
        return SimpleNamespace(
            publish=published.append,
            get_subscription_count=lambda: self.listeners if is_2d else 0,
        )


def test_a_track_is_a_body_with_its_place_and_doubt() -> None:
    (body,) = to_detections_3d(a_decision(a_track()), VISION).detections
    assert body.id == '3'
    place = body.bbox.center.position
    assert (place.x, place.y, place.z) == (4.0, -1.0, 0.5)
    assert body.bbox.size.z == 1.7
    (result,) = body.results
    assert result.hypothesis.class_id == 'person'
    assert 0.0 < result.hypothesis.score <= 1.0
    assert result.pose.covariance[0] > 0.0


PICTURES = {7: header(SECOND, 'camera'), 8: header(2 * SECOND, 'camera')}


def seen_in(picture: int, **changes: Any) -> Track:
    box = Box(10.0, 20.0, 40.0, 80.0)
    return a_track(**{'box': box, 'detection': DetectionKey(picture, 0), **changes})


def test_boxes_are_those_of_tracks_the_camera_sees() -> None:
    seen = seen_in(7, id=4)
    hidden = a_track(id=5, box=None)
    torn = seen_in(7, id=6, box=Box(0.0, 0.0, float('nan'), 5.0))
    (box,) = to_detections_2d(a_decision(seen, hidden, torn), PICTURES, VISION).detections
    assert box.id == '4'
    centre = box.bbox.center.position
    assert (centre.x, centre.y, box.bbox.size_x, box.bbox.size_y) == (25.0, 50.0, 30.0, 60.0)


def test_each_box_has_the_frame_and_the_stamp_of_its_picture() -> None:
    decision = a_decision(seen_in(8, id=1), seen_in(7, id=2), seen_in(9, id=3))
    boxes = to_detections_2d(decision, PICTURES, VISION)
    assert [(box.id, box.header) for box in boxes.detections] == [
        ('1', PICTURES[8]),
        ('2', PICTURES[7]),
    ]
    assert boxes.header == PICTURES[8]


def test_pictures_are_known_by_their_receipts_while_boxes_are_wanted() -> None:
    node = Publishing()
    mirror = VisionMirror(node, VISION)  # type: ignore[arg-type]
    mirror.publish(a_decision(seen_in(7)))
    boxes = node.published[names.DETECTIONS_2D]
    assert boxes[0].detections == []
    heard = node.callbacks[names.UNIT_RECEIPTS]
    for modality in ('radar', 'camera'):
        heard(msg.UnitReceipt(header=header(SECOND, modality), modality=modality, sequence=7))
    mirror.publish(a_decision(seen_in(7)))
    (box,) = boxes[1].detections
    assert (box.header, boxes[1].header) == (PICTURES[7], PICTURES[7])
    node.listeners = 0
    mirror.publish(a_decision(seen_in(7)))
    assert node.callbacks == {}
