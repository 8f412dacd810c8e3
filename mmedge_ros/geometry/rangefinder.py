"""Readings of rangefinders that look down: sensor_msgs/Range, and what PX4 sends.

A Range is measured along the x axis of its frame; field by field as the messages of ROS 2 and
px4_msgs say.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from mmedge_ros.core.data_types import NS_PER_S
from mmedge_ros.geometry import GeometryError

_NS_PER_US = 1_000
# ROTATION_DOWNWARD_FACING of px4_msgs/DistanceSensor.
_DOWNWARD = 25
# Beyond it no rangefinder of a drone reaches, m.
_FARTHEST = 1000.0
# What drivers call a beam whose frame nobody has described, and that looks down.
_LOOKS_DOWN = ('rangefinder', 'altimeter', 'down', 'bottom', 'ground', 'height')


class HeightReport(NamedTuple):
    """A reading as it was received: ``distance`` m to what is below.

    It is measured along x of ``frame_id``; '': straight down in the base, or, where it
    ``is_level``, in the world. ``looks_down``: whether an unknown frame may be taken for one that
    looks straight down.
    """

    available_ns: int
    stamp_ns: int
    distance: float
    frame_id: str = ''
    is_level: bool = False
    looks_down: bool = True


def height_from_range(message: Any, available_ns: int, topic: str = '') -> HeightReport | None:
    """Read a (duck-typed) sensor_msgs/Range; None where nothing was in reach.

    :raises GeometryError: for a distance that is none
    """
    distance, frame_id = float(message.range), message.header.frame_id.lstrip('/')
    if math.isinf(distance) or not message.min_range <= distance <= message.max_range:
        if math.isnan(distance):
            raise GeometryError('a range that is not a number')
        return None
    stamp = message.header.stamp
    named = f'{topic} {frame_id}'.lower()
    return _report(
        HeightReport(
            available_ns,
            stamp.sec * NS_PER_S + stamp.nanosec,
            distance,
            frame_id,
            looks_down=any(word in named for word in _LOOKS_DOWN),
        )
    )


def height_from_px4(message: Any, available_ns: int) -> HeightReport | None:
    """Read a (duck-typed) px4_msgs/DistanceSensor or px4_msgs/VehicleLocalPosition.

    :return: None where it looks elsewhere, nothing is in reach, or PX4 does not know
    :raises GeometryError: for a distance that is none
    """
    stamp_ns = int(getattr(message, 'timestamp_sample', 0) or message.timestamp) * _NS_PER_US
    if hasattr(message, 'dist_bottom'):
        if not message.dist_bottom_valid:
            return None
        level = HeightReport(available_ns, stamp_ns, float(message.dist_bottom), is_level=True)
        return _report(level)
    distance = float(message.current_distance)
    in_reach = message.min_distance <= distance <= message.max_distance
    if message.orientation != _DOWNWARD or message.signal_quality == 0 or not in_reach:
        return None
    return _report(HeightReport(available_ns, stamp_ns, distance))


def _report(report: HeightReport) -> HeightReport:
    if not 0.0 <= report.distance <= _FARTHEST:  # nor is NaN
        raise GeometryError(f'{report.distance:g} m to the ground')
    # PX4 counts from its start: what is of another clock is as old as its arrival.
    if abs(report.available_ns - report.stamp_ns) > NS_PER_S:
        return report._replace(stamp_ns=report.available_ns)
    return report
