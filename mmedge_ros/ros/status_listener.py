"""Listens just enough to tell a person how the graph is doing."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from rclpy.node import Node

from mmedge_ros import msg
from mmedge_ros.data_types import Decision
from mmedge_ros.replay.playback import PlaybackStatus
from mmedge_ros.ros import conversions, names, playback_messages, qos


class StatusListener(Node):
    """Keeps the newest decision and the player's state."""

    def __init__(self, **node_options: Any) -> None:
        super().__init__('mmedge_status', **node_options)
        self.decision: Decision | None = None
        self.playback: PlaybackStatus | None = None
        self.create_subscription(msg.TrackArray, names.TRACKS, self._on_tracks, qos.RESULT)
        self.create_subscription(msg.PlaybackState, names.PLAYBACK, self._on_playback, qos.LATCHED)

    @property
    def finished(self) -> bool:
        """Whether a player has come to its end."""
        return self.playback is not None and self.playback.finished

    def share(self) -> float:
        """Return how much of the recording was played, 0..1; 0 without a player."""
        if self.playback is None or self.decision is None:
            return 0.0
        length_ns = max(self.playback.end_ns - self.playback.begin_ns, 1)
        done_ns = self.decision.window_end_ns - self.playback.offset_ns - self.playback.begin_ns
        return min(max(done_ns / length_ns, 0.0), 1.0)

    def _on_tracks(self, message: msg.TrackArray) -> None:
        with suppress(ValueError):  # nobody is helped by half a status line
            self.decision = conversions.from_track_array(message)

    def _on_playback(self, message: msg.PlaybackState) -> None:
        with suppress(ValueError):
            self.playback = playback_messages.from_playback_state(message)
