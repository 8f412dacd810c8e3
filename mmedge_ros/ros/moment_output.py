"""What an encoder sends for a flight memory."""

from __future__ import annotations

from rclpy.node import Node

from mmedge_ros import msg
from mmedge_ros.data_types import Decision
from mmedge_ros.encoding.unit_encoder import UnitEncoder
from mmedge_ros.memory.flown_views import FlownViews
from mmedge_ros.power.power_allowance import least_gap
from mmedge_ros.ros.messages import names, qos
from mmedge_ros.ros.messages.memory_messages import to_moment


class MomentOutput:
    """Publishes views that are worth remembering.

    :param rate: looks per second; 0 makes neither publisher nor subscription
    """

    def __init__(self, node: Node, encoder: UnitEncoder, rate: float) -> None:
        self._node = node
        pictures = getattr(encoder, 'pictures', None)
        self._views: FlownViews | None = None
        if not rate or pictures is None:
            return
        self._views = FlownViews(pictures, rate)
        self._moments = node.create_publisher(msg.Moment, names.MOMENTS, qos.RESULT)
        node.create_subscription(msg.PowerState, names.POWER_STATE, self._on_power, qos.LATCHED)

    @property
    def is_wanted(self) -> bool:
        return self._views is not None

    def of_decision(self, decision: Decision) -> None:
        """Publish what a decision shows; called in the encoder's thread, while no unit waits."""
        if self._views is None or not self._node.context.ok():
            return
        for view in self._views.of_decision(decision):
            self._moments.publish(to_moment(view, decision.frame_id))

    def _on_power(self, message: msg.PowerState) -> None:
        if self._views is not None:
            self._views.thin(least_gap(message.alpha))
