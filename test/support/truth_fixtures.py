"""Recordings with a ground truth: of the box that moves through `bag_fixtures`' pictures."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from bag_fixtures import BEGIN_NS, LOG_DELAY_NS, STORE, TYPES, header, recording, write_bag
from rosbags.typesys import get_types_from_msg

GROUND_TRUTH = '/ground_truth'
TRUTH_TYPE = 'mmedge_ros/msg/GroundTruth'
OBJECT_TYPE = 'mmedge_ros/msg/GroundTruthObject'
REACH_TYPE = 'mmedge_ros/msg/GroundTruthReach'
_MESSAGES = Path(__file__).resolve().parents[2] / 'msg'

for _name in (OBJECT_TYPE, TRUTH_TYPE, REACH_TYPE):
    _text = (_MESSAGES / f'{_name.rpartition("/")[2]}.msg').read_text()
    STORE.register(get_types_from_msg(_text, _name))


def vector(x: float, y: float, z: float) -> Any:
    return TYPES['geometry_msgs/msg/Vector3'](x=float(x), y=float(y), z=float(z))


def point(x: float, y: float, z: float) -> Any:
    return TYPES['geometry_msgs/msg/Point'](x=float(x), y=float(y), z=float(z))


def true_object(number: int = 1, **fields: Any) -> Any:
    """A person 5 m ahead in a box of 12 by 24 px."""
    known = {
        'id': number,
        'label': 'person',
        'in_picture': True,
        'box': np.array([8.0, 12.0, 20.0, 36.0], np.float32),
        'visibility': 1.0,
        'position': point(5.0, 0.0, -0.85),
        'velocity': vector(0.0, 0.0, 0.0),
    } | fields
    return TYPES[OBJECT_TYPE](**known)


def ground_truth(at: int, objects: list[Any], **fields: Any) -> Any:
    still = vector(0.0, 0.0, 0.0)
    known = {
        'header': header(at, 'odom'),
        'surroundings': 'meadow',
        'light': 'day',
        'distance': 'near',
        'pose': TYPES['geometry_msgs/msg/Pose'](
            position=point(0.0, 0.0, 0.0),
            orientation=TYPES['geometry_msgs/msg/Quaternion'](x=0.0, y=0.0, z=0.0, w=1.0),
        ),
        'twist': TYPES['geometry_msgs/msg/Twist'](linear=still, angular=still),
        'objects': objects,
    } | fields
    return TYPES[TRUTH_TYPE](**known)


def reach(at: int, ids: list[int], camera: list[bool], radar: list[float]) -> tuple[str, int, Any]:
    """Whom the sensors could see at the instant of a truth, in fog."""
    columns = np.array(ids, np.uint32), np.array(camera, np.bool_), np.array(radar, np.float32)
    message = TYPES[REACH_TYPE](header(at, 'odom'), 'fog', *columns)
    return f'{GROUND_TRUTH}/reach', at + LOG_DELAY_NS, message


def walker(number: int) -> Any:
    """The box in picture ``number``, which moves one pixel per frame, and where it stands."""
    left = 8.0 + number % 40
    return true_object(box=np.array([left, 12.0, left + 12.0, 36.0], np.float32))


def truths(
    duration: float = 1.0, make: Callable[[int, int], Any] | None = None
) -> list[tuple[str, int, Any]]:
    """A message for each picture; ``make(number, stamp_ns)`` for other ones than the walker's."""
    result = []
    for number in range(round(duration * 20.0)):
        at = BEGIN_NS + round(number * 1e9 / 20.0)
        if make is None:
            # In the frame of the tracks of a recording without odometry.
            message = ground_truth(at, [walker(number)], header=header(at, 'radar_link'))
        else:
            message = make(number, at)
        result.append((GROUND_TRUTH, at + LOG_DELAY_NS, message))
    return result


def recording_with_truth(
    duration: float = 1.0, make: Callable[[int, int], Any] | None = None
) -> list[tuple[str, int, Any]]:
    messages = recording(duration) + truths(duration, make)
    return sorted(messages, key=lambda entry: entry[1])


def write_short_flights(folder: Path, count: int, first: float) -> None:
    """Write recordings with truth from ``first`` seconds on, no two of the same length."""
    for number in range(count):
        messages = recording_with_truth(first + 0.1 * number)
        write_bag(folder / f'flight_{number}', messages=messages)
