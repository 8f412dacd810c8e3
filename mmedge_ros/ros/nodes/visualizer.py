"""Shows tracks: markers for RViz, and an annotated picture while it has a subscriber."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import Any

from rclpy.node import Node
from sensor_msgs.msg import Image
from visualization_msgs.msg import Marker, MarkerArray

from mmedge_ros import msg
from mmedge_ros.adaptation.power_policy import least_gap
from mmedge_ros.core.data_types import CAMERA, Configuration, Decision, ResultKind
from mmedge_ros.core.parameter import parameter
from mmedge_ros.ros.diagnostics import Diagnostics, Refusals
from mmedge_ros.ros.input_watch import InputWatch
from mmedge_ros.ros.messages import conversions, names, qos
from mmedge_ros.ros.messages.markers import status_marker, track_markers
from mmedge_ros.ros.messages.sensor_input import input_topic
from mmedge_ros.ros.messages.sensor_output import to_image
from mmedge_ros.ros.messages.vision_mirror import VisionMirror, vision_messages
from mmedge_ros.ros.node_main import program
from mmedge_ros.ros.parameters import declare
from mmedge_ros.ros.ros_clock import steady_clock
from mmedge_ros.ros.sensor_subscription import SensorSubscription
from mmedge_ros.sensing.camera.image import decode_image
from mmedge_ros.viewing.drawing import annotate


@dataclass(frozen=True)
class VisualizerParameters:
    """The visualizer."""

    image_transport: str = parameter(
        'raw',
        'form of the pictures: camera/image or camera/image/compressed',
        choices=('raw', 'compressed'),
    )


class Visualizer(Node):
    """Costs next to nothing while its outputs have no subscriber."""

    def __init__(self, **node_options: Any) -> None:
        super().__init__('visualizer', **node_options)
        self._options = declare(self, VisualizerParameters)
        self._refusals = Refusals(self)
        # Decision or update.
        self._newest: Decision | None = None
        self._configuration: Configuration | None = None
        self._decisions = 0
        # Between annotated pictures, s.
        self.least_gap, self._drawn_at = 0.0, -math.inf
        self._picture_input: SensorSubscription | None = None
        self._markers = self.create_publisher(MarkerArray, names.MARKERS, qos.RESULT)
        self._status = self.create_publisher(Marker, names.STATUS_MARKER, qos.RESULT)
        vision = vision_messages()
        self._mirror = VisionMirror(self, vision) if vision is not None else None
        self._annotated = self.create_publisher(Image, names.ANNOTATED_IMAGE, qos.PICTURE)
        self._watch = InputWatch(self, time.monotonic)
        self._watch.expect('tracks', names.TRACKS, qos.RESULT)
        self._diagnostics = Diagnostics(self, self._watch, lambda: {'decisions': self._decisions})
        self.create_subscription(msg.TrackArray, names.TRACKS, self._on_tracks, qos.RESULT)
        self.create_subscription(
            msg.Configuration, names.CONFIGURATION, self._on_configuration, qos.LATCHED
        )
        self.create_subscription(msg.PowerState, names.POWER_STATE, self._on_power, qos.LATCHED)
        self._timer = self.create_timer(0.5, self._follow_demand, clock=steady_clock())

    def _on_tracks(self, message: msg.TrackArray) -> None:
        self._watch.heard('tracks')
        with self._refusals.of('tracks', 'not shown'):
            self._show(conversions.from_track_array(message))

    def _show(self, newest: Decision) -> None:
        self._newest = newest
        if self._markers.get_subscription_count():
            self._markers.publish(track_markers(newest))
        if self._mirror is not None:
            self._mirror.publish(newest)
        if newest.kind is ResultKind.UPDATE:
            return
        self._decisions += 1
        if self._status.get_subscription_count():
            self._status.publish(status_marker(newest, self._configuration))

    def _on_configuration(self, message: msg.Configuration) -> None:
        self._configuration = conversions.from_configuration(message)

    def _on_power(self, message: msg.PowerState) -> None:
        self.least_gap = least_gap(message.alpha)

    def _follow_demand(self) -> None:
        """Subscribe to pictures only while the annotated one is wanted."""
        wanted = self._annotated.get_subscription_count() > 0
        if wanted and self._picture_input is None:
            topic, kind = input_topic(CAMERA, self._options.image_transport)
            self._picture_input = SensorSubscription(self, kind, topic, self._on_picture)
        elif not wanted and self._picture_input is not None:
            self._picture_input.close()
            self._picture_input = None

    def _on_picture(self, message: Any, _: Any) -> None:
        now = time.monotonic()
        if self._newest is None or now - self._drawn_at < self.least_gap:
            return
        self._drawn_at = now
        with self._refusals.of('picture', 'not shown'):
            stamp_ns = conversions.from_time(message.header.stamp)
            drawn = annotate(decode_image(message), stamp_ns, self._newest)
            self._annotated.publish(to_image(drawn, stamp_ns, message.header.frame_id))


main = program(Visualizer)


if __name__ == '__main__':
    main()
