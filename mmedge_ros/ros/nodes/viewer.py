"""Serves the live page; subscribes to nothing while nobody looks at it."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from rclpy.node import Node
from rclpy.serialization import deserialize_message

from mmedge_ros import msg
from mmedge_ros.core.data_types import CAMERA, Decision
from mmedge_ros.core.parameter import group, parameter
from mmedge_ros.replay.wire_formats import state_from_message
from mmedge_ros.ros.diagnostics import Refusals
from mmedge_ros.ros.geometry_inputs import GeometryInputs, RigParameters, at_once, set_up_rig
from mmedge_ros.ros.messages import conversions, names, qos
from mmedge_ros.ros.messages.sensor_input import input_topic
from mmedge_ros.ros.node_main import program
from mmedge_ros.ros.parameters import declare
from mmedge_ros.ros.ros_clock import steady_clock
from mmedge_ros.ros.sensor_subscription import SensorSubscription
from mmedge_ros.ros.waited_entities import defer
from mmedge_ros.sensing.camera.image import decode_image
from mmedge_ros.viewing.drawing import Picture
from mmedge_ros.viewing.live_page import DEFAULT_PORT, LivePage
from mmedge_ros.viewing.live_scene import LiveScene

# At most ten states and pictures a second; a little less than their period.
_SHORTEST_PERIOD = 0.09
# How often is looked whether somebody looks, and an unchanged state sent again, s.
_LOOK = 0.5
# What flies comes first where the processor is short.
_NICENESS = 10


@dataclass(frozen=True)
class _WindowParameters:
    """Of the windows, as the fusion node has them."""

    deadline: float = parameter(
        0.05,
        'decisions later than this count as late, where no optimiser sets a limit',
        's',
        0.005,
        5.0,
    )


@dataclass(frozen=True)
class _PipelineParameters:
    """What must agree with the fusion node."""

    windows: _WindowParameters = group(_WindowParameters)


@dataclass(frozen=True)
class ViewerParameters(RigParameters):
    """The viewer."""

    port: int = parameter(
        DEFAULT_PORT,
        'the page is at 127.0.0.1 and this port, or the next free one; the log says which',
        minimum=1,
        maximum=65535,
    )
    image_transport: str = parameter(
        'raw',
        'form of the pictures: camera/image or camera/image/compressed',
        choices=('raw', 'compressed'),
    )
    pipeline: _PipelineParameters = group(_PipelineParameters)


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
        self._refusals = Refusals(node)
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
                conversions.from_playback_state,
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
            node, at_once(scene.rig), not scene.rig.has_camera, scene.rig.prefix
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
        with self._refusals.of('message', 'not shown'):
            enter(convert(message))

    def _take_picture(self, kind: type, raw: bytes, _: Any) -> None:
        self._on_picture(partial(self._draw, kind, raw))

    def _draw(self, kind: type, raw: bytes) -> Picture | None:
        message: Any = deserialize_message(raw, kind)
        stamp_ns = conversions.from_time(message.header.stamp)
        try:
            return self._scene.annotated(decode_image(message), stamp_ns)
        except ValueError as err:
            self._refusals.say('picture', err, 'not shown')
            return None


class Viewer(Node):
    """Idle until a browser opens the page, and again when the last one has left."""

    def __init__(self, **node_options: Any) -> None:
        super().__init__('viewer', **node_options)
        self._options = p = declare(self, ViewerParameters)
        self._scene = LiveScene(p.pipeline.windows.deadline)
        set_up_rig(self._scene.rig, p)
        self._page = LivePage(p.port)
        self._inputs: ViewerInputs | None = None
        self._sent_at = self._shown_at = 0.0
        self._timer = self.create_timer(_LOOK, self._follow_demand, clock=steady_clock())
        self.get_logger().info(f'live view: {self._page.address}')

    def stop(self) -> None:
        """Close the page."""
        self._page.close()

    def _follow_demand(self) -> None:
        """Listen while a browser looks; send what is known also when nothing comes."""
        if self._page.watchers and self._inputs is None:
            self._inputs = ViewerInputs(
                self,
                self._scene,
                self._options.image_transport,
                self._on_decision,
                self._on_picture,
            )
        elif not self._page.watchers and self._inputs is not None:
            self._inputs.close()
            self._inputs = None
            self._scene.clear()
            self._page.show(lambda: None)
        elif self._inputs is not None and time.monotonic() - self._sent_at > _LOOK:
            self._send()

    def _on_decision(self, decision: Decision) -> None:
        self._scene.add_decision(decision)
        if time.monotonic() - self._sent_at > _SHORTEST_PERIOD:
            self._send()

    def _send(self) -> None:
        self._sent_at = time.monotonic()
        self._page.update(self._scene.snapshot())

    def _on_picture(self, draw: Callable[[], Picture | None]) -> None:
        now = time.monotonic()
        if now - self._shown_at > _SHORTEST_PERIOD:
            self._shown_at = now
            self._page.show(draw)


main = program(Viewer, niceness=_NICENESS)


if __name__ == '__main__':
    main()
