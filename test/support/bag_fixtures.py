"""Builds little recordings: a camera and a radar that watch a box move to the right."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray
from rosbags.rosbag2 import CompressionFormat, CompressionMode, StoragePlugin, Writer
from rosbags.typesys import Stores, get_typestore

STORE = get_typestore(Stores.ROS2_KILTED)
TYPES = STORE.types
BEGIN_NS = 1_700_000_000_000_000_000
WIDTH, HEIGHT = 64, 48

CAMERA = '/camera/image_raw'
CAMERA_COMPRESSED = '/camera/image_raw/compressed'
CAMERA_INFO = '/camera/camera_info'
RADAR = '/radar/points'
TF_STATIC = '/tf_static'

# How fast the drone of `straight_flight` flies, m/s.
SPEED = 2.0
# What is logged is received this much after it was measured.
LOG_DELAY_NS = 3_000_000


def stamp(stamp_ns: int) -> Any:
    seconds, nanoseconds = divmod(stamp_ns, 1_000_000_000)
    return TYPES['builtin_interfaces/msg/Time'](sec=seconds, nanosec=nanoseconds)


def header(stamp_ns: int, frame_id: str) -> Any:
    return TYPES['std_msgs/msg/Header'](stamp=stamp(stamp_ns), frame_id=frame_id)


def picture(number: int) -> NDArray[np.uint8]:
    """A grey picture with a white box that moves one pixel per frame."""
    image = np.full((HEIGHT, WIDTH, 3), 40, np.uint8)
    image[12:36, 8 + number % 40 : 20 + number % 40] = 255
    return image


def image(number: int, stamp_ns: int) -> Any:
    return TYPES['sensor_msgs/msg/Image'](
        header=header(stamp_ns, 'camera_optical_frame'),
        height=HEIGHT,
        width=WIDTH,
        encoding='bgr8',
        is_bigendian=0,
        step=3 * WIDTH,
        data=picture(number).reshape(-1),
    )


def compressed_image(number: int, stamp_ns: int) -> Any:
    done, data = cv2.imencode('.jpg', picture(number))
    assert done
    return TYPES['sensor_msgs/msg/CompressedImage'](
        header=header(stamp_ns, 'camera_optical_frame'), format='bgr8; jpeg compressed', data=data
    )


def camera_info(stamp_ns: int) -> Any:
    roi = TYPES['sensor_msgs/msg/RegionOfInterest'](
        x_offset=0, y_offset=0, height=0, width=0, do_rectify=False
    )
    k = np.array([50.0, 0, WIDTH / 2, 0, 50.0, HEIGHT / 2, 0, 0, 1])
    return TYPES['sensor_msgs/msg/CameraInfo'](
        header=header(stamp_ns, 'camera_optical_frame'),
        height=HEIGHT,
        width=WIDTH,
        distortion_model='plumb_bob',
        d=np.zeros(5),
        k=k,
        r=np.eye(3).reshape(-1),
        p=np.insert(k, [3, 6, 9], 0.0),
        binning_x=0,
        binning_y=0,
        roi=roi,
    )


def point_cloud(number: int, stamp_ns: int) -> Any:
    """Three returns of the box and one of a wall."""
    side = 0.02 * (number % 40)
    rows = [[5.0, side, z, 0.5] for z in (-0.3, 0.0, 0.3)] + [[9.0, 2.0, 0.0, 0.0]]
    points = np.array(rows, np.float32)
    field = TYPES['sensor_msgs/msg/PointField']
    return TYPES['sensor_msgs/msg/PointCloud2'](
        header=header(stamp_ns, 'radar_link'),
        height=1,
        width=len(points),
        fields=[
            field(name=name, offset=4 * place, datatype=7, count=1)
            for place, name in enumerate(('x', 'y', 'z', 'velocity'))
        ],
        is_bigendian=False,
        point_step=16,
        row_step=16 * len(points),
        data=points.view(np.uint8).reshape(-1),
        is_dense=True,
    )


def static_transforms(stamp_ns: int, w: float = 0.5) -> Any:
    vector, quaternion = TYPES['geometry_msgs/msg/Vector3'], TYPES['geometry_msgs/msg/Quaternion']
    transform = TYPES['geometry_msgs/msg/Transform'](
        translation=vector(x=0.0, y=-0.07, z=-0.05),
        rotation=quaternion(x=-w, y=w, z=-w, w=w),
    )
    edge = TYPES['geometry_msgs/msg/TransformStamped'](
        header=header(stamp_ns, 'radar_link'),
        child_frame_id='camera_optical_frame',
        transform=transform,
    )
    return TYPES['tf2_msgs/msg/TFMessage'](transforms=[edge])


def serialized(message: Any) -> bytes:
    return bytes(STORE.serialize_cdr(message, message.__msgtype__))


def recording(
    duration: float = 1.0, camera_rate: float = 20.0, radar_rate: float = 25.0
) -> list[tuple[str, int, Any]]:
    """Messages of a flight as (topic, log time, message), in log-time order."""
    found: list[tuple[str, int, Any]] = [(TF_STATIC, BEGIN_NS, static_transforms(BEGIN_NS))]
    for number in range(round(duration * camera_rate)):
        at = BEGIN_NS + round(number * 1e9 / camera_rate)
        found.append((CAMERA_COMPRESSED, at + LOG_DELAY_NS, compressed_image(number, at)))
        found.append((CAMERA_INFO, at + LOG_DELAY_NS, camera_info(at)))
    for number in range(round(duration * radar_rate)):
        at = BEGIN_NS + round(number * 1e9 / radar_rate)
        found.append((RADAR, at + LOG_DELAY_NS, point_cloud(number, at)))
    return sorted(found, key=lambda entry: entry[1])


def odometry(at: int, x: float = 0.0) -> Any:
    vector, point = TYPES['geometry_msgs/msg/Vector3'], TYPES['geometry_msgs/msg/Point']
    still = vector(x=0.0, y=0.0, z=0.0)
    pose = TYPES['geometry_msgs/msg/Pose'](
        position=point(x=x, y=0.0, z=0.0),
        orientation=TYPES['geometry_msgs/msg/Quaternion'](x=0.0, y=0.0, z=0.0, w=1.0),
    )
    twist = TYPES['geometry_msgs/msg/Twist'](linear=vector(x=SPEED, y=0.0, z=0.0), angular=still)
    return TYPES['nav_msgs/msg/Odometry'](
        header=header(at, 'odom'),
        child_frame_id='radar_link',
        pose=TYPES['geometry_msgs/msg/PoseWithCovariance'](pose=pose, covariance=np.zeros(36)),
        twist=TYPES['geometry_msgs/msg/TwistWithCovariance'](twist=twist, covariance=np.zeros(36)),
    )


def moving_frame(at: int, x: float) -> Any:
    transform = TYPES['geometry_msgs/msg/Transform'](
        translation=TYPES['geometry_msgs/msg/Vector3'](x=x, y=0.0, z=0.0),
        rotation=TYPES['geometry_msgs/msg/Quaternion'](x=0.0, y=0.0, z=0.0, w=1.0),
    )
    edge = TYPES['geometry_msgs/msg/TransformStamped'](
        header=header(at, 'odom'), child_frame_id='base_link', transform=transform
    )
    return TYPES['tf2_msgs/msg/TFMessage'](transforms=[edge])


def straight_flight(topic: str, duration: float = 1.5) -> list[tuple[str, int, Any]]:
    """A drone that flies straight ahead, with odometry or moving transforms on ``topic``."""
    messages = recording(duration)
    for number in range(round(duration * 50)):
        at, x = BEGIN_NS + number * 20_000_000, SPEED * number / 50
        message = odometry(at, x) if topic == '/odom' else moving_frame(at, x)
        messages.append((topic, at + 1_000_000, message))
    return sorted(messages, key=lambda entry: entry[1])


def write_bag(
    path: Path,
    storage: str = 'mcap',
    messages: Iterable[tuple[str, int, Any]] | None = None,
    compression: str = 'none',
) -> Path:
    """Write a rosbag2 folder and return its path.

    ``storage`` is mcap or sqlite3, ``compression`` one of none, file, message or storage. A
    message is an object of ``STORE``, or a pair of its type and raw bytes.
    """
    writer = Writer(path, version=9, storage_plugin=StoragePlugin[storage.upper()])
    writer.set_compression(CompressionMode[compression.upper()], CompressionFormat.ZSTD)
    with writer:
        _write(writer, recording() if messages is None else messages)
    return path


def _write(writer: Writer, messages: Iterable[tuple[str, int, Any]]) -> None:
    connections: dict[str, Any] = {}
    for topic, log_ns, message in messages:
        msgtype, raw = (
            message if isinstance(message, tuple) else (message.__msgtype__, serialized(message))
        )
        if topic not in connections:
            connections[topic] = writer.add_connection(topic, msgtype, typestore=STORE)
        writer.write(connections[topic], log_ns, raw)
