"""Writes a flight's messages as a rosbag2 recording (mcap)."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import yaml
from rosbags.interfaces import (
    Qos,
    QosDurability,
    QosHistory,
    QosLiveliness,
    QosReliability,
    QosTime,
)
from rosbags.rosbag2 import StoragePlugin, Writer

from mmedge_ros.lab.simulation.flight_folder import FLIGHT_FILE, FlightDescription
from mmedge_ros.lab.simulation.message_types import flight_types

CAMERA = '/camera/image/compressed'
CAMERA_INFO = '/camera/camera_info'
RADAR = '/radar/points'
ODOMETRY = '/odom'
BATTERY = '/battery_state'
SYSTEM = '/system_state'
TF_STATIC = '/tf_static'
GROUND_TRUTH = '/ground_truth'

TOPICS = {
    CAMERA: 'sensor_msgs/msg/CompressedImage',
    CAMERA_INFO: 'sensor_msgs/msg/CameraInfo',
    RADAR: 'sensor_msgs/msg/PointCloud2',
    ODOMETRY: 'nav_msgs/msg/Odometry',
    BATTERY: 'sensor_msgs/msg/BatteryState',
    SYSTEM: 'mmedge_ros/msg/SystemState',
    TF_STATIC: 'tf2_msgs/msg/TFMessage',
    GROUND_TRUTH: 'mmedge_ros/msg/GroundTruth',
}
_LATCHED = (TF_STATIC,)
_TRACE = (BATTERY, SYSTEM)
_RESULTS = (GROUND_TRUTH, SYSTEM)
_FOREVER = QosTime(9_223_372_036, 854_775_807)


class FlightRecord(NamedTuple):
    """A message as it will lie in the recording: when it was received, and its CDR bytes."""

    log_ns: int
    topic: str
    raw: bytes


def write_flight(
    folder: Path, description: FlightDescription, records: Iterable[FlightRecord]
) -> None:
    """Write records, which come in the order of their log times, into a new folder.

    :raises OSError: when the disk is full or the folder cannot be made
    """
    store = flight_types()
    writer = Writer(folder, version=9, storage_plugin=StoragePlugin.MCAP)
    values = description.values()
    for key, value in values.items():
        writer.set_custom_data(key, str(value))
    with writer:
        connections = {
            topic: writer.add_connection(
                topic, msgtype, typestore=store, offered_qos_profiles=[_offered(topic)]
            )
            for topic, msgtype in TOPICS.items()
            if topic in _TRACE or not description.trace_only
        }
        for record in records:
            writer.write(connections[record.topic], record.log_ns, record.raw)
    # Last: a folder with this file is whole.
    text = yaml.safe_dump(values, sort_keys=False)
    (folder / FLIGHT_FILE).write_text(text, encoding='utf-8')


def _offered(topic: str) -> Qos:
    """Return what a publisher offers: sensors send their best, static facts stay."""
    latched = topic in _LATCHED
    reliable = latched or topic in _RESULTS
    return Qos(
        QosHistory.KEEP_LAST,
        1 if latched else 5,
        QosReliability.RELIABLE if reliable else QosReliability.BEST_EFFORT,
        QosDurability.TRANSIENT_LOCAL if latched else QosDurability.VOLATILE,
        _FOREVER,
        _FOREVER,
        QosLiveliness.AUTOMATIC,
        _FOREVER,
        False,
    )
