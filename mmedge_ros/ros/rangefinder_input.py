"""How high the drone is above the ground, for a node that places people on it."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from rclpy.node import Node
from sensor_msgs.msg import Range

from mmedge_ros.geometry import GeometryError
from mmedge_ros.geometry.rangefinder import HeightReport, height_from_px4, height_from_range
from mmedge_ros.ros.diagnostics import Refusals
from mmedge_ros.ros.geometry_inputs import Enter
from mmedge_ros.ros.messages import names, qos
from mmedge_ros.ros.waited_entities import defer


class RangefinderInput:
    """Subscribes on behalf of a node and enters in a rig what rangefinders say.

    :param enter: takes a change of the rig
    """

    def __init__(self, node: Node, enter: Enter) -> None:
        self._node, self._enter = node, enter
        self._refusals = Refusals(node)
        listen = node.create_subscription
        defer(listen(Range, names.RANGEFINDER, self._on_range, qos.FREQUENT_SENSOR))
        with suppress(ImportError):
            from px4_msgs.msg import DistanceSensor, VehicleLocalPosition

            for kind, topic in (
                (DistanceSensor, names.PX4_DISTANCE),
                (VehicleLocalPosition, names.PX4_LOCAL_POSITION),
            ):
                defer(listen(kind, topic, self._on_px4, qos.FREQUENT_SENSOR))

    def _on_range(self, message: Range) -> None:
        with self._refusals.of('range'):
            self._add(height_from_range(message, self._now_ns(), names.RANGEFINDER))

    def _on_px4(self, message: Any) -> None:
        try:
            self._add(height_from_px4(message, self._now_ns()))
        except (GeometryError, AttributeError) as err:  # other versions have other fields
            self._refusals.say("PX4's height", err)

    def _now_ns(self) -> int:
        return int(self._node.get_clock().now().nanoseconds)

    def _add(self, report: HeightReport | None) -> None:
        if report is not None:  # it is looked at with the next unit
            self._enter(lambda rig: rig.enter(report), urgent=False)
