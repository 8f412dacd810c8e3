"""What the live page listens to, from when the first browser looks until the last has left."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from rclpy.node import Node
from rclpy.serialization import deserialize_message

from mmedge_ros import MmedgeError, msg
from mmedge_ros.data_types import CAMERA, Decision
from mmedge_ros.replay.wire_formats import state_from_message
from mmedge_ros.ros.geometry_inputs import GeometryInputs
from mmedge_ros.ros.messages import conversions, names, qos
from mmedge_ros.ros.messages.playback_messages import from_playback_state
from mmedge_ros.ros.messages.sensor_input import input_topic
from mmedge_ros.ros.sensor_subscription import SensorSubscription
from mmedge_ros.ros.waited_entities import defer
from mmedge_ros.sensing.camera.image import decode_image
from mmedge_ros.viewing.drawing import Picture
from mmedge_ros.viewing.live_scene import LiveScene


class ViewerInputs:
    """Subscriptions that feed a scene; `close` drops them.

    :param on_decision: called with each decision
    :param on_picture: called, for each picture, with a function that draws it; that one may be
        called in any thread, and returns None where the picture cannot be decoded
    """

    def __init__(
        self,
        node: Node,
        scene: LiveScene,
        image_transport: str,
        on_decision: Callable[[Decision], None],
        on_picture: Callable[[Callable[[], Picture | None]], None],
    ) -> None:
        self._node = node
        self._scene = scene
        self._on_picture = on_picture
        pictures, kind = input_topic(CAMERA, image_transport)
        # A picture that is not shown is not taken apart either.
        take = partial(self._take_picture, kind)
        self._pictures = SensorSubscription(node, kind, pictures, take, raw=True)
        self._subscriptions: list[Any] = []
        # Best effort: what is missed is replaced by what comes next.
        for kind, topic, convert, enter, profile in (
            (msg.TrackArray, names.TRACKS, conversions.from_track_array, on_decision, qos.SENSOR),
            (
                msg.UnitFeatures,
                names.UNIT_FEATURES,
                conversions.from_features,
                scene.add_unit,
                qos.FREQUENT_SENSOR,
            ),
            (
                msg.SystemState,
                names.SYSTEM_STATE,
                state_from_message,
                scene.set_system,
                qos.SENSOR,
            ),
            (
                msg.Configuration,
                names.CONFIGURATION,
                conversions.from_configuration,
                scene.set_configuration,
                qos.LATCHED,
            ),
            (
                msg.PlaybackState,
                names.PLAYBACK,
                from_playback_state,
                scene.set_playback,
                qos.LATCHED,
            ),
        ):
            take = partial(self._take, convert, enter)
            subscription = node.create_subscription(kind, topic, take, profile)
            # Units come often, and are looked at when a decision is shown.
            if kind is msg.UnitFeatures:
                defer(subscription)
            self._subscriptions.append(subscription)
        self._geometry = GeometryInputs(
            node, self._know, not scene.rig.has_camera, scene.rig.prefix
        )

    def close(self) -> None:
        """Listen no more."""
        self._pictures.close()
        for subscription in self._subscriptions:
            self._node.destroy_subscription(subscription)
        self._subscriptions.clear()
        self._geometry.close()

    def _take(
        self, convert: Callable[[Any], Any], enter: Callable[[Any], None], message: Any
    ) -> None:
        try:
            enter(convert(message))
        except ValueError as err:
            self._warn(f'not shown: {err}')

    def _know(self, task: Callable[[Any, int], object], urgent: bool = True) -> None:  # noqa: ARG002
        try:
            task(self._scene, 0)
        except MmedgeError as err:
            self._warn(f'transform not used: {err}')

    def _take_picture(self, kind: type, raw: bytes, _: Any) -> None:
        self._on_picture(partial(self._draw, kind, raw))

    def _draw(self, kind: type, raw: bytes) -> Picture | None:
        message: Any = deserialize_message(raw, kind)
        try:
            picture = decode_image(message)
        except MmedgeError as err:
            self._warn(f'picture not shown: {err}')
            return None
        stamp_ns = conversions.from_time(message.header.stamp)
        return self._scene.annotated(picture, stamp_ns)

    def _warn(self, text: str) -> None:
        self._node.get_logger().warning(text, throttle_duration_sec=5.0)
