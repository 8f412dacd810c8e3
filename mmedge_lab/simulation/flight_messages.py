"""The messages of a flight, made from plain values. Frames follow REP-103 and REP-105."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mmedge_lab.simulation.camera import as_jpeg
from mmedge_lab.simulation.flight_bag import flight_types
from mmedge_lab.simulation.hard_sensors import (
    RANGE_FIELD,
    RANGE_LEAST,
    RANGE_MOST,
    InertialReading,
)
from mmedge_lab.simulation.odometry import (
    ANGULAR_VELOCITY_NOISE,
    ATTITUDE_NOISE,
    POSITION_NOISE,
    VELOCITY_NOISE,
)
from mmedge_lab.simulation.system_dynamics import BatteryReading
from mmedge_ros.core.data_types import NS_PER_S, FloatArray
from mmedge_ros.geometry.ego_motion import ODOMETRY_FRAME, EgoState
from mmedge_ros.geometry.projection import CameraModel
from mmedge_ros.geometry.sensor_poses import BASE_FRAME
from mmedge_ros.geometry.transforms import Transform, quaternion_from_rotation
from mmedge_ros.monitoring.system_state import SystemState
from mmedge_ros.replay.ground_truth import TrueObject, TrueScene

CAMERA_FRAME = 'camera_optical_frame'
RADAR_FRAME = 'radar_link'
RANGE_FRAME = 'rangefinder_link'

_RADAR_FIELDS = ('x', 'y', 'z', 'velocity', 'snr', 'noise')
_INFRARED = 1  # sensor_msgs/Range, which has no word for lasers
_FLOAT32 = 7  # sensor_msgs/PointField
_DISCHARGING, _HEALTH_GOOD, _LITHIUM_POLYMER = 2, 1, 3  # sensor_msgs/BatteryState


class FlightMessages:
    """Makes messages and turns them into CDR bytes.

    :raises SimulationError: if the definitions of our messages are not found
    """

    def __init__(self) -> None:
        self._store = flight_types()
        self._types = self._store.types

    def serialized(self, message: Any) -> bytes:
        """Return the CDR bytes of a message."""
        return bytes(self._store.serialize_cdr(message, message.__msgtype__))

    def compressed_image(self, stamp_ns: int, picture: NDArray[np.uint8]) -> Any:
        """Return a JPEG of a (H, W, 3) BGR picture."""
        data = np.frombuffer(as_jpeg(picture), np.uint8)
        return self._make(
            'sensor_msgs/msg/CompressedImage',
            header=self._header(stamp_ns, CAMERA_FRAME),
            format='bgr8; jpeg compressed bgr8',
            data=data,
        )

    def camera_info(self, stamp_ns: int, camera: CameraModel) -> Any:
        """Return the camera's calibration."""
        projection = np.zeros((3, 4))
        projection[:, :3] = camera.k
        return self._make(
            'sensor_msgs/msg/CameraInfo',
            header=self._header(stamp_ns, CAMERA_FRAME),
            height=camera.height,
            width=camera.width,
            distortion_model=camera.model,
            d=np.array(camera.d, np.float64),
            k=camera.k.reshape(-1),
            r=np.eye(3).reshape(-1),
            p=projection.reshape(-1),
            binning_x=0,
            binning_y=0,
            roi=self._make(
                'sensor_msgs/msg/RegionOfInterest',
                x_offset=0,
                y_offset=0,
                height=0,
                width=0,
                do_rectify=False,
            ),
        )

    def points(self, stamp_ns: int, returns: NDArray[np.float32]) -> Any:
        """Return a scan of (N, 6) returns: x, y, z, velocity, snr, noise."""
        rows = np.ascontiguousarray(returns, '<f4').reshape(-1, len(_RADAR_FIELDS))
        step = 4 * len(_RADAR_FIELDS)
        return self._make(
            'sensor_msgs/msg/PointCloud2',
            header=self._header(stamp_ns, RADAR_FRAME),
            height=1,
            width=len(rows),
            fields=[
                self._make(
                    'sensor_msgs/msg/PointField',
                    name=name,
                    offset=4 * place,
                    datatype=_FLOAT32,
                    count=1,
                )
                for place, name in enumerate(_RADAR_FIELDS)
            ],
            is_bigendian=False,
            point_step=step,
            row_step=step * len(rows),
            data=rows.reshape(-1).view(np.uint8),
            is_dense=True,
        )

    def odometry(self, stamp_ns: int, reading: EgoState) -> Any:
        """Return the base's pose in odom, and its twist, which belongs to the base's axes."""
        in_base = reading.pose.rotation.T
        still = np.zeros(3)
        velocity = still if reading.velocity is None else reading.velocity
        turning = still if reading.angular_velocity is None else reading.angular_velocity
        return self._make(
            'nav_msgs/msg/Odometry',
            header=self._header(stamp_ns, ODOMETRY_FRAME),
            child_frame_id=BASE_FRAME,
            pose=self._make(
                'geometry_msgs/msg/PoseWithCovariance',
                pose=self._pose(reading.pose),
                covariance=_diagonal(POSITION_NOISE, ATTITUDE_NOISE),
            ),
            twist=self._make(
                'geometry_msgs/msg/TwistWithCovariance',
                twist=self._twist(in_base @ velocity, in_base @ turning),
                covariance=_diagonal(VELOCITY_NOISE, ANGULAR_VELOCITY_NOISE),
            ),
        )

    def battery(self, stamp_ns: int, reading: BatteryReading) -> Any:
        """Return the flight battery's state."""
        return self._make(
            'sensor_msgs/msg/BatteryState',
            header=self._header(stamp_ns, BASE_FRAME),
            voltage=reading.voltage,
            temperature=reading.temperature,
            # The message counts charging as positive.
            current=-reading.current,
            charge=math.nan,
            capacity=math.nan,
            design_capacity=math.nan,
            percentage=reading.charge,
            power_supply_status=_DISCHARGING,
            power_supply_health=_HEALTH_GOOD,
            power_supply_technology=_LITHIUM_POLYMER,
            present=True,
            cell_voltage=np.zeros(0, np.float32),
            cell_temperature=np.zeros(0, np.float32),
            location='flight battery',
            serial_number='',
        )

    def inertial(self, stamp_ns: int, reading: InertialReading) -> Any:
        """Return attitude, turn rate and specific force of the base."""
        unknown = np.zeros(9)
        return self._make(
            'sensor_msgs/msg/Imu',
            header=self._header(stamp_ns, BASE_FRAME),
            orientation=self._quaternion(reading.rotation),
            orientation_covariance=unknown,
            angular_velocity=self._vector(reading.turning),
            angular_velocity_covariance=unknown,
            linear_acceleration=self._vector(reading.force),
            linear_acceleration_covariance=unknown,
        )

    def range(self, stamp_ns: int, distance: float) -> Any:
        """Return what a laser measured straight down."""
        return self._make(
            'sensor_msgs/msg/Range',
            header=self._header(stamp_ns, RANGE_FRAME),
            radiation_type=_INFRARED,
            field_of_view=RANGE_FIELD,
            min_range=RANGE_LEAST,
            max_range=RANGE_MOST,
            range=distance,
            variance=0.0,
        )

    def system_state(self, stamp_ns: int, state: SystemState) -> Any:
        """Return the state of computer and supply."""
        return self._make(
            'mmedge_ros/msg/SystemState',
            header=self._header(stamp_ns, BASE_FRAME),
            voltage=state.voltage,
            current=state.current,
            power=state.power,
            charge=state.charge,
            cpu=np.array(state.cpu, np.float32),
            gpu=state.gpu,
            memory=state.memory,
            temperature=state.temperature,
            cpu_clock=np.array(state.cpu_clock, np.float32),
            gpu_clock=state.gpu_clock,
            throttled=state.throttled,
        )

    def static_transforms(self, stamp_ns: int, children: Sequence[tuple[str, Transform]]) -> Any:
        """Return the sensors' poses in base_link."""
        return self._make(
            'tf2_msgs/msg/TFMessage',
            transforms=[
                self._make(
                    'geometry_msgs/msg/TransformStamped',
                    header=self._header(stamp_ns, BASE_FRAME),
                    child_frame_id=child,
                    transform=self._make(
                        'geometry_msgs/msg/Transform',
                        translation=self._vector(pose.translation),
                        rotation=self._quaternion(pose.rotation),
                    ),
                )
                for child, pose in children
            ],
        )

    def ground_truth(
        self, scene: TrueScene, pose: Transform, velocity: ArrayLike, angular_velocity: ArrayLike
    ) -> Any:
        """Return what is really there, and where the drone really is."""
        return self._make(
            'mmedge_ros/msg/GroundTruth',
            header=self._header(scene.stamp_ns, scene.frame_id),
            surroundings=scene.surroundings,
            light=scene.light,
            distance=scene.distance,
            pose=self._pose(pose),
            twist=self._twist(velocity, angular_velocity),
            objects=[self._true_object(item) for item in scene.objects],
        )

    def reach(self, scene: TrueScene) -> Any:
        """Return whom the sensors of a hard flight could see."""
        return self._make(
            'mmedge_ros/msg/GroundTruthReach',
            header=self._header(scene.stamp_ns, scene.frame_id),
            condition=scene.condition,
            ids=np.array([item.id for item in scene.objects], np.uint32),
            camera=np.array([item.clear for item in scene.objects], np.bool_),
            radar=np.array([item.radar for item in scene.objects], np.float32),
        )

    def _true_object(self, item: TrueObject) -> Any:
        box = item.box or (0.0, 0.0, 0.0, 0.0)
        return self._make(
            'mmedge_ros/msg/GroundTruthObject',
            id=item.id,
            label=item.label,
            in_picture=item.box is not None,
            box=np.array(box, np.float32),
            visibility=float(item.visibility),
            position=self._make('geometry_msgs/msg/Point', **_xyz(item.position)),
            velocity=self._vector(item.velocity),
        )

    def _make(self, msgtype: str, /, **fields: Any) -> Any:
        return self._types[msgtype](**fields)

    def _header(self, stamp_ns: int, frame_id: str) -> Any:
        seconds, nanoseconds = divmod(stamp_ns, NS_PER_S)
        return self._make(
            'std_msgs/msg/Header',
            stamp=self._make('builtin_interfaces/msg/Time', sec=seconds, nanosec=nanoseconds),
            frame_id=frame_id,
        )

    def _pose(self, pose: Transform) -> Any:
        return self._make(
            'geometry_msgs/msg/Pose',
            position=self._make('geometry_msgs/msg/Point', **_xyz(pose.translation)),
            orientation=self._quaternion(pose.rotation),
        )

    def _twist(self, linear: ArrayLike, angular: ArrayLike) -> Any:
        return self._make(
            'geometry_msgs/msg/Twist', linear=self._vector(linear), angular=self._vector(angular)
        )

    def _vector(self, values: ArrayLike) -> Any:
        return self._make('geometry_msgs/msg/Vector3', **_xyz(values))

    def _quaternion(self, rotation: FloatArray) -> Any:
        x, y, z, w = quaternion_from_rotation(rotation)
        return self._make('geometry_msgs/msg/Quaternion', x=x, y=y, z=z, w=w)


def _xyz(values: ArrayLike) -> dict[str, float]:
    x, y, z = (float(value) for value in np.asarray(values, np.float64))
    return {'x': x, 'y': y, 'z': z}


def _diagonal(linear: float, angular: float) -> FloatArray:
    """Return a (36,) covariance whose six variances are those of three and three axes."""
    return np.diag([linear**2] * 3 + [angular**2] * 3).reshape(-1)
