"""Listens to a graph on behalf of a live record."""

from __future__ import annotations

from typing import Any

from diagnostic_msgs.msg import DiagnosticArray
from rclpy.node import Node

from mmedge_ros import msg
from mmedge_ros.replay.live_record import LiveRecord
from mmedge_ros.ros import conversions, names, qos

_PROBLEM_PREFIX = 'problem '


class Recorder(Node):
    """Subscribes to everything a report needs."""

    def __init__(self, record: LiveRecord, **node_options: Any) -> None:
        super().__init__('recorder', **node_options)
        self._record = record
        self.create_subscription(
            msg.TrackArray,
            names.TRACKS,
            lambda m: record.add_decision(conversions.from_track_array(m)),
            qos.RESULT,
        )
        self.create_subscription(
            msg.UnitFeatures,
            names.UNIT_FEATURES,
            lambda m: record.add_features(conversions.from_features(m)),
            qos.RESULT,
        )
        self.create_subscription(
            msg.UnitReceipt,
            names.UNIT_RECEIPTS,
            lambda m: record.add_receipt(conversions.from_receipt(m)),
            qos.RESULT,
        )
        self.create_subscription(msg.PlaybackState, names.PLAYBACK, self._on_playback, qos.LATCHED)
        self.create_subscription(DiagnosticArray, '/diagnostics', self._on_diagnostics, 10)

    def _on_playback(self, message: msg.PlaybackState) -> None:
        self._record.status = conversions.from_playback_state(message)

    def _on_diagnostics(self, message: DiagnosticArray) -> None:
        for status in message.status:
            for value in status.values:
                if value.key.startswith(_PROBLEM_PREFIX) and value.value not in ('', '0'):
                    what = value.key.removeprefix(_PROBLEM_PREFIX)
                    self._record.input_problems[what] = value.value
