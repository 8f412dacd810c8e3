"""Listens to a graph on behalf of a live record."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from diagnostic_msgs.msg import DiagnosticArray
from rclpy.node import Node

from mmedge_ros import msg
from mmedge_ros.replay.live_record import LiveRecord
from mmedge_ros.replay.wire_formats import state_from_message
from mmedge_ros.ros.diagnostics import PROBLEM_PREFIX, node_name
from mmedge_ros.ros.messages import conversions, names, qos


class Recorder(Node):
    """Subscribes to everything a report needs; a message that cannot be true becomes a note."""

    def __init__(self, record: LiveRecord, **node_options: Any) -> None:
        super().__init__('recorder', **node_options)
        self._record = record
        kinds: tuple[tuple[type, str, Any, Callable[[Any], None]], ...] = (
            (msg.TrackArray, names.TRACKS, qos.RECORD, self._on_tracks),
            (msg.Novelty, names.NOVELTIES, qos.RESULT, self._on_novelty),
            (msg.UnitFeatures, names.UNIT_FEATURES, qos.RECORD, self._on_features),
            (msg.UnitReceipt, names.UNIT_RECEIPTS, qos.RECORD, self._on_receipt),
            (msg.PlaybackState, names.PLAYBACK, qos.LATCHED, self._on_playback),
            (msg.Configuration, names.CONFIGURATION, qos.LATCHED, self._on_configuration),
            (msg.SystemState, names.SYSTEM_STATE, qos.RESULT, self._on_state),
        )
        for kind, topic, profile, take in kinds:
            self.create_subscription(kind, topic, self._guarded(topic, take), profile)
        self.create_subscription(DiagnosticArray, '/diagnostics', self._on_diagnostics, 10)

    def _guarded(self, topic: str, take: Callable[[Any], None]) -> Callable[[Any], None]:
        def guarded(message: Any) -> None:
            try:
                take(message)
            except ValueError as err:
                self._record.input_problems[f'message on {topic} not used'] = str(err)

        return guarded

    def _on_tracks(self, message: msg.TrackArray) -> None:
        self._record.add_decision(conversions.from_track_array(message))

    def _on_novelty(self, message: msg.Novelty) -> None:
        self._record.add_novelty(conversions.from_novelty(message))

    def _on_features(self, message: msg.UnitFeatures) -> None:
        self._record.add_features(conversions.from_features(message))

    def _on_receipt(self, message: msg.UnitReceipt) -> None:
        self._record.add_receipt(conversions.from_receipt(message))

    def _on_playback(self, message: msg.PlaybackState) -> None:
        self._record.status = conversions.from_playback_state(message)

    def _on_configuration(self, message: msg.Configuration) -> None:
        self._record.add_configuration(conversions.from_configuration(message))

    def _on_state(self, message: msg.SystemState) -> None:
        stamp_ns = conversions.from_time(message.header.stamp)
        self._record.add_state(stamp_ns, state_from_message(message))

    def _on_diagnostics(self, message: DiagnosticArray) -> None:
        stamp_ns = conversions.from_time(message.header.stamp)
        for status in message.status:
            figures = {v.key: v.value for v in status.values}
            self._record.add_status(stamp_ns, node_name(status), figures)
            for value in status.values:
                if value.key.startswith(PROBLEM_PREFIX) and value.value not in ('', '0'):
                    what = value.key.removeprefix(PROBLEM_PREFIX)
                    self._record.input_problems[what] = value.value
