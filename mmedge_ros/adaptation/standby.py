"""When perception that stands by is awake: in short bursts, for what the radar sees or a timer.

In CRITICAL the camera rests. One picture confirms nobody, so it wakes for several at a time: when
the radar alone has confirmed a track that the camera has not seen, when somebody asks a question,
and every few seconds, because the radar misses people who stand still, or stand in fog.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

# A burst lasts so long (s): several pictures at the least rate, and what they need to arrive.
BURST = 0.8
# The timer, and the time between two bursts for the same track (s).
PERIOD = 5.0
# Questions wake no sooner than this (s) after a burst, however many come.
_LEAST_PAUSE = 1.2
_MOST_TRACKS = 1000


class Standby:
    """Decides when to wake; instants are seconds on the monotonic clock."""

    def __init__(self) -> None:
        self.bursts = 0
        self.reset(-math.inf)

    def reset(self, now: float) -> None:
        """Begin to stand by: the first burst is due a period from now."""
        self._until = -math.inf
        self._timer = now
        self._wanted_at = math.inf
        self._woken: dict[int, float] = {}

    def seen(self, tracks: Iterable[tuple[int, bool]], now: float) -> None:
        """Take the confirmed tracks of a decision: their ids, and whether the camera saw them.

        What the camera saw needs no burst; it is looked at again when the timer is due.
        """
        for track_id, by_camera in tracks:
            woken = self._woken.get(track_id, -math.inf)
            if by_camera:
                self._woken[track_id] = max(woken, now)
            elif now - woken >= PERIOD:
                self._woken[track_id] = now
                self.wake(now)
        if len(self._woken) > _MOST_TRACKS:
            newest = sorted(self._woken.items(), key=lambda item: item[1])[-(_MOST_TRACKS // 2) :]
            self._woken = dict(newest)

    def asked(self, now: float) -> None:
        """Wake for a question, or soon if a burst has just ended."""
        if now >= self._until:
            self._wanted_at = max(now, self._until + _LEAST_PAUSE)

    def wake(self, now: float) -> None:
        """Begin a burst, or lengthen the present one."""
        self.bursts += now >= self._until
        self._until, self._timer, self._wanted_at = now + BURST, now, math.inf

    def is_awake(self, now: float) -> bool:
        """Whether a burst is on; the timer begins one when it is due."""
        # Also after a step back of the clock.
        if now >= self._wanted_at or not 0.0 <= now - self._timer < PERIOD:
            self.wake(now)
        return now < self._until
