"""Writes a flight's messages as a rosbag2 recording (mcap), without a ROS installation."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from functools import lru_cache
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
from rosbags.interfaces.typing import Typesdict
from rosbags.rosbag2 import StoragePlugin
from rosbags.typesys import Stores, get_types_from_msg, get_typestore
from rosbags.typesys.store import Typestore

from mmedge_lab.simulation import SimulationError
from mmedge_lab.simulation.flight_folder import FLIGHT_FILE, FlightDescription
from mmedge_ros.replay.checked_mcap import CheckedWriter

CAMERA = '/camera/image/compressed'
CAMERA_INFO = '/camera/camera_info'
RADAR = '/radar/points'
ODOMETRY = '/odom'
BATTERY = '/battery_state'
SYSTEM = '/system_state'
TF_STATIC = '/tf_static'
GROUND_TRUTH = '/ground_truth'
GROUND_TRUTH_REACH = '/ground_truth/reach'
INERTIAL = '/imu/data'
RANGE = '/rangefinder/range'

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
# Of hard flights only.
HARD_TOPICS = {
    GROUND_TRUTH_REACH: 'mmedge_ros/msg/GroundTruthReach',
    INERTIAL: 'sensor_msgs/msg/Imu',
    RANGE: 'sensor_msgs/msg/Range',
}
_LATCHED = (TF_STATIC,)
_TRACE = (BATTERY, SYSTEM)
_RESULTS = (GROUND_TRUTH, GROUND_TRUTH_REACH, SYSTEM)
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
    writer = CheckedWriter(folder, version=9, storage_plugin=StoragePlugin.MCAP)
    values = description.values()
    for key, value in values.items():
        writer.set_custom_data(key, str(value))
    topics = TOPICS | (HARD_TOPICS if description.condition else {})
    with writer:
        connections = {
            topic: writer.add_connection(
                topic, msgtype, typestore=store, offered_qos_profiles=[_offered(topic)]
            )
            for topic, msgtype in topics.items()
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


_PACKAGE = 'mmedge_ros'
_NEEDED = ('GroundTruth', 'GroundTruthObject', 'GroundTruthReach', 'SystemState')


@lru_cache(maxsize=1)
def flight_types() -> Typestore:
    """Return the types a flight is written with.

    :raises SimulationError: if the definitions of our own messages are not found
    """
    folder = definition_folder(_candidates())
    store = get_typestore(Stores.ROS2_KILTED)
    definitions: Typesdict = {}
    for name in _NEEDED:
        text = (folder / f'{name}.msg').read_text(encoding='utf-8')
        definitions.update(get_types_from_msg(text, f'{_PACKAGE}/msg/{name}'))
    store.register(definitions)
    return store


def definition_folder(candidates: list[Path]) -> Path:
    """Return the first folder that holds the definitions of our messages.

    :raises SimulationError: if none does
    """
    for folder in candidates:
        if all((folder / f'{name}.msg').is_file() for name in _NEEDED):
            return folder
    looked = ', '.join(map(str, candidates))
    raise SimulationError(
        f'the definitions of our messages ({_NEEDED[0]}.msg ...) are in none of {looked}; '
        'run ./mmedge once in the sources, or put the share folder of an installed '
        f'{_PACKAGE} below a folder that AMENT_PREFIX_PATH names'
    )


def _candidates() -> list[Path]:
    """Return where they may be: beside the sources, or below an installation prefix."""
    sources = Path(__file__).resolve().parents[2] / 'msg'
    listed = os.environ.get('AMENT_PREFIX_PATH', '').split(os.pathsep)
    prefixes = [Path(prefix) for prefix in (*listed, sys.prefix) if prefix]
    shares = [prefix / 'share' / _PACKAGE / 'msg' for prefix in dict.fromkeys(prefixes)]
    return [sources, *shares]
