"""The pipeline itself as a policy: what it really did in an offline replay, as a schedule.

Stream: the whole flight is replayed, with the steering of the settings and the pipeline's gate.
Sample: each window is replayed alone, with its own units, by an idle machine. A lease is a
promise from one window to the next, so that no modality rests there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from mmedge_lab.judging.encoded_flight import EncodedFlight, replay_encoded
from mmedge_lab.judging.steered_replay import Steering
from mmedge_lab.policies.causality import Promise
from mmedge_lab.policies.encoder_servers import WindowQueue, Windows
from mmedge_lab.policies.schedule import (
    SAMPLE,
    STREAM,
    Arrival,
    Encoding,
    PlannedDecision,
    Schedule,
    Use,
    waited_for,
)
from mmedge_lab.policies.settings import PolicySettings, no_content
from mmedge_lab.policies.steering import Course
from mmedge_ros.data_types import Configuration, ModalityConfiguration, Unit, UnitFeatures
from mmedge_ros.pipeline.perception_pipeline import PerceptionPipeline
from mmedge_ros.pipeline.pipeline_parameters import PipelineParameters
from mmedge_ros.pipeline.unit_intake import acquisition_trail
from mmedge_ros.pipeline.window_assembler import ClosedWindow
from mmedge_ros.records.run_record import RunRecord
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
        flight = blank_flight(arrivals, periods)
        return self.replay(flight, _times_only(settings), settings)[0]

    def replay(
        self, flight: EncodedFlight, pipeline: PerceptionPipeline, settings: PolicySettings
    ) -> tuple[Schedule, RunRecord]:
        """Replay a flight as a stream; return the schedule and the run record.

        :param pipeline: a new one, whose windows are those of the settings
        :raises ReplayError: as `replay_encoded`
        """
        steering = settings.make_steering() if settings.make_steering else settings.configuration
        closed, record = _replayed(flight, pipeline, steering, settings)
        decisions = _decisions(record, closed, settings)
        ends = {decision.window_end_ns for decision in decisions}
        dropped: tuple[int, ...] = ()
        if decisions:
            grid = range(min(ends), max(ends), settings.stride_ns)
            dropped = tuple(end_ns for end_ns in grid if end_ns not in ends)
        return Schedule(self.name, STREAM, decisions, _encodings(record), dropped), record

    def _alone(
        self, arrivals: Sequence[Arrival], periods: Mapping[str, int], settings: PolicySettings
    ) -> Schedule:
        windows = Windows(arrivals, settings.window_ns, settings.stride_ns)
        course = Course(settings, arrivals[0].available_ns, arrivals)
        queue = WindowQueue(windows.ends)
        encodings: list[Encoding] = []
        decisions: list[PlannedDecision] = []
        while (end_ns := queue.next(0)) is not None:
            configuration = course.at(end_ns - settings.window_ns)
            units = {unit.unit: unit for unit in windows.units(end_ns, arrivals)}
            flight = blank_flight(tuple(units.values()), periods)
            made, decision = _window_alone(flight, configuration, settings, end_ns)
            encodings += made
            decisions.append(decision)
            for encoding in made:
                course.encoded(units[encoding.unit], encoding)
            last = max(decision.uses, key=lambda use: use.sequence, default=None)
            course.decided(decision, last.unit if last else None)
        return Schedule(self.name, SAMPLE, tuple(decisions), tuple(encodings))


def blank_flight(arrivals: Sequence[Arrival], periods: Mapping[str, int]) -> EncodedFlight:
    """Return a flight of these units, with nothing in them."""
    units = tuple(
        Unit(
            *arrival,
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
    """Tracks nothing: of units without content only the times matter."""

    def _track(self, units: Sequence[UnitFeatures]) -> None:
        """Do nothing."""


def _times_only(settings: PolicySettings) -> _TimesOnly:
    skipping = SkipParameters(delta=0.0)
    parameters = PipelineParameters(updates=False, windows=settings.windows, skipping=skipping)
    return _TimesOnly(parameters)


def _window_alone(
    flight: EncodedFlight, configuration: Configuration, settings: PolicySettings, end_ns: int
) -> tuple[tuple[Encoding, ...], PlannedDecision]:
    """Replay one window by an idle machine."""
    pipeline = _times_only(settings)
    pipeline.assembler.drop_until(end_ns)
    # Alone, a window has one configuration, whenever that was chosen.
    configuration = replace(configuration, effective_from_ns=0)
    closed, record = _replayed(flight, pipeline, configuration, settings)
    for decision in _decisions(record, closed, replace(settings, configuration=configuration)):
        if decision.window_end_ns == end_ns:
            return _encodings(record, end_ns), decision
    # Nothing was received: nothing to wait for, and nothing to look for either.
    begin_ns = end_ns + pipeline.assembler.look_delay_ns
    done_ns = begin_ns + settings.decision_ns(end_ns)
    return (), PlannedDecision(end_ns, begin_ns, done_ns, (), configuration)


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


def _encodings(record: RunRecord, window_end_ns: int | None = None) -> tuple[Encoding, ...]:
    """Return every run of an encoder, by its beginning; following is one."""
    encodings = []
    for unit in record.features:
        work = 'follow' if unit.followed else 'encode'
        encode = next(stage for stage in reversed(unit.trail) if stage.stage == work)
        span = (encode.begin_ns, encode.end_ns, window_end_ns)
        encodings.append(Encoding(unit.modality, unit.sequence, unit.level, *span))
    return tuple(sorted(encodings, key=lambda e: (e.begin_ns, e.end_ns)))


def _decisions(
    record: RunRecord, closed: Sequence[ClosedWindow], settings: PolicySettings
) -> tuple[PlannedDecision, ...]:
    """Return the decisions, in the order of their windows."""
    known = {c.id: c for c in (settings.configuration, *record.configurations)}
    windows = {window.end_ns: window for window in closed}
    decisions: list[PlannedDecision] = []
    free_ns, current = 0, known[min(known)]
    for decision in record.decisions:
        window = windows[decision.window_end_ns]
        newest = max((unit.configuration_id for unit in window.members), default=None)
        current = known.get(newest, current) if newest is not None else current
        ready = (
            (u.modality, u.trail[-1].end_ns + settings.times.transport_ns(u.modality, u.sequence))
            for u in window.members
        )
        decisions.append(
            PlannedDecision(
                decision.window_end_ns,
                max(window.closed_ns, free_ns),
                decision.published_ns,
                tuple(Use(u.modality, u.sequence, u.level) for u in window.members),
                current,
                waited_for(window.end_ns, ready),
                decision.skipped,
            )
        )
        free_ns = decision.published_ns
    return tuple(decisions)
