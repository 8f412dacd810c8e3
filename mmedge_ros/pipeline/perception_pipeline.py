"""From encoded units to decisions: windows, fusion, tracking.

The same object is driven live by the fusion node and in virtual time by the offline replay.
It reads no clock: the instant is passed in.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from typing import TypeAlias

from mmedge_ros.core.clock import TimeBudget
from mmedge_ros.core.data_types import (
    CAMERA,
    NS_PER_S,
    RADAR,
    Configuration,
    Decision,
    Measurement,
    ResultKind,
    SkipDecision,
    TrackLabel,
    Trail,
    UnitFeatures,
    UnitKey,
    UnitReceipt,
    extend_trail,
)
from mmedge_ros.encoding.picture_drift import PictureDrift
from mmedge_ros.geometry.camera_turn import view_of
from mmedge_ros.geometry.ground_plane import GroundPlane
from mmedge_ros.geometry.sensor_rig import SensorRig
from mmedge_ros.pipeline.fused_pictures import FusedPictures
from mmedge_ros.pipeline.pipeline_parameters import PipelineParameters
from mmedge_ros.pipeline.track_labels import TrackLabels
from mmedge_ros.pipeline.track_updates import TrackUpdates
from mmedge_ros.pipeline.unit_tracker import UnitTracker
from mmedge_ros.pipeline.window_assembler import ClosedWindow, WindowAssembler
from mmedge_ros.tracking import FusionError
from mmedge_ros.tracking.boresight import Boresight
from mmedge_ros.tracking.decision_fusion import DecisionFusionParameters, fuse_detections
from mmedge_ros.tracking.pairing import PairedUnits
from mmedge_ros.tracking.score_calibration import ScoreCalibration
from mmedge_ros.tracking.track import TrackerState
from mmedge_ros.tracking.tracker import Tracker
from mmedge_ros.windows.early_decision import GatedDecision
from mmedge_ros.windows.feature_fusion import FeatureFusion

# Only a clock that stands still lets so many units wait for their window.
_MOST_WAITING = 1000
# The newest units that the tracker is behind by where time is short.
_MOST_BEHIND = 16
# What a decision usually finds left to do, and time to wake up late.
_LEFT = {'publishing': 1, 'unit': 2}
_LEFT_TO_FUSE = {'fusing': 1, 'step': 4}
_WAKING_NS = 2_000_000
# Every unit is taken once into each window it belongs to.
_MOST_OVERLAP = 20
# Work ahead is not begun this long before a decision may be due: a step takes one to two
# milliseconds, fusing a picture three to four.
_STEP_MARGIN_NS = 5_000_000


# Where measurements come from: units that belong together, where the sensors are, and the ground.
MeasurementSource: TypeAlias = Callable[[PairedUnits, SensorRig, GroundPlane], list[Measurement]]


def decision_fusion_source(
    parameters: DecisionFusionParameters, boresight: Boresight | None = None
) -> MeasurementSource:
    """Return decision fusion as a source of measurements.

    :param boresight: learns whether radar and camera look the same way
    """

    def measure(units: PairedUnits, rig: SensorRig, ground: GroundPlane) -> list[Measurement]:
        ego = rig.ego_at(units.stamp_ns)
        at = None if ego is None else (units.stamp_ns, ego.pose.translation)
        if at:
            ground.learn_points(*at, rig.ground_points(ground.learned_ns, units.stamp_ns))
        return fuse_detections(
            units.camera,
            units.scans,
            rig.geometry_at(units.stamp_ns),
            parameters,
            [rig.geometry_at(scan.stamp_ns) for scan in units.scans],
            ground.view(*at) if at else None,
            lambda readings: ground.learn(*at, *readings) if at else None,
            boresight,
        )

    return measure


class PerceptionPipeline:
    """Units in, decisions out, and updates between them.

    :param feature_fusion: takes the place of what the encoders of the camera have detected;
        without it decision fusion does all
    :param early_decision: decides some windows before they end; None waits for all
    :param measure: where measurements come from, units of added modalities included; None is
        decision fusion, which does without those: they count only as units and by their age
    :param noise_scale: how much larger errors usually are than the tracker's noise models say
    :param scores: learns what the scores of the detector mean, of one that nobody calibrated
    :param drift: notices pictures that are unlike the calibration flights'; it changes no track,
        and while there are such, no window is decided early
    :raises FusionError: if windows overlap too much for feature fusion
    """

    def __init__(
        self,
        parameters: PipelineParameters | None = None,
        feature_fusion: FeatureFusion | None = None,
        *,
        early_decision: GatedDecision | None = None,
        measure: MeasurementSource | None = None,
        noise_scale: float = 1.0,
        drift: PictureDrift | None = None,
        scores: ScoreCalibration | None = None,
    ) -> None:
        self.drift = drift
        self.scores = scores
        self.parameters = p = parameters or PipelineParameters()
        self.feature_fusion = feature_fusion
        self.early_decision = early_decision
        self.noise_scale = noise_scale
        self.budget = TimeBudget()
        if feature_fusion is not None and p.windows.window > _MOST_OVERLAP * p.windows.stride:
            raise FusionError(
                f'windows of {p.windows.window:g} s every {p.windows.stride:g} s overlap more '
                f'than {_MOST_OVERLAP} times, too much for feature fusion; choose a shorter '
                'window or a longer stride, or strategy: decision'
            )
        self.assembler = WindowAssembler(p.windows, p.modalities)
        offset_ns = round(p.time_offset * NS_PER_S)
        # Only ever earlier: a measurement in the future of its arrival would be none.
        self._late_ns = {RADAR: max(offset_ns, 0), CAMERA: max(-offset_ns, 0)}
        self.rig = rig = SensorRig()
        self._measures_all = measure is not None
        self.boresight = Boresight()
        source = measure or decision_fusion_source(p.fusion, self.boresight)
        tracker = Tracker(p.tracking(feature_fusion is not None), noise_scale)
        self.tracker = UnitTracker(
            tracker,
            lambda units, ground: source(units, rig, ground),
            p.pairing,
            p.lag,
            lambda stamp_ns: view_of(rig.geometry_at(stamp_ns)),
        )
        self._updates = TrackUpdates(self.tracker, has_fork=feature_fusion is not None)
        self._labels = TrackLabels()
        self._place = ('', False)
        self._fused = None if feature_fusion is None else FusedPictures(feature_fusion, p)
        if early_decision is not None:
            early_decision.attach(self)
        self._start_over()

    def limit_time(self, now_ns: Callable[[], int]) -> TimeBudget:
        """From now on leave out what cannot be done in time, as a graph that flies has to.

        :param now_ns: the clock of the instants; in virtual time there is none, and all is done
        """
        self.budget = TimeBudget(now_ns)
        self.assembler.gives_up = True
        return self.budget

    @property
    def open_end_ns(self) -> int | None:
        """End of the earliest open window, None before the first unit."""
        return self.assembler.next_end_ns

    @property
    def track_state(self) -> TrackerState:
        """All tracks after the newest unit."""
        return self.tracker.state

    @property
    def degraded(self) -> tuple[str, ...]:
        """What decisions have to do without, in words."""
        return (*self.rig.degraded, *self.boresight.words, *self.unlike)

    @property
    def unlike(self) -> tuple[str, ...]:
        """What of the pictures is unlike the calibration flights', in words."""
        return () if self.drift is None else self.drift.words

    def add_receipt(self, receipt: UnitReceipt, now_ns: int) -> None:
        """Enter the receipt of a unit, which comes before or instead of its features."""
        late_ns = self._late_ns.get(receipt.modality, 0)
        if late_ns:
            receipt = replace(receipt, stamp_ns=receipt.stamp_ns - late_ns)
        self.assembler.add_receipt(receipt, now_ns)

    def add_features(self, features: UnitFeatures, now_ns: int) -> bool:
        """Enter an encoded unit that arrived at ``now_ns``; False for one not to be used."""
        late_ns = self._late_ns.get(features.modality, 0)
        if late_ns:
            features = _stamped_earlier(features, late_ns)
        self.rig.set_frames({features.modality: features.frame_id})
        if features.modality == CAMERA:
            self.rig.see_picture(*features.image_size)
            if self.drift is not None:
                self.drift.take(features.stamp_ns, features.appearance)
            if self.scores is not None:
                taken = self.scores.take(features.stamp_ns, features.detections, features.followed)
                features = replace(features, detections=taken)
        if not self.assembler.add_features(features, now_ns):
            return False
        self._follow_restart()
        if features.modality == CAMERA and self.parameters.updates:
            self._updates.entered(features, now_ns, self.budget)
        if not (self._measures_all or features.modality in (CAMERA, RADAR)):
            return True  # it belongs to its windows, but the fusions here know nothing of it
        if self._fused is not None and not features.followed:
            self._fused.enter(
                features,
                self.assembler.open_ends(features.available_ns),
                self.assembler.next_end_ns or 0,
                self.rig.geometry_at(features.stamp_ns),
            )
        # Of pictures the tracker is given what feature fusion makes of them, when it does.
        if self.feature_fusion is None or features.modality != CAMERA:
            self._waiting.append(features)
            most = _MOST_BEHIND if self.budget.is_limited else _MOST_WAITING
            self._shed(self._waiting[:-most])
        if self.early_decision is not None:
            # Its features are of the tracks as they are now.
            self._absorb(self._due(self.assembler.next_end_ns or 0))
            self.early_decision.unit_added(features, now_ns)
        return True

    def add_labels(self, labels: Iterable[TrackLabel]) -> None:
        """Enter what a recogniser says of tracks; decisions from now on hold it."""
        self._labels.add(labels)

    def configure(self, configuration: Configuration) -> None:
        """Note how sensing is configured: a modality that stands by is not lost."""
        self.assembler.schedule.add(configuration)

    def next_poll_ns(self, now_ns: int) -> int | None:
        """Return when `poll` can next have something to do, None before the first unit."""
        return self.assembler.next_poll_ns(now_ns)

    @property
    def last_call_ns(self) -> int | None:
        """When the next decision is made of what is ready, None before the first unit."""
        return self.assembler.last_call_ns

    def drop_overdue(self, now_ns: int) -> None:
        """Drop windows that are still open when the one after them is due."""
        dropped = self.assembler.counts.dropped_windows
        self.assembler.drop_overdue(now_ns)
        self.budget.shed['windows'] += self.assembler.counts.dropped_windows - dropped

    @property
    def has_work_ahead(self) -> bool:
        """Whether there is work for windows that end later."""
        fusion = self.feature_fusion
        return self._has_units_ahead or (fusion is not None and fusion.has_work)

    @property
    def _has_units_ahead(self) -> bool:
        end_ns = self.assembler.next_end_ns or 0
        return any(unit.available_ns <= end_ns for unit in self._waiting)

    def work_ahead(self, now_ns: int) -> bool:
        """Do a bit of the work for windows that end later, if there is time for it.

        It changes no decision, only how much is left to do when a window ends.

        :return: whether there was something to do; there may be more
        """
        if self._has_units_ahead:
            # What belongs to the open window, while that is still filling: when it ends, only
            # the last unit is left to do. All at once: a picture that comes late makes the
            # tracker go back over what is newer, and one by one a backlog would never end.
            self.budget.begin(self.last_call_ns or 0)
            due = self._due(self.assembler.next_end_ns or 0)
            most = self.budget.most('unit', len(due))
            self._absorb(due[:most])
            return most > 0
        if self.feature_fusion is None or not self.feature_fusion.has_work:
            return False
        poll_ns = self.next_poll_ns(now_ns)
        if poll_ns is not None and poll_ns - now_ns < _STEP_MARGIN_NS:
            return False
        self.feature_fusion.work_ahead(self.budget)
        return True

    def poll(self, now_ns: int) -> list[Decision]:
        """Decide every window that can be closed; the caller publishes in this order."""
        self._follow_restart()
        decisions = [self._decide(window) for window in self.assembler.poll(now_ns)]
        early = self.early_decision
        if early is None:
            return decisions
        return [early.window_decided(decision) for decision in decisions] + early.decide(now_ns)

    def decide_early(self, now_ns: int) -> Decision | None:
        """Decide the earliest open window from what has arrived; None if there is none."""
        window = self.assembler.close_early(now_ns)
        return None if window is None else self._decide(window)

    def preview(self, end_ns: int, now_ns: int, pictures: Collection[UnitFeatures]) -> Decision:
        """Return what would be decided now of the window that ends then, and change nothing.

        :param pictures: of the last moments; feature fusion replaces their detections
        """
        tracker = self.tracker.fork()
        if self._fused is not None and (new := self._fused.preview(end_ns, pictures)):
            tracker.update(new)
        state_ns = min(max(self._state_ns, tracker.newest_ns or now_ns), now_ns)
        begin_ns = end_ns - self.assembler.window_ns
        tracks = tracker.report(state_ns, begin_ns, self.rig.picture_size)
        return Decision(end_ns, state_ns, self.rig.frame_id, tracks, {})

    @property
    def has_update(self) -> bool:
        """Whether `update` may have something to tell of."""
        return self._updates.is_waiting

    def update(self, now_ns: int, takes_ns: int = 0) -> Decision | None:
        """Return what is known of the tracks when a picture has completed, between decisions.

        It changes no decision. None is made that a decision might have to wait for, or where time
        was short lately.

        :param takes_ns: time until it is published, where that is known
        """
        end_ns, budget = self.open_end_ns, self.budget
        if end_ns is None or not self.parameters.updates or self._has_units_ahead:
            return None
        has_ended = now_ns >= end_ns + self.assembler.look_delay_ns
        if not self._updates.asked(end_ns, has_ended, now_ns, budget):
            return None
        until_ns = self.assembler.quiet_until_ns(now_ns)
        budget.begin(until_ns)
        if now_ns + takes_ns > until_ns or not budget.fits(update=1, publishing=1):
            return None
        begun_ns = budget.started()
        tracker = self._updates.tracker(end_ns)
        state_ns = min(max(self._state_ns, tracker.newest_ns), now_ns)
        begin_ns = end_ns - self.assembler.window_ns
        tracks = self._updates.reported(tracker.report(state_ns, begin_ns, self.rig.picture_size))
        newest_ns = dict(self._newest_ns)
        for modality, stamp_ns in self._updates.newest_ns.items():
            newest_ns[modality] = max(newest_ns.get(modality, stamp_ns), stamp_ns)
        budget.ended('update', begun_ns)
        return Decision(
            window_end_ns=end_ns,
            state_ns=state_ns,
            frame_id=self.rig.frame_id,
            tracks=self._labels.attached(tracks),
            newest_ns=newest_ns,
            configuration_ids=self._updates.configuration_ids,
            degraded=self.degraded,
            trail=self._updates.trail,
            kind=ResultKind.UPDATE,
        )

    def take_skips(self) -> Sequence[SkipDecision]:
        """Return the leases since the last call: without early decisions there are none."""
        return () if self.early_decision is None else self.early_decision.take_skips()

    def reset(self) -> None:
        """Forget windows, units and tracks; calibration, counts and ids go on."""
        self.assembler.reset()
        self._start_over()

    def _follow_restart(self) -> None:
        if self.assembler.counts.restarts != self._restarts:
            self._start_over()

    def _start_over(self) -> None:
        self._restarts = self.assembler.counts.restarts
        self.tracker.reset()
        if self.scores is not None:
            self.scores.restart()
        self._state_ns = 0
        self._waiting: list[UnitFeatures] = []
        self._put_off: list[UnitFeatures] = []
        self._left_out: set[UnitKey] = set()
        self._added_ns = 0
        self._is_hasty = False
        self._newest_ns: dict[str, int] = {}
        self._labels.reset()
        self._updates.reset()
        if self._fused is not None:
            self._fused.reset()
        if self.early_decision is not None:
            self.early_decision.reset()

    def _due(self, end_ns: int) -> list[UnitFeatures]:
        """Return the waiting units that belong to the window that ends then."""
        return [unit for unit in self._waiting if unit.available_ns <= end_ns]

    def _absorb(self, units: Sequence[UnitFeatures]) -> None:
        """Hand the tracker some of the waiting units."""
        if (place := (self.rig.frame_id, self.rig.has_camera)) != self._place:
            # Transforms or odometry that came late moved the tracking frame, or calibration
            # the places in it: what is known lies elsewhere.
            self._place = place
            self.tracker.reset()
            self._updates.started_over()
        if units:
            self._forget_waiting(units)
            self._track(units)

    def _absorb_in_time(self, end_ns: int) -> None:
        """Hand the tracker what belongs to a window, or of that the newest there is time for.

        Of the others none is of use to a later decision; if there is no time for any, all wait.
        """
        due = self._due(end_ns)
        most = self.budget.most('unit', len(due))
        if 0 < most < len(due):
            self._shed(due[:-most])
            due = due[-most:]
        self._absorb(due if most else ())

    def _shed(self, units: Sequence[UnitFeatures]) -> None:
        self.budget.shed['units'] += len(units)
        self._left_out.update(unit.key for unit in units)
        self._forget_waiting(units)

    def _forget_waiting(self, units: Sequence[UnitFeatures]) -> None:
        gone = {unit.key for unit in units}
        if gone:
            self._waiting = [unit for unit in self._waiting if unit.key not in gone]

    def _track(self, units: Sequence[UnitFeatures]) -> None:
        begun_ns = self.budget.started()
        self.tracker.update(units)
        self._updates.tracked(units)
        self.budget.ended('unit', begun_ns, len(units))

    def _decide(self, window: ClosedWindow) -> Decision:
        deadline_ns = window.end_ns + self.assembler.deadline_ns
        self.budget.begin(deadline_ns - self.budget.usual_ns('publishing'))
        self._absorb_in_time(window.end_ns)
        without: tuple[str, ...] = ()
        if self._fused is not None:
            camera_ns = self._newest_ns.get(CAMERA, 0)
            fused = self._fused.of_window(window, self._put_off, camera_ns, self.budget)
            self._is_hasty, without = fused.is_hasty, fused.without
            if fused.pictures:
                self._track(fused.pictures)
        for unit in self._taken(window.fresh):
            previous_ns = self._newest_ns.get(unit.modality, unit.stamp_ns)
            self._newest_ns[unit.modality] = max(previous_ns, unit.stamp_ns)
        self._updates.decided(window.end_ns)
        # Without anything new the state is predicted to the window end, never into the future.
        last_ns = min(window.end_ns, window.closed_ns)
        newest_ns = (self.tracker.newest_ns if window.fresh else 0) or last_ns
        self._state_ns = min(max(self._state_ns, newest_ns), window.end_ns)
        return Decision(
            window_end_ns=window.end_ns,
            state_ns=self._state_ns,
            frame_id=self.rig.frame_id,
            tracks=self._labels.attached(
                self.tracker.report(
                    self._state_ns, window.end_ns - self.assembler.window_ns, self.rig.picture_size
                )
            ),
            newest_ns=dict(self._newest_ns),
            configuration_ids=tuple(sorted({u.configuration_id for u in window.members})),
            skipped=window.skipped,
            lost=window.lost,
            late=window.late,
            degraded=(*self.degraded, *without),
            trail=_critical_trail(window),
        )

    def _taken(self, fresh: Sequence[UnitFeatures]) -> list[UnitFeatures]:
        """Return the units of a window, and those put off before, that are in its decision."""
        left = {unit.key for unit in self._waiting}
        if self.feature_fusion is not None:
            left |= self.feature_fusion.put_off
        units = [*self._put_off, *fresh]
        self._put_off = [unit for unit in units if unit.key in left][-_MOST_BEHIND:]
        if self.budget.is_limited:
            self._reserve()
        left |= self._left_out
        self._left_out = set()
        return [unit for unit in units if unit.key not in left]

    def _reserve(self) -> None:
        """Close windows as long before their deadline as the work on them takes.

        Where that was not enough more is added, which wears off.
        """
        parts = {**_LEFT, **(_LEFT_TO_FUSE if self.feature_fusion is not None else {})}
        usual_ns = sum(count * self.budget.usual_ns(part) for part, count in parts.items())
        needed_ns = usual_ns + _WAKING_NS
        if self._put_off or self._is_hasty:
            self._added_ns = min(2 * self._added_ns + needed_ns, self.assembler.deadline_ns)
        else:
            self._added_ns = self._added_ns * 4 // 5
        self.assembler.reserve_ns = needed_ns + self._added_ns


def _stamped_earlier(features: UnitFeatures, late_ns: int) -> UnitFeatures:
    """Return a unit whose sensor stamps late as it was measured; its trail begins there."""
    stamp_ns = features.stamp_ns - late_ns
    trail = features.trail
    if trail:
        trail = (trail[0]._replace(begin_ns=trail[0].begin_ns - late_ns), *trail[1:])
    return replace(features, stamp_ns=stamp_ns, trail=trail)


def _critical_trail(window: ClosedWindow) -> Trail:
    """Path of the unit the window had to wait for, up to the closing of the window."""
    if window.critical is None or not window.critical.trail:
        return ()
    trail = extend_trail(window.critical.trail, 'transport_features', window.critical_arrived_ns)
    return extend_trail(trail, 'window', window.closed_ns)
