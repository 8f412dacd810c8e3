"""Tracks at the sensor's pace: what is new between decisions, and the tracker that knows of it.

With decision fusion the tracker takes a picture in as it completes, and an update only reports.
With feature fusion it waits for what the networks make of the picture as its window ends; until
then a fork of it goes on with the encoder's own detections. Nothing here changes a decision.
"""

from __future__ import annotations

from collections.abc import Sequence

from mmedge_ros.core.clock import TimeBudget
from mmedge_ros.core.data_types import NS_PER_S, Track, Trail, UnitFeatures, extend_trail
from mmedge_ros.pipeline.unit_tracker import UnitTracker

# Where time was too short for a decision's work, there are no updates for so long.
_PAUSE_NS = 2 * NS_PER_S
# What an update is shed as.
UPDATES = 'updates'


class TrackUpdates:
    """Knows what is in no result yet.

    :param tracker: that of decisions
    :param has_fork: whether that takes pictures only when their window is decided
    """

    def __init__(self, tracker: UnitTracker, has_fork: bool) -> None:
        self._tracker = tracker
        self._has_fork = has_fork
        self._shed = 0
        self.reset()

    def reset(self) -> None:
        """Forget all units."""
        # What an update would be about, and its path so far.
        self._picture: UnitFeatures | None = None
        self.trail: Trail = ()
        self._was_asked = self._changed = False
        self._asked_end_ns = self._paused_ns = 0
        # Undecided pictures, and the units that the fork still lacks.
        self._pictures: list[UnitFeatures] = []
        self._fork: UnitTracker | None = None
        self._lacking: list[UnitFeatures] = []
        self.newest_ns: dict[str, int] = {}
        self.configuration_ids: tuple[int, ...] = ()

    @property
    def is_waiting(self) -> bool:
        """Whether there is a picture to tell of that was not asked for."""
        return self._picture is not None and not self._was_asked

    def entered(self, picture: UnitFeatures, now_ns: int, budget: TimeBudget) -> None:
        """Take in a picture that has completed."""
        if self._picture is not None:
            budget.shed[UPDATES] += 1
        self._picture, self._was_asked = picture, False
        self.trail = picture.trail and extend_trail(picture.trail, 'transport_features', now_ns)
        if self._has_fork:
            picture = picture.without_grid()
            self._pictures.append(picture)
            self._lacking.append(picture)

    def tracked(self, units: Sequence[UnitFeatures]) -> None:
        """Note that the tracker of decisions has taken in some units."""
        self._changed = True
        self._note(units)
        if self._fork is not None:
            self._lacking += units

    def started_over(self) -> None:
        """Note that the tracker of decisions has begun anew."""
        self._fork = None

    def decided(self, end_ns: int) -> None:
        """Note that a window was decided."""
        self._fork, self._changed = None, False
        self._pictures = [p for p in self._pictures if p.available_ns > end_ns]
        if self._picture is not None and self._picture.available_ns <= end_ns:
            self._picture = None

    def asked(self, end_ns: int, has_ended: bool, now_ns: int, budget: TimeBudget) -> bool:
        """Say whether an update is due: once for each picture, and for a window that must wait.

        :param end_ns: end of the open window
        :param has_ended: whether it waits for units that arrived before its end
        """
        picture = self._picture
        if picture is not None and picture.available_ns <= end_ns and not self._was_asked:
            self._was_asked = True
        elif has_ended and self._changed and self._asked_end_ns != end_ns:
            self._asked_end_ns = end_ns
        else:
            return False
        shed = budget.shed.total() - budget.shed[UPDATES]
        if shed != self._shed:
            self._shed, self._paused_ns = shed, now_ns + _PAUSE_NS
        return now_ns >= self._paused_ns

    def tracker(self, end_ns: int) -> UnitTracker:
        """Return a tracker of all that has completed of the window that ends then."""
        if not self._has_fork:
            return self._tracker
        units = self._lacking
        if self._fork is None:
            self._fork, units = self._tracker.fork(), self._pictures
        self._lacking = [unit for unit in units if unit.available_ns > end_ns]
        units = [unit for unit in units if unit.available_ns <= end_ns]
        if units:
            self._fork.update(units)
            self._note(units)
        return self._fork

    def reported(self, tracks: Sequence[Track]) -> tuple[Track, ...]:
        """Note that an update reports these; return those whose ids a decision may repeat."""
        if self._picture is not None:
            self.configuration_ids = (self._picture.configuration_id,)
        self._picture, self._changed = None, False
        # What a fork begins may be another object than what the tracker begins by that id.
        next_id = self._tracker.state.next_id
        return tuple(track for track in tracks if track.id < next_id)

    def _note(self, units: Sequence[UnitFeatures]) -> None:
        for unit in units:
            newest_ns = self.newest_ns.get(unit.modality, unit.stamp_ns)
            self.newest_ns[unit.modality] = max(newest_ns, unit.stamp_ns)
