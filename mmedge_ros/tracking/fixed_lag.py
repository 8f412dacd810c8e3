"""A tracker that can take its latest steps again, when measurements came late or changed."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import NamedTuple

from mmedge_ros.data_types import Measurement, Track
from mmedge_ros.tracking.track import TrackerState
from mmedge_ros.tracking.tracker import Tracker


class TrackerStep(NamedTuple):
    """Measurements of one instant; ``has_picture`` also where a picture showed no person."""

    stamp_ns: int
    measurements: list[Measurement]
    has_picture: bool


class FixedLagTracker:
    """Keeps the tracker's state after each of its last steps."""

    def __init__(self, tracker: Tracker) -> None:
        self._tracker = tracker
        self.state = TrackerState()
        self.reset()

    def reset(self) -> None:
        """Forget every track; ids go on, so that none is given out twice."""
        self.state = TrackerState(next_id=self.state.next_id)
        self._base = self.state
        self._states: list[TrackerState] = []

    def fork(self) -> FixedLagTracker:
        """Return one that goes on by itself from here."""
        other = copy.copy(self)
        other.__dict__.update(_states=list(self._states))
        return other

    def update(self, kept: int, steps: Sequence[TrackerStep]) -> None:
        """Take steps in the place of all but the first ``kept`` that are remembered."""
        del self._states[kept:]
        state = self._states[-1] if self._states else self._base
        for step in steps:
            state = self._tracker.step(state, *step)
            self._states.append(state)
        self.state = state

    def forget(self, count: int) -> None:
        """Settle the oldest steps: they are not taken again."""
        if count:
            self._base = self._states[count - 1]
            del self._states[:count]

    def report(
        self, at_ns: int, recent_ns: int, size: tuple[int, int] = (0, 0)
    ) -> tuple[Track, ...]:
        """Return the confirmed tracks predicted to ``at_ns``; see `Tracker.report`."""
        return self._tracker.report(self.state, at_ns, recent_ns, size)
