"""From units to tracks: each unit is paired, measured and tracked once, in stamp order."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import TypeAlias

from mmedge_ros.core.data_types import NS_PER_S, Measurement, Track, UnitFeatures
from mmedge_ros.geometry.camera_turn import CameraTurn, CameraView
from mmedge_ros.geometry.ground_plane import GroundPlane
from mmedge_ros.tracking.existence import camera_trust
from mmedge_ros.tracking.pairing import PairedUnits, UnitPairing
from mmedge_ros.tracking.track import TrackerState
from mmedge_ros.tracking.tracker import Tracker

Measure: TypeAlias = Callable[[PairedUnits, GroundPlane], list[Measurement]]

# Over so long the turning of the camera is taken that moves boxes on.
_TURN_NS = 300_000_000


def _no_view(_stamp_ns: int) -> None:
    """Without a calibration boxes are predicted in the picture alone."""


class UnitTracker:
    """A tracker of units.

    :param measure: turns units that belong together into measurements, and learns from them
        where the ground is
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
        self._tracker = tracker
        # All tracks after the newest unit.
        self.state = TrackerState()
        self.reset()

    @property
    def newest_ns(self) -> int:
        """Stamp of the newest unit taken in, 0 before the first."""
        return self._pairing.newest_ns

    @property
    def too_late(self) -> int:
        """How many units came too late to be used."""
        return self._pairing.too_late

    def reset(self) -> None:
        """Forget every track and unit; ids go on, so that none is given out twice."""
        self._pairing.reset()
        self.state = self._base = TrackerState(next_id=self.state.next_id)
        self._states: list[TrackerState] = []
        self._base_ground = GroundPlane()
        self._grounds: list[GroundPlane] = []

    def fork(self) -> UnitTracker:
        """Return one that goes on by itself from here."""
        other = copy.copy(self)
        other.__dict__.update(
            _pairing=self._pairing.fork(),
            _states=list(self._states),
            _grounds=list(self._grounds),
        )
        return other

    def update(self, units: Sequence[UnitFeatures]) -> None:
        """Take in units of any order and modality; steps that change are taken again."""
        kept, groups = self._pairing.add(units)
        ground, measured = [*self._grounds, self._base_ground][kept - 1], []
        del self._grounds[kept:]
        for group in groups:
            ground = copy.copy(ground)
            measured.append(self._measure(group, ground))
            self._grounds.append(ground)
        del self._states[kept:]
        self.state = self._states[-1] if self._states else self._base
        for group, measurements in zip(groups, measured, strict=True):
            # Only a picture that was encoded can say that a person is not there.
            has_picture = group.camera is not None and not group.camera.followed
            view = self._view_at(group.stamp_ns)
            trust = 1.0 if group.camera is None else camera_trust(group.camera.appearance)
            self.state = self._tracker.step(
                self.state,
                group.stamp_ns,
                measurements,
                has_picture,
                view,
                bool(group.scans),
                trust,
            )
            self._states.append(self.state)
        settled = self._pairing.forget()
        if settled:
            self._base, self._base_ground = self._states[settled - 1], self._grounds[settled - 1]
            del self._states[:settled], self._grounds[:settled]

    def report(
        self, at_ns: int, recent_ns: int, size: tuple[int, int] = (0, 0)
    ) -> tuple[Track, ...]:
        """Return the confirmed tracks predicted to ``at_ns``; see `Tracker.report`."""
        before, after = self._view_at(at_ns - _TURN_NS), self._view_at(at_ns)
        turn = None
        if before is not None and after is not None:
            turn = CameraTurn(before, after, _TURN_NS / NS_PER_S)
        return self._tracker.report(self.state, at_ns, recent_ns, size, turn)
