"""Where things are: calibration, static transforms, ego motion, and odometry as a transform.

The pip packages of ROS have neither tf2_msgs nor px4_msgs; there extrinsics come as parameters,
and ego motion as odometry only.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Protocol

from geometry_msgs.msg import Quaternion, TransformStamped, Vector3
from nav_msgs.msg import Odometry
from rclpy.node import Node
from sensor_msgs.msg import CameraInfo

from mmedge_ros.core.data_types import NS_PER_S
from mmedge_ros.core.parameter import parameter
from mmedge_ros.geometry import GeometryError
from mmedge_ros.geometry.calibration import read_calibration
from mmedge_ros.geometry.ego_motion import (
    ODOMETRY_FRAME,
    EgoReport,
    ego_states_from_transforms,
)
from mmedge_ros.geometry.projection import CameraModel
from mmedge_ros.geometry.px4_odometry import ego_report_from_px4
from mmedge_ros.geometry.sensor_poses import BASE_FRAME
from mmedge_ros.geometry.sensor_rig import SensorRig
from mmedge_ros.geometry.transforms import (
    Transform,
    parse_static_transform,
    prefixed,
    quaternion_from_rotation,
    transform_from_message,
)
from mmedge_ros.replay import BagError
from mmedge_ros.replay.wire_formats import ego_report_from_bytes
from mmedge_ros.ros.diagnostics import Refusals
from mmedge_ros.ros.messages import names, qos
from mmedge_ros.ros.messages.conversions import from_time, header
from mmedge_ros.ros.waited_entities import defer


def frame_prefix() -> Any:
    """Declare the prefix of frames, for every node that looks frames up."""
    return parameter(
        '',
        'before the name of every frame that does not begin with it, such as drone1/: for '
        'several drones in one tree of transforms',
    )


@dataclass(frozen=True)
class RigParameters:
    """Where the sensors sit."""

    calibration_file: str = parameter(
        '', 'camera_info YAML (and transforms) that takes the place of what is published'
    )
    transforms: tuple[str, ...] = parameter(
        (), 'static transforms, each "parent child x y z qx qy qz qw" in m'
    )
    frame_prefix: str = frame_prefix()


def set_up_rig(rig: SensorRig, parameters: RigParameters) -> None:
    """Enter static transforms, and a calibration that takes the place of what is published.

    :raises GeometryError: if a transform or the calibration cannot be read
    """
    rig.prefix = parameters.frame_prefix
    rig.add_transforms([parse_static_transform(t) for t in parameters.transforms])
    if parameters.calibration_file:
        calibration = read_calibration(parameters.calibration_file)
        rig.add_transforms(calibration.transforms)
        if calibration.camera is not None:
            rig.set_camera(calibration.camera)


# Other publishers are listened for before the first transform, s.
_LISTENING = 1.0
# An autopilot sends a hundred poses a second and more; who draws them interpolates.
_SHORTEST_NS = 20_000_000
# Of our own, that come back on /tf: more than its subscription holds.
_REMEMBERED = 200


def to_transform(parent: str, child: str, pose: Transform, stamp_ns: int = 0) -> TransformStamped:
    """Make the message of an edge of the transform tree."""
    edge = TransformStamped(header=header(stamp_ns, parent), child_frame_id=child)
    x, y, z = map(float, pose.translation)
    edge.transform.translation = Vector3(x=x, y=y, z=z)
    x, y, z, w = quaternion_from_rotation(pose.rotation)
    edge.transform.rotation = Quaternion(x=x, y=y, z=z, w=w)
    return edge


class OdometryTransform:
    """Begins a second after the first odometry, and ends for good where another node publishes.

    :param kind: class of tf2_msgs/TFMessage
    :param prefix: before the names of both frames
    :param monotonic: seconds on the monotonic clock
    """

    def __init__(
        self,
        node: Node,
        kind: type,
        prefix: str = '',
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self.state = 'no odometry'
        self._say = node.get_logger().info
        self._kind = kind
        self._prefix = prefix
        self._monotonic = monotonic
        self._begun_at: float | None = None
        self._is_left = False
        self._child = ''
        self._sent: deque[int] = deque(maxlen=_REMEMBERED)
        self._output: Any = node.create_publisher(kind, names.TRANSFORMS, qos.RESULT)

    def add(self, report: EgoReport) -> None:
        """Publish a pose that odometry reports, unless it is to be left to another node."""
        now = self._monotonic()
        if self._begun_at is None:
            self._begun_at = now
        self._child = prefixed(self._prefix, report.base_frame or BASE_FRAME)
        since_ns = report.state.stamp_ns - self._sent[-1] if self._sent else _SHORTEST_NS
        is_too_early = -NS_PER_S < since_ns < _SHORTEST_NS
        if self._is_left or now - self._begun_at < _LISTENING or is_too_early:
            return
        parent = prefixed(self._prefix, report.frame_id or ODOMETRY_FRAME)
        self.state = f'{parent} -> {self._child} is published'
        self._sent.append(report.state.stamp_ns)
        edge = to_transform(parent, self._child, report.state.pose, report.state.stamp_ns)
        self._output.publish(self._kind(transforms=[edge]))

    def heard(self, message: Any) -> None:
        """Look for another publisher of the same transform in a message from /tf."""
        for edge in () if self._is_left else message.transforms:
            is_same = edge.child_frame_id.lstrip('/') == self._child
            if is_same and from_time(edge.header.stamp) not in self._sent:
                self._is_left = True
                self.state = f'{edge.header.frame_id} -> {self._child} comes from another node'
                self._say(f'{self.state}: this node publishes none')
                return


# Where ego motion comes from, the better ones last: one that was heard silences those before.
_TRANSFORMS, _PX4, _ODOMETRY = range(3)


class Enter(Protocol):
    """Has something entered in a rig; what is not urgent, with the next that is."""

    def __call__(self, change: Callable[[SensorRig], object], urgent: bool = True) -> object: ...


def at_once(rig: SensorRig) -> Enter:
    """Return what enters changes in a rig of the node's own, in its thread."""

    def enter(change: Callable[[SensorRig], object], urgent: bool = True) -> None:
        del urgent
        change(rig)

    return enter


class GeometryInputs:
    """Subscribes on behalf of a node and enters in a rig what messages say.

    :param enter: takes a change of the rig
    :param wants_camera: whether the calibration is still unknown
    :param prefix: before the names of frames
    :param publishes: whether the odometry that comes is published as a transform, too
    """

    def __init__(
        self,
        node: Node,
        enter: Enter,
        wants_camera: bool,
        prefix: str = '',
        publishes: bool = False,
    ) -> None:
        self._node = node
        self._refusals = Refusals(node)
        self._enter = enter
        self._prefix = prefix
        self._transform: OdometryTransform | None = None
        self._calibration: tuple[Any, ...] = ()
        self._source = _TRANSFORMS
        self._subscriptions: list[Any] = []
        if wants_camera:
            self._listen(CameraInfo, names.CAMERA_INFO, self._on_camera_info, qos.SENSOR)
        # Ego motion comes often, and is looked up when a unit comes.
        defer(
            self._listen(
                Odometry, names.ODOMETRY, self._on_odometry, qos.FREQUENT_SENSOR, raw=True
            )
        )
        with suppress(ImportError):
            from px4_msgs.msg import VehicleOdometry

            defer(
                self._listen(
                    VehicleOdometry, names.PX4_ODOMETRY, self._on_px4, qos.FREQUENT_SENSOR
                )
            )
        try:
            from tf2_msgs.msg import TFMessage
        except ImportError:
            return
        self._listen(
            TFMessage,
            names.STATIC_TRANSFORMS,
            self._on_static_transforms,
            qos.STATIC_TRANSFORMS,
        )
        defer(self._listen(TFMessage, names.TRANSFORMS, self._on_transforms, qos.FREQUENT_SENSOR))
        if publishes:
            self._transform = OdometryTransform(node, TFMessage, prefix)

    def figures(self) -> dict[str, object]:
        """Return what diagnostics say of the transform that is published."""
        return {} if self._transform is None else {'transform': self._transform.state}

    def close(self) -> None:
        """Listen no more."""
        for subscription in self._subscriptions:
            self._node.destroy_subscription(subscription)
        self._subscriptions.clear()

    def _listen(self, *arguments: Any, **options: Any) -> Any:
        subscription = self._node.create_subscription(*arguments, **options)
        self._subscriptions.append(subscription)
        return subscription

    def _on_camera_info(self, message: CameraInfo) -> None:
        size = (message.width, message.height, message.distortion_model)
        calibration = (*size, *message.k, *message.d)
        if calibration == self._calibration:
            return
        self._calibration = calibration
        try:
            camera = CameraModel.from_camera_info(message)
        except GeometryError as err:
            self._refusals.say('camera_info', err)
            return
        self._enter(lambda rig: rig.set_camera(camera))

    def _on_static_transforms(self, message: Any) -> None:
        usable = []
        for transform in message.transforms:
            try:
                usable.append(transform_from_message(transform))
            except GeometryError as err:
                self._refusals.say('static transform', err)
        with self._refusals.of('transform'):  # it may close a cycle
            self._enter(lambda rig: rig.add_transforms(usable))

    def _on_odometry(self, raw: bytes) -> None:
        try:
            report = ego_report_from_bytes(raw, 0)
        except (BagError, GeometryError) as err:
            self._refusals.say('odometry', err)
            return
        self._add(report, _ODOMETRY)

    def _on_px4(self, message: Any) -> None:
        if self._source > _PX4:
            return
        now_ns = self._node.get_clock().now().nanoseconds
        try:
            self._add(ego_report_from_px4(message, now_ns), _PX4)
        except (GeometryError, AttributeError) as err:  # PX4 before 1.14 had other fields
            self._refusals.say("PX4's odometry", err)

    def _on_transforms(self, message: Any) -> None:
        if self._transform is not None:
            self._transform.heard(message)
        if self._source > _TRANSFORMS:
            return  # odometry knows velocities too
        try:
            for report in ego_states_from_transforms(message, 0, self._prefix):
                self._add(report, _TRANSFORMS)
        except GeometryError as err:
            self._refusals.say('transform', err)

    def _add(self, report: EgoReport, source: int) -> None:
        self._source = max(source, self._source)
        if self._transform is not None and source > _TRANSFORMS:
            self._transform.add(report)
        # It is looked at with the next unit.
        self._enter(
            lambda rig: rig.add_ego_state(report.state, report.frame_id, report.base_frame),
            urgent=False,
        )
