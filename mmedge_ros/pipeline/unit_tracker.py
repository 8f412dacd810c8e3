"""From units to tracks: each unit is paired, measured and tracked once, in stamp order."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

from mmedge_ros.core.data_types import NS_PER_S, Measurement, Track, UnitFeatures
from mmedge_ros.geometry.camera_turn import CameraTurn, CameraView
from mmedge_ros.tracking.pairing import PairedUnits, UnitPairing
from mmedge_ros.tracking.track import TrackerState
from mmedge_ros.tracking.tracker import Tracker

Measure: TypeAlias = Callable[[PairedUnits], list[Measurement]]

# Over so long the turning of the camera is taken that moves boxes on.
_TURN_NS = 300_000_000


def _no_view(_stamp_ns: int) -> None:
    """Without a calibration boxes are predicted in the picture alone."""


class TrackerStep(NamedTuple):
    """Measurements of one instant; ``has_picture`` also where a picture showed no person.

    ``view`` is where the camera looked, None where that is not known.
    """

    stamp_ns: int
    measurements: list[Measurement]
    has_picture: bool
    view: CameraView | None = None


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
        self,
        at_ns: int,
        recent_ns: int,
        size: tuple[int, int] = (0, 0),
        turn: CameraTurn | None = None,
    ) -> tuple[Track, ...]:
        """Return the confirmed tracks predicted to ``at_ns``; see `Tracker.report`."""
        return self._tracker.report(self.state, at_ns, recent_ns, size, turn)


class UnitTracker:
    """A tracker of units.

    :param measure: turns units that belong together into measurements
    :param pairing: how long before a picture a scan may be to be fused with it, s
    :param lag: units older than the newest by more than this are too late, s
    :param view_at: returns where the camera looks at an instant
    """

    def __init__(
        self,
        tracker: Tracker,
        measure: Measure,
        pairing: float = 0.1,
        lag: float = 0.5,
        view_at: Callable[[int], CameraView | None] = _no_view,
    ) -> None:
        self._view_at = view_at
        self._measure = measure
        self._pairing = UnitPairing(pairing, lag)
        self._tracks = FixedLagTracker(tracker)

    @property
    def state(self) -> TrackerState:
        """All tracks after the newest unit."""
        return self._tracks.state

    @property
    def newest_ns(self) -> int:
        """Stamp of the newest unit taken in, 0 before the first."""
        return self._pairing.newest_ns

    @property
    def too_late(self) -> int:
        """How many units came too late to be used."""
        return self._pairing.too_late

    def reset(self) -> None:
        """Forget every track and unit; ids go on."""
        self._pairing.reset()
        self._tracks.reset()

    def fork(self) -> UnitTracker:
        """Return one that goes on by itself from here."""
        other = copy.copy(self)
        other.__dict__.update(_pairing=self._pairing.fork(), _tracks=self._tracks.fork())
        return other

    def update(self, units: Sequence[UnitFeatures]) -> None:
        """Take in units of any order and modality."""
        kept, groups = self._pairing.add(units)
        self._tracks.update(
            kept,
            [
                TrackerStep(
                    group.stamp_ns,
                    self._measure(group),
                    # Only a picture that was encoded can say that a person is not there.
                    group.camera is not None and not group.camera.followed,
                    self._view_at(group.stamp_ns),
                )
                for group in groups
            ],
        )
        self._tracks.forget(self._pairing.forget())

    def report(
        self, at_ns: int, recent_ns: int, size: tuple[int, int] = (0, 0)
    ) -> tuple[Track, ...]:
        """Return the confirmed tracks predicted to ``at_ns``; see `Tracker.report`."""
        before, after = self._view_at(at_ns - _TURN_NS), self._view_at(at_ns)
        turn = None
        if before is not None and after is not None:
            turn = CameraTurn(before, after, _TURN_NS / NS_PER_S)
        return self._tracks.report(at_ns, recent_ns, size, turn)
