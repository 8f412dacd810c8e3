"""The pipeline itself as a policy: what it really did in an offline replay, as a schedule.

Stream: the whole flight is replayed, with whoever steers and whatever gate the pipeline has.
Sample: each window is replayed alone, with its own units, by an idle machine. A lease is a
promise from one window to the next, so that nobody rests there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from mmedge_ros.data_types import (
    NS_PER_S,
    Configuration,
    ModalityConfiguration,
    Unit,
    UnitFeatures,
)
from mmedge_ros.lab.evaluation.encoded_flight import EncodedFlight, replay_encoded
from mmedge_ros.lab.policies.causality import Promise
from mmedge_ros.lab.policies.queueing import WindowQueue, Windows
from mmedge_ros.lab.policies.schedule import (
    SAMPLE,
    STREAM,
    Arrival,
    Encoding,
    PlannedDecision,
    Schedule,
    Use,
)
from mmedge_ros.lab.policies.settings import PolicySettings, ServiceTimes, no_content
from mmedge_ros.lab.policies.steering import Course
from mmedge_ros.pipeline.perception_pipeline import PerceptionPipeline, PipelineParameters
from mmedge_ros.pipeline.unit_intake import acquisition_trail
from mmedge_ros.pipeline.window_assembler import ClosedWindow
from mmedge_ros.records.run_record import RunRecord
from mmedge_ros.replay.steered_replay import Steering
from mmedge_ros.skipping.skip_control import SkipParameters


class Pipelined(NamedTuple):
    """Encodes on arrival, each unit once; a window closes as soon as its units are encoded."""

    name: str

    @property
    def promises(self) -> frozenset[Promise]:
        return frozenset((Promise.ONCE,))

    def schedule(
        self,
        arrivals: Sequence[Arrival],
        periods: Mapping[str, int],
        settings: PolicySettings,
        protocol: str,
    ) -> Schedule:
        """Return what happens to the units of a recording; without a gate, which needs content.

        :param arrivals: by the time they are available
        """
        if not arrivals:
            return Schedule(self.name, protocol, (), ())
        if protocol == SAMPLE:
            return self._alone(arrivals, periods, settings)
        pipeline = _TimesOnly(_parameters(settings))
        return self.replay(blank_flight(arrivals, periods), pipeline, settings)[0]

    def replay(
        self, flight: EncodedFlight, pipeline: PerceptionPipeline, settings: PolicySettings
    ) -> tuple[Schedule, RunRecord]:
        """Replay a flight as a stream; return what was done and what came of it.

        :param pipeline: a new one, whose windows are those of the settings
        :raises ReplayError: as `replay_encoded`
        """
        closed, record = _replayed(
            flight,
            pipeline,
            settings.make_steering() if settings.make_steering else settings.configuration,
            settings,
        )
        known = {c.id: c for c in (settings.configuration, *record.configurations)}
        run = _Derived(record, closed, settings, known)
        decisions = run.decisions()
        ends = {decision.window_end_ns for decision in decisions}
        dropped: tuple[int, ...] = ()
        if decisions:
            grid = range(min(ends), max(ends), settings.stride_ns)
            dropped = tuple(end_ns for end_ns in grid if end_ns not in ends)
        schedule = Schedule(self.name, STREAM, decisions, run.encodings(None), dropped)
        return schedule, record

    def _alone(
        self, arrivals: Sequence[Arrival], periods: Mapping[str, int], settings: PolicySettings
    ) -> Schedule:
        windows = Windows(arrivals, settings.window_ns, settings.stride_ns)
        course = Course(settings, arrivals[0].available_ns, arrivals)
        queue = WindowQueue(windows.ends, settings.capacity)
        encodings: list[Encoding] = []
        decisions: list[PlannedDecision] = []
        while (end_ns := queue.next(0)) is not None:
            configuration = course.at(end_ns - settings.window_ns)
            units = windows.units(end_ns, arrivals)
            made, decision = _window_alone(units, periods, configuration, settings, end_ns)
            encodings += made
            decisions.append(decision)
            by_place = {(unit.modality, unit.sequence): unit for unit in units}
            for encoding in made:
                place = (encoding.modality, encoding.sequence)
                ready_ns = encoding.end_ns + settings.times.transport_ns(*place)
                course.encoded(by_place[place], encoding, ready_ns)
            last = max(decision.uses, key=lambda use: use.sequence, default=None)
            transport_ns = 0
            if last is not None:
                transport_ns = settings.times.transport_ns(last.modality, last.sequence)
            course.decided(decision, transport_ns)
        return Schedule(self.name, SAMPLE, tuple(decisions), tuple(encodings))


def blank_flight(arrivals: Sequence[Arrival], periods: Mapping[str, int]) -> EncodedFlight:
    """Return a flight of these units, with nothing in them."""
    units = tuple(
        Unit(
            *(arrival.modality, arrival.sequence, arrival.stamp_ns, arrival.available_ns),
            '',
            None,
            acquisition_trail(arrival.stamp_ns, arrival.stamp_ns, arrival.available_ns),
        )
        for arrival in arrivals
    )
    modalities = sorted({arrival.modality for arrival in arrivals})
    flight = EncodedFlight(
        *(RunRecord('', 'offline', 0.0, 0.0, 0.0), units, dict(periods), (), None),
        dict.fromkeys(modalities, ()),
    )
    for arrival in arrivals:
        part = ModalityConfiguration(arrival.modality)
        flight.keep(arrival.modality, '', arrival.sequence, no_content(arrival, part))
    return flight


class _TimesOnly(PerceptionPipeline):
    """Tracks nothing: units without content are asked for their times alone."""

    def _absorb(self, end_ns: int) -> None:
        self._waiting = [unit for unit in self._waiting if unit.available_ns > end_ns]


def _parameters(settings: PolicySettings) -> PipelineParameters:
    return PipelineParameters(windows=settings.windows, skipping=SkipParameters(alpha=0.0))


def _window_alone(
    units: Sequence[Arrival],
    periods: Mapping[str, int],
    configuration: Configuration,
    settings: PolicySettings,
    end_ns: int,
) -> tuple[list[Encoding], PlannedDecision]:
    """Replay one window by an idle machine."""
    pipeline = _TimesOnly(_parameters(settings))
    pipeline.assembler.drop_until(end_ns)
    flight = blank_flight(units, periods)
    # Alone, a window has one configuration, whenever that was chosen.
    configuration = replace(configuration, effective_from_ns=0)
    closed, record = _replayed(flight, pipeline, configuration, settings)
    run = _Derived(record, closed, settings, {configuration.id: configuration})
    for decision in run.decisions():
        if decision.window_end_ns == end_ns:
            return list(run.encodings(end_ns)), decision
    # Nothing was received: nothing to wait for, and nothing to look for either.
    begin_ns = end_ns + pipeline.assembler.look_delay_ns
    done_ns = begin_ns + settings.decision_ns(end_ns)
    return [], PlannedDecision(end_ns, begin_ns, done_ns, (), configuration)


def _replayed(
    flight: EncodedFlight,
    pipeline: PerceptionPipeline,
    configuration: Configuration | Steering,
    settings: PolicySettings,
) -> tuple[list[ClosedWindow], RunRecord]:
    closed: list[ClosedWindow] = []
    pipeline.assembler.on_close = closed.append
    record = replay_encoded(flight, pipeline, configuration, settings.times.profile)
    return closed, record


@dataclass
class _Derived:
    """A schedule from what a replay left behind."""

    record: RunRecord
    closed: Sequence[ClosedWindow]
    settings: PolicySettings
    known: Mapping[int, Configuration]

    def encodings(self, window_end_ns: int | None) -> tuple[Encoding, ...]:
        """Return every run of an encoder, by its beginning."""
        found = []
        for features in self.record.features:
            encode = next(stage for stage in reversed(features.trail) if stage.stage == 'encode')
            found.append(
                Encoding(
                    *(features.modality, features.sequence, features.level),
                    *(encode.begin_ns, encode.end_ns),
                    window_end_ns,
                )
            )
        return tuple(sorted(found, key=lambda e: (e.begin_ns, e.end_ns)))

    def decisions(self) -> tuple[PlannedDecision, ...]:
        """Return the decisions, in the order of their windows."""
        windows = {window.end_ns: window for window in self.closed}
        found: list[PlannedDecision] = []
        free_ns, current = 0, self.known[min(self.known)]
        for decision in self.record.decisions:
            window = windows[decision.window_end_ns]
            newest = max((unit.configuration_id for unit in window.members), default=None)
            current = self.known.get(newest, current) if newest is not None else current
            found.append(
                PlannedDecision(
                    decision.window_end_ns,
                    max(window.closed_ns, free_ns),
                    decision.published_ns,
                    tuple(Use(u.modality, u.sequence, u.level) for u in window.members),
                    current,
                    self._waited(window),
                    decision.skipped,
                )
            )
            free_ns = decision.published_ns
        return tuple(found)

    def _waited(self, window: ClosedWindow) -> dict[str, float]:
        waited: dict[str, float] = {}
        for unit in window.members:
            late = max(_ready_ns(unit, self.settings.times) - window.end_ns, 0) / NS_PER_S
            waited[unit.modality] = max(waited.get(unit.modality, 0.0), late)
        return waited


def _ready_ns(unit: UnitFeatures, times: ServiceTimes) -> int:
    return unit.trail[-1].end_ns + times.transport_ns(unit.modality, unit.sequence)
