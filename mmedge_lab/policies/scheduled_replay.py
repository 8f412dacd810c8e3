"""What a schedule's decisions say: the pipeline's own fusion and tracking, at its times.

Each unit is given to the pipeline once, when the first decision uses it, and never one that the
schedule has not used by then.
"""

from __future__ import annotations

from collections import deque
from dataclasses import replace

from mmedge_lab.judging import EvaluationError
from mmedge_lab.judging.encoded_flight import (
    EncodedFlight,
    StoredEncoder,
    set_up_geometry,
)
from mmedge_lab.policies.schedule import Arrival, Encoding, PlannedDecision, Schedule, UnitKey, Use
from mmedge_lab.policies.settings import with_trail
from mmedge_lab.policies.steering import Imputer
from mmedge_ros.core.data_types import (
    RADAR,
    Decision,
    ModalityConfiguration,
    Trail,
    Unit,
    UnitFeatures,
    extend_trail,
)
from mmedge_ros.core.run_record import RunRecord, UnitCounts
from mmedge_ros.encoding import EncodingError
from mmedge_ros.pipeline.perception_pipeline import PerceptionPipeline
from mmedge_ros.pipeline.unit_intake import acquisition_trail, plausible_stamp
from mmedge_ros.replay.offline_session import enter_geometry
from mmedge_ros.sensing import SensingError


class StoredFeatures:
    """Looks up the features of each unit of a flight."""

    def __init__(self, flight: EncodedFlight) -> None:
        self._encoders = {m: StoredEncoder(flight, m) for m in flight.modalities}
        self.units = {
            (event.modality, event.sequence): _with_usable_stamp(event)
            for event in flight.events
            if isinstance(event, Unit) and event.modality in self._encoders
        }

    @property
    def arrivals(self) -> tuple[Arrival, ...]:
        """The units in the order in which they are available."""
        every = (Arrival(*key, u.stamp_ns, u.available_ns) for key, u in self.units.items())
        return tuple(sorted(every, key=lambda a: a.available_ns))

    def of(
        self, unit: UnitKey, part: ModalityConfiguration, configuration_id: int = 0
    ) -> UnitFeatures | None:
        """Return the features of a unit, encoded in full; None where it could not be encoded.

        :raises ReplayError: if it was not encoded with the level
        """
        try:
            every = replace(part, reuse=1)
            return self._encoders[unit[0]].encode(self.units[unit], every, configuration_id)
        except (SensingError, EncodingError):
            return None


def replay_schedule(
    flight: EncodedFlight,
    schedule: Schedule,
    pipeline: PerceptionPipeline,
    imputer: Imputer | None = None,
) -> RunRecord:
    """Make the decisions of a schedule.

    :param pipeline: a new one without a gate, with windows as those of the schedule; it is given
        the calibration here
    :param imputer: makes up what the schedule says is imputed
    :raises ReplayError: if a unit was not encoded with the level it is used with
    :raises EvaluationError: if the schedule uses a unit that the flight does not have, or
        imputes and there is no imputer
    """
    set_up_geometry(flight, pipeline)
    replay = _ScheduledReplay(flight, schedule, pipeline, imputer)
    record = replace(flight.record, features=[], units={}, problems=[], decisions=[])
    record.decisions = [replay.decide(planned) for planned in schedule.decisions]
    record.features = replay.features
    record.units = _counts(flight, schedule)
    record.dropped = len(schedule.dropped)
    windows = pipeline.parameters.windows
    record.window, record.stride = windows.window, windows.stride
    record.deadline = windows.deadline
    enter_geometry(record, pipeline, flight.modalities)
    return record


class _ScheduledReplay:
    """Gives the pipeline what each decision uses, in the order of decisions."""

    def __init__(
        self,
        flight: EncodedFlight,
        schedule: Schedule,
        pipeline: PerceptionPipeline,
        imputer: Imputer | None,
    ) -> None:
        self.features: list[UnitFeatures] = []
        self._stored = StoredFeatures(flight)
        self._pipeline = pipeline
        self._imputer = imputer
        self._given: dict[UnitKey, UnitFeatures | None] = {}
        self._encodings: dict[Use, list[Encoding]] = {}
        for encoding in schedule.encodings:
            use = Use(*encoding.unit, encoding.level)
            self._encodings.setdefault(use, []).append(encoding)
        self._ego = deque(event for event in flight.events if not isinstance(event, Unit))

    def decide(self, planned: PlannedDecision) -> Decision:
        """Return the decision that was planned."""
        pipeline, end_ns = self._pipeline, planned.window_end_ns
        while self._ego and self._ego[0].available_ns <= planned.decide_ns:
            ego = self._ego.popleft()
            pipeline.rig.enter(ego)
        pipeline.assembler.drop_until(end_ns)
        # The window closes as on an idle machine; the schedule says when it really did.
        look_ns = end_ns + pipeline.assembler.look_delay_ns
        fresh = [made for use in planned.uses if (made := self._first_use(use, planned))]
        for features in sorted(fresh, key=lambda f: f.available_ns):
            pipeline.add_features(features, look_ns)
        decided = [d for d in pipeline.poll(look_ns) if d.window_end_ns == end_ns]
        if len(decided) != 1:
            raise EvaluationError(
                f'the window that ends at {end_ns} ns cannot be decided: ends of windows must '
                f'ascend on a grid of {pipeline.parameters.windows.stride:g} s'
            )
        decision = self._imputed(decided[0], planned) if planned.imputed else decided[0]
        trail = _critical(fresh, planned.decide_ns)
        return replace(decision, skipped=planned.skipped, trail=trail).published(
            planned.published_ns
        )

    def _first_use(self, use: Use, planned: PlannedDecision) -> UnitFeatures | None:
        """Return a unit's features where no decision before used it."""
        if use.unit in self._given:
            return None
        if use.unit not in self._stored.units:
            raise EvaluationError(f'the flight has no {use.modality} unit {use.sequence}')
        part = replace(planned.configuration.of(use.modality), level=use.level)
        made = self._stored.of(use.unit, part, planned.configuration.id)
        if made is not None:
            encodings = self._encodings.get(use, ())
            ready = [e for e in encodings if e.end_ns <= planned.decide_ns]
            made = with_trail(made, ready[-1]) if ready else made
            self.features.append(made.without_grid())
        self._given[use.unit] = made
        return made

    def _imputed(self, decision: Decision, planned: PlannedDecision) -> Decision:
        """Let the tracker go on with made-up features, for this decision alone."""
        if self._imputer is None:
            raise EvaluationError('the schedule imputes features, and there is no imputer')
        pipeline, end_ns = self._pipeline, planned.window_end_ns
        begin_ns = end_ns - pipeline.assembler.window_ns
        ready: dict[str, list[UnitFeatures]] = {}
        for use in planned.uses:
            known = self._given.get(use.unit)
            if known is not None:
                ready.setdefault(use.modality, []).append(known)
        made_up = []
        for modality in planned.imputed:
            inside = [
                unit
                for (of, _), unit in self._stored.units.items()
                if of == modality and begin_ns < unit.available_ns <= end_ns
            ]
            if inside:
                newest = max(inside, key=lambda unit: unit.stamp_ns)
                features = self._imputer.impute(self._without_content(newest, planned), ready)
                made_up += [] if features is None else [features.without_grid()]
        if not made_up:
            return decision
        tracker = pipeline.tracker.fork()
        tracker.update(made_up)
        state_ns = min(max(decision.state_ns, tracker.newest_ns), end_ns)
        tracks = tracker.report(state_ns, begin_ns, self._picture_size())
        return replace(decision, state_ns=state_ns, tracks=tracks)

    def _without_content(self, unit: Unit, planned: PlannedDecision) -> UnitFeatures:
        part = planned.configuration.of(unit.modality)
        return UnitFeatures(
            *(unit.modality, unit.sequence, unit.stamp_ns, unit.available_ns, unit.frame_id),
            unit.trail,
            part.rate,
            part.level,
            image_size=(0, 0) if unit.modality == RADAR else self._picture_size(),
        )

    def _picture_size(self) -> tuple[int, int]:
        camera = self._pipeline.rig.geometry.camera
        return (camera.width, camera.height) if camera else (0, 0)


def _critical(fresh: list[UnitFeatures], decide_ns: int) -> Trail:
    """Return the path of the new unit that was ready last, to where the decision's work began."""
    last = max(fresh, key=lambda f: f.trail[-1].end_ns, default=None)
    if last is None:
        return ()
    return extend_trail(last.trail, 'window', decide_ns)


def _counts(flight: EncodedFlight, schedule: Schedule) -> dict[str, UnitCounts]:
    counts = {modality: UnitCounts() for modality in flight.modalities}
    for event in flight.events:
        if isinstance(event, Unit) and event.modality in counts:
            count = counts[event.modality]
            count.captured += 1
            count.transferred += 1
            count.received += 1
    for encoding in schedule.encodings:
        counts[encoding.modality].encoded += 1
    return counts


def _with_usable_stamp(unit: Unit) -> Unit:
    if plausible_stamp(unit.stamp_ns, unit.available_ns):
        return unit
    trail = acquisition_trail(unit.available_ns, unit.available_ns, unit.available_ns)
    return replace(unit, stamp_ns=unit.available_ns, trail=trail)
