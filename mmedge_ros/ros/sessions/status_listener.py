"""Subscribes to what a status line shows."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from rclpy.node import Node

from mmedge_ros import msg
from mmedge_ros.core.data_types import Decision
from mmedge_ros.replay.playback import PlaybackStatus
from mmedge_ros.ros.messages import conversions, names, qos

# Long enough for a figure that stands still, short enough to show within moments that it fell.
_RATE_SPAN = 5.0


class DecisionRate:
    """Decisions per second of the last few seconds; sinks to zero when they stop.

    :param clock: returns seconds
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._since: float | None = None
        self._arrivals: deque[float] = deque()

    def add(self) -> None:
        """Note that one has arrived now."""
        now = self._clock()
        if self._since is None:
            self._since = now
        else:
            self._arrivals.append(now)

    def value(self) -> float:
        """Return it in Hz; 0 until two have arrived."""
        if self._since is None:
            return 0.0
        now = self._clock()
        while self._arrivals and self._arrivals[0] <= now - _RATE_SPAN:
            self._arrivals.popleft()
        return len(self._arrivals) / min(max(now - self._since, 1.0), _RATE_SPAN)


class StatusListener(Node):
    """Keeps the newest decision, the decisions' rate and the player's state.

    ``decided_at`` is when the decision came, s of the monotonic clock.
    """

    def __init__(self, **node_options: Any) -> None:
        super().__init__('mmedge_status', **node_options)
        self.decision: Decision | None = None
        self.decided_at = 0.0
        self.rate = DecisionRate()
        self.playback: PlaybackStatus | None = None
        self.create_subscription(msg.TrackArray, names.TRACKS, self._on_tracks, qos.RESULT)
        self.create_subscription(msg.PlaybackState, names.PLAYBACK, self._on_playback, qos.LATCHED)

    @property
    def finished(self) -> bool:
        """Whether a player has come to its end."""
        return self.playback is not None and self.playback.finished

    def share(self) -> float | None:
        """Return how much of the recording was played, 0..1; None without a player."""
        if self.playback is None:
            return None
        if self.decision is None:
            return 0.0
        length_ns = max(self.playback.end_ns - self.playback.begin_ns, 1)
        done_ns = self.decision.window_end_ns - self.playback.offset_ns - self.playback.begin_ns
        return min(max(done_ns / length_ns, 0.0), 1.0)

    def _on_tracks(self, message: msg.TrackArray) -> None:
        if conversions.is_update(message):
            return
        with suppress(ValueError):  # half a status line is of no use
            self.decision = conversions.from_track_array(message)
            self.rate.add()
            self.decided_at = time.monotonic()

    def _on_playback(self, message: msg.PlaybackState) -> None:
        with suppress(ValueError):
            self.playback = conversions.from_playback_state(message)
