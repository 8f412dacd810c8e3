"""A look at the running graph for some seconds, from beside it; a program that prints what it saw.

It runs as a process of its own, because a middleware that hangs or crashes must not take
`mmedge doctor` with it.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from diagnostic_msgs.msg import DiagnosticArray
from nav_msgs.msg import Odometry
from rclpy.node import Node
from rclpy.serialization import deserialize_message
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import BatteryState, CameraInfo, CompressedImage, Image, PointCloud2

from mmedge_ros import MmedgeError
from mmedge_ros.core.data_types import CAMERA, RADAR
from mmedge_ros.core.untrusted_files import brief
from mmedge_ros.geometry.ego_motion import ODOMETRY_FRAME
from mmedge_ros.geometry.projection import CameraModel
from mmedge_ros.geometry.px4_odometry import ego_report_from_px4, px4_stamp_ns
from mmedge_ros.geometry.sensor_poses import BASE_FRAME
from mmedge_ros.geometry.transforms import format_static_transform, transform_from_message
from mmedge_ros.preflight.graph_view import (
    BATTERY,
    CAMERA_INFO,
    COMPRESSED,
    ODOMETRY,
    PX4_ODOMETRY,
    STATIC_TRANSFORMS,
    GraphView,
    NodeStatus,
    TopicArrival,
    TopicView,
    with_one_camera,
    with_one_odometry,
)
from mmedge_ros.replay.wire_formats import ego_report_from_bytes, header_stamp_ns
from mmedge_ros.ros.diagnostics import node_name
from mmedge_ros.ros.input_watch import endpoint_of, message_type
from mmedge_ros.ros.messages import names, qos
from mmedge_ros.ros.messages.conversions import from_time
from mmedge_ros.ros.messages.sensor_input import doorbell_topic
from mmedge_ros.ros.sessions.own_context import spinning
from mmedge_ros.sensing.camera.image import quick_format
from mmedge_ros.sensing.radar.point_cloud import decode_points

NODE = 'mmedge_doctor'
# Part of the names of our own results.
_RESULTS = '/perception/'
# s. Nodes find one another in half a second; then this is long enough for a rate.
_SETTLING, _LISTENING = 1.2, 2.0
# A flood must not fill the memory.
_MOST_ARRIVALS = 2000


@dataclass(frozen=True)
class Input:
    """An input: its topic, the class of its messages, and what is read from the newest one.

    :param read: takes a message, or its bytes where ``raw``, and describes it
    :param stamp_ns: reads the stamp in a message's bytes
    """

    topic: str
    kind: type
    read: Callable[[Any], str] = lambda _: ''
    raw: bool = False
    stamp_ns: Callable[[bytes], int] = header_stamp_ns


class _Heard(NamedTuple):
    arrivals: list[TopicArrival]
    newest: list[bytes]


def graph_inputs(camera: str = '', radar: str = '', odometry: str = '') -> dict[str, Input]:
    """Return the inputs of the graph, at the topics of the given drivers."""
    topics = dict(names.driver_remappings(camera, radar, odometry))
    inputs = {
        CAMERA: Input(names.CAMERA_IMAGE, Image, _picture),
        COMPRESSED: Input(names.CAMERA_IMAGE_COMPRESSED, CompressedImage, _picture),
        CAMERA_INFO: Input(names.CAMERA_INFO, CameraInfo, _calibration),
        RADAR: Input(names.RADAR_POINTS, PointCloud2, _points),
        ODOMETRY: Input(names.ODOMETRY, Odometry, _odometry, raw=True),
        BATTERY: Input(names.BATTERY_STATE, BatteryState),
    }
    with suppress(ImportError):
        from tf2_msgs.msg import TFMessage

        inputs[STATIC_TRANSFORMS] = Input(names.STATIC_TRANSFORMS, TFMessage)
    with suppress(ImportError):
        from px4_msgs.msg import VehicleOdometry

        inputs[PX4_ODOMETRY] = Input(
            names.PX4_ODOMETRY,
            VehicleOdometry,
            _px4_odometry,
            stamp_ns=lambda raw: px4_stamp_ns(deserialize_message(raw, VehicleOdometry)),
        )
    return {name: replace(i, topic=topics.get(i.topic, i.topic)) for name, i in inputs.items()}


def _picture(message: Any) -> str:
    picture = quick_format(message)
    return f'{picture.width} x {picture.height} px {picture.encoding}'


def _points(message: Any) -> str:
    points = decode_points(message)
    without = ' without velocity' if len(points) and np.isnan(points[:, 3]).all() else ''
    return f'{len(points)} points{without}'


def _calibration(message: Any) -> str:
    camera = CameraModel.from_camera_info(message)
    return f'for {camera.width} x {camera.height} px'


def _odometry(raw: bytes) -> str:
    report = ego_report_from_bytes(raw, 0)
    return f'{report.base_frame or BASE_FRAME} in {report.frame_id or ODOMETRY_FRAME}'


def _px4_odometry(message: Any) -> str:
    # Whether its clock is ours, stamps say.
    report = ego_report_from_px4(message, px4_stamp_ns(message))
    return f'{report.base_frame} in {report.frame_id}, from PX4'


def view_topic(node: Node, wanted: Input) -> TopicView:
    """Return the ends of a topic, without this node's own."""
    topic = node.resolve_topic_name(wanted.topic)
    publishers = node.get_publishers_info_by_topic(topic)
    kind = message_type(wanted.kind)
    subscribers = [endpoint_of(info) for info in node.get_subscriptions_info_by_topic(topic)]
    # Who takes raw pictures from a ring takes the Image where there is none.
    rung = node.get_subscriptions_info_by_topic(doorbell_topic(topic))
    subscribers += [endpoint_of(info)._replace(msgtype=kind) for info in rung]
    return TopicView(
        topic,
        kind,
        tuple(endpoint_of(info) for info in publishers),
        tuple(end for end in subscribers if end.node != node.get_name()),
    )


def other_topics(node: Node, views: Mapping[str, TopicView]) -> dict[str, str]:
    """Return published topics that are neither inputs nor results of ours, with their type."""
    taken = {view.topic for view in views.values()}
    return {
        topic: types[0]
        for topic, types in node.get_topic_names_and_types()
        if topic not in taken and _RESULTS not in topic and node.count_publishers(topic)
    }


class GraphLook(Node):
    """Subscribes to the inputs as their publishers appear, and to what nodes say of themselves."""

    def __init__(self, inputs: Mapping[str, Input], **node_options: Any) -> None:
        super().__init__(NODE, **node_options)
        self._inputs = inputs
        self._heard: dict[str, _Heard] = {}
        self._statuses: dict[str, NodeStatus] = {}
        self._transforms: dict[str, str] = {}
        self._clock_ns: int | None = None
        self.create_subscription(DiagnosticArray, names.DIAGNOSTICS, self._on_status, 10)
        self.create_subscription(Clock, names.CLOCK, self._on_clock, qos.SENSOR)

    @property
    def others(self) -> list[str]:
        """Names of the other nodes."""
        return sorted({name for name in self.get_node_names() if name != self.get_name()})

    def look(self) -> None:
        """Subscribe to what has appeared, in the type that is wanted."""
        for name, wanted in self._inputs.items():
            ends = self.get_publishers_info_by_topic(self.resolve_topic_name(wanted.topic))
            kind = message_type(wanted.kind)
            if name == COMPRESSED and CAMERA in self._heard:
                continue  # a driver would compress its pictures for us alone
            if name not in self._heard and any(end.topic_type == kind for end in ends):
                self._subscribe(name, wanted)

    def view(self) -> GraphView:
        """Return what was seen so far."""
        views = {name: self._view(name, wanted) for name, wanted in self._inputs.items()}
        return GraphView(
            with_one_odometry(with_one_camera(views)),
            other_topics(self, views),
            tuple(self.others),
            tuple(self._statuses.values()),
            tuple(self._transforms.values()),
            self._clock_ns is not None,
        )

    def _subscribe(self, name: str, wanted: Input) -> None:
        heard = self._heard[name] = _Heard([], [])
        if name == STATIC_TRANSFORMS:
            self.create_subscription(
                wanted.kind, wanted.topic, self._on_transforms, qos.STATIC_TRANSFORMS
            )
            return

        def take(raw: Any) -> None:  # bytes, because raw
            heard.newest[:] = [raw]
            if len(heard.arrivals) < _MOST_ARRIVALS:
                with suppress(MmedgeError):  # judged when the newest message is read
                    heard.arrivals.append(TopicArrival(self._now_ns(), wanted.stamp_ns(raw)))

        self.create_subscription(wanted.kind, wanted.topic, take, qos.SENSOR, raw=True)

    def _view(self, name: str, wanted: Input) -> TopicView:
        view = view_topic(self, wanted)
        heard = self._heard.get(name)
        if heard is None or not heard.newest:
            return view
        view = view._replace(arrivals=tuple(heard.arrivals))
        try:
            message: Any = deserialize_message(heard.newest[0], wanted.kind)
            if hasattr(message, 'header'):  # those of PX4 have none
                view = view._replace(frame_id=message.header.frame_id)
            return view._replace(detail=wanted.read(heard.newest[0] if wanted.raw else message))
        except (MmedgeError, ValueError, TypeError, RuntimeError) as error:
            return view._replace(problem=brief(error))

    def _now_ns(self) -> int:
        return time.time_ns() if self._clock_ns is None else self._clock_ns

    def _on_clock(self, message: Clock) -> None:
        self._clock_ns = from_time(message.clock)

    def _on_transforms(self, message: Any) -> None:
        for transform in message.transforms:
            with suppress(MmedgeError):  # fusion leaves them out as well
                edge = transform_from_message(transform)
                self._transforms[edge.child] = format_static_transform(edge)

    def _on_status(self, message: DiagnosticArray) -> None:
        for status in message.status:
            if node_name(status):
                self._statuses[status.name] = node_status(status)


def node_status(status: Any) -> NodeStatus:
    """Return what a node of this package says of itself."""
    values = {value.key: value.value for value in status.values}
    degraded = values.get('degraded', '')
    return NodeStatus(
        node_name(status),
        status.level[0],
        status.message,
        tuple(degraded.split('; ')) if degraded else (),
    )


def take_snapshot(inputs: Mapping[str, Input]) -> GraphView:
    """Look at the graph: first who is there, then what they send."""
    with spinning(lambda context: GraphLook(inputs, context=context)) as (node, spin_once):
        settled = time.monotonic() + _SETTLING
        end = settled + _LISTENING
        while time.monotonic() < end and (time.monotonic() < settled or node.others):
            node.look()
            spin_once()
        return node.view()


def main(arguments: Sequence[str]) -> None:
    """Print a snapshot as JSON.

    :param arguments: topics of camera, radar and odometry ('': usual)
    """
    # Whatever a middleware prints goes elsewhere.
    out = os.dup(1)
    os.dup2(2, 1)
    text = take_snapshot(graph_inputs(*arguments)).to_json()
    with os.fdopen(out, 'w') as file:
        file.write(text)


if __name__ == '__main__':
    main(sys.argv[1:])
