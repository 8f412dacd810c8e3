"""Each unit once, in the order of stamps, whatever order the units arrive in.

Units within the lag are kept with the tracker's state after each step. A unit that comes
late is put in its place and the steps after it are taken again, so that the result is the
one an undisturbed stream would have given.
"""

from __future__ import annotations

import bisect
import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from mmedge_ros.data_types import CAMERA, NS_PER_S, Measurement, Track, UnitFeatures
from mmedge_ros.tracking.track import TrackerState
from mmedge_ros.tracking.tracker import Tracker

# Ten times what any rig sends within the lag; a flood must not fill the memory.
_MOST_UNITS = 1000

Fuse = Callable[[UnitFeatures | None, Sequence[UnitFeatures]], list[Measurement]]


@dataclass(frozen=True)
class Step:
    """What one step of the tracker takes: a camera unit with its scans, or one scan alone."""

    camera: UnitFeatures | None
    scans: tuple[UnitFeatures, ...]

    @property
    def stamp_ns(self) -> int:
        return self.camera.stamp_ns if self.camera else self.scans[-1].stamp_ns

    @property
    def size(self) -> int:
        """How many units it takes."""
        return len(self.scans) + (self.camera is not None)


def group_units(units: Sequence[UnitFeatures], pairing_ns: int) -> list[Step]:
    """Pair each scan with the next camera unit, if that follows within ``pairing_ns``.

    Depends on stamps alone. Scans nobody follows are steps of their own; when their camera
    unit comes after all, grouping again gives it back to them.
    """
    steps: list[Step] = []
    waiting: list[UnitFeatures] = []
    for unit in units:
        if unit.modality != CAMERA:
            waiting.append(unit)
            continue
        near = [s for s in waiting if unit.stamp_ns - s.stamp_ns <= pairing_ns]
        alone = waiting[: len(waiting) - len(near)]
        steps += [Step(None, (scan,)) for scan in alone]
        steps.append(Step(unit, tuple(near)))
        waiting = []
    return steps + [Step(None, (scan,)) for scan in waiting]


class FixedLagTracker:
    """A tracker with a short memory of units and states.

    :param fuse: decision fusion of one step's units into measurements
    :param pairing: how long before a camera unit a scan may be to be fused with it, s
    :param lag: units older than the newest by more than this are too late, s
    """

    def __init__(
        self, tracker: Tracker, fuse: Fuse, pairing: float = 0.1, lag: float = 0.5
    ) -> None:
        self.too_late = 0
        self._tracker = tracker
        self._fuse = fuse
        self._pairing_ns = round(pairing * NS_PER_S)
        self._lag_ns = round(lag * NS_PER_S)
        self.state = TrackerState()
        self.reset()

    def reset(self) -> None:
        """Forget every track and unit; ids go on, so that none is given out twice."""
        self.state = TrackerState(next_id=self.state.next_id)
        self._base = self.state
        self._units: list[UnitFeatures] = []
        self._done: list[tuple[Step, TrackerState]] = []

    def fork(self) -> FixedLagTracker:
        """Return one that goes on by itself from here."""
        other = copy.copy(self)
        other.__dict__.update(_units=list(self._units), _done=list(self._done))
        return other

    @property
    def newest_ns(self) -> int:
        """Stamp of the newest unit taken in, 0 before the first."""
        return self._units[-1].stamp_ns if self._units else self._base.stamp_ns

    def update(self, units: Sequence[UnitFeatures]) -> None:
        """Take in units of any order and modality."""
        first = len(self._units)
        for unit in units:
            if unit.stamp_ns <= max(self._base.stamp_ns, self.newest_ns - self._lag_ns):
                self.too_late += 1
                continue
            place = bisect.bisect_right(self._units, _order(unit), key=_order)
            self._units.insert(place, unit)
            first = min(first, place)
        self._replay(first)
        self._forget()

    def report(
        self, at_ns: int, recent_ns: int, size: tuple[int, int] = (0, 0)
    ) -> tuple[Track, ...]:
        """Return the confirmed tracks predicted to ``at_ns``; see `Tracker.report`."""
        return self._tracker.report(self.state, at_ns, recent_ns, size)

    def _replay(self, first: int) -> None:
        """Keep the steps that are as before, and take the others (again).

        :param first: place of the first unit that is new
        """
        kept, begin = self._settled(first)
        steps = group_units(self._units[begin:], self._pairing_ns)
        again = 0
        while kept < len(self._done) and again < len(steps):
            if self._done[kept][0] != steps[again]:
                break
            kept, again = kept + 1, again + 1
        del self._done[kept:]
        state = self._done[-1][1] if self._done else self._base
        for step in steps[again:]:
            measurements = self._fuse(step.camera, step.scans)
            has_picture = step.camera is not None
            state = self._tracker.step(state, step.stamp_ns, measurements, has_picture)
            self._done.append((step, state))
        self.state = state

    def _settled(self, first: int) -> tuple[int, int]:
        """Return how many steps nothing new can change, and how many units they hold.

        Those are the steps up to the last picture before the unit at ``first``; scans after it
        may go with another picture now.
        """
        steps, units = len(self._done), sum(step.size for step, _ in self._done)
        while steps and (units > first or self._done[steps - 1][0].camera is None):
            steps -= 1
            units -= self._done[steps][0].size
        return steps, units

    def _forget(self) -> None:
        """Let go of steps so old that nothing can come before them, or join them, any more."""
        horizon_ns = self.newest_ns - self._lag_ns - self._pairing_ns
        while len(self._done) > 1 and (
            self._done[0][0].stamp_ns < horizon_ns or len(self._units) > _MOST_UNITS
        ):
            step, self._base = self._done.pop(0)
            del self._units[: step.size]


def _order(unit: UnitFeatures) -> tuple[int, bool, str, int]:
    # A scan of the very same stamp goes before the picture, so that it is fused with it.
    return (unit.stamp_ns, unit.modality == CAMERA, unit.modality, unit.sequence)
