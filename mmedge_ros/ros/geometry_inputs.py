"""What fusion must know of where things are: calibration, static transforms, ego motion.

The pip packages of ROS have neither tf2_msgs nor px4_msgs; there extrinsics come as parameters,
and ego motion as odometry only.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, Protocol

from nav_msgs.msg import Odometry
from rclpy.node import Node
from sensor_msgs.msg import CameraInfo

from mmedge_ros.geometry import GeometryError
from mmedge_ros.geometry.ego_motion import EgoReport, ego_states_from_transforms
from mmedge_ros.geometry.projection import CameraModel
from mmedge_ros.geometry.px4_odometry import ego_report_from_px4
from mmedge_ros.geometry.transforms import transform_from_message
from mmedge_ros.replay import BagError
from mmedge_ros.replay.wire_formats import ego_report_from_bytes
from mmedge_ros.ros.messages import names, qos
from mmedge_ros.ros.odometry_transform import OdometryTransform
from mmedge_ros.ros.waited_entities import defer

if TYPE_CHECKING:
    from mmedge_ros.pipeline.decision_worker import Task

# Where ego motion comes from, the better ones last: one that was heard silences those before.
_TRANSFORMS, _PX4, _ODOMETRY = range(3)


class Submit(Protocol):
    """Hands a task to the pipeline; one that is not urgent is done with the next that is."""

    def __call__(self, task: Task, urgent: bool = True) -> None: ...


class GeometryInputs:
    """Subscribes on behalf of a node and hands the messages to the pipeline as tasks.

    :param submit: takes a task for the pipeline
    :param wants_camera: whether the calibration is still unknown
    :param prefix: before the names of frames
    :param publishes: whether the odometry that comes is published as a transform, too
    """

    def __init__(
        self,
        node: Node,
        submit: Submit,
        wants_camera: bool,
        prefix: str = '',
        publishes: bool = False,
    ) -> None:
        self._node = node
        self._submit = submit
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
            self._node.get_logger().warning(
                f'camera_info not used: {err}', throttle_duration_sec=5.0
            )
            return
        self._submit(lambda pipeline, _: pipeline.rig.set_camera(camera))

    def _on_static_transforms(self, message: Any) -> None:
        usable = []
        for transform in message.transforms:
            try:
                usable.append(transform_from_message(transform))
            except GeometryError as err:
                self._node.get_logger().warning(f'transform not used: {err}')
        self._submit(lambda pipeline, _: pipeline.rig.add_transforms(usable))

    def _on_odometry(self, raw: bytes) -> None:
        try:
            report = ego_report_from_bytes(raw, 0)
        except (BagError, GeometryError) as err:
            self._node.get_logger().warning(f'not used: {err}', throttle_duration_sec=5.0)
            return
        self._add(report, _ODOMETRY)

    def _on_px4(self, message: Any) -> None:
        if self._source > _PX4:
            return
        now_ns = self._node.get_clock().now().nanoseconds
        try:
            self._add(ego_report_from_px4(message, now_ns), _PX4)
        except (GeometryError, AttributeError) as err:  # PX4 before 1.14 had other fields
            self._node.get_logger().warning(
                f"PX4's odometry not used: {err}", throttle_duration_sec=5.0
            )

    def _on_transforms(self, message: Any) -> None:
        if self._transform is not None:
            self._transform.heard(message)
        if self._source > _TRANSFORMS:
            return  # odometry knows velocities too
        try:
            for report in ego_states_from_transforms(message, 0, self._prefix):
                self._add(report, _TRANSFORMS)
        except GeometryError as err:
            self._node.get_logger().warning(
                f'transform not used: {err}', throttle_duration_sec=5.0
            )

    def _add(self, report: EgoReport, source: int) -> None:
        self._source = max(source, self._source)
        if self._transform is not None and source > _TRANSFORMS:
            self._transform.add(report)
        # It is looked at with the next unit.
        self._submit(
            lambda pipeline, _: pipeline.rig.add_ego_state(
                report.state, report.frame_id, report.base_frame
            ),
            urgent=False,
        )
