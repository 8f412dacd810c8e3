"""The input of an encoder: one topic, or for raw pictures whichever way they come."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rclpy.node import Node
from sensor_msgs.msg import Image

from mmedge_ros.ros.input_watch import InputWatch
from mmedge_ros.ros.messages.sensor_input import input_topic
from mmedge_ros.ros.picture_input import PictureInput
from mmedge_ros.ros.sensor_subscription import SensorSubscription


class UnitInput:
    """Subscribes to a sensor.

    :param on_unit: called with a message, and with when it was sent and received
    :raises EncodingError: for a modality that is not registered, or a type that is not installed
    """

    def __init__(
        self, node: Node, modality: str, transport: str, on_unit: Callable[[Any, Any], None]
    ) -> None:
        self._modality = modality
        self._topic, self._kind = input_topic(modality, transport)
        self._pictures = PictureInput(node, on_unit) if self._kind is Image else None
        self._messages: SensorSubscription | None = None
        if self._pictures is None:
            self._messages = SensorSubscription(node, self._kind, self._topic, on_unit)

    def expect_in(self, watch: InputWatch) -> None:
        """Have it said when the sensor is silent."""
        way = self._messages or self._pictures
        assert way is not None  # one of them is there
        watch.expect(self._modality, self._topic, way.profile, self._kind, way.loss)

    def figures(self) -> dict[str, object]:
        """Return counts of the ring, where pictures are raw."""
        return self._pictures.figures() if self._pictures is not None else {}

    def close(self) -> None:
        """Let go of the shared memory."""
        if self._pictures is not None:
            self._pictures.close()
