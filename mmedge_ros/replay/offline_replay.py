"""Offline replay: the whole graph in one process, in virtual time.

A discrete-event simulation drives the same objects as the nodes do: units arrive when the
bag received them, each encoder serves one unit at a time, features travel, windows close.
How long something takes is either measured while it runs or taken from a device profile;
with a profile the run is deterministic.
"""

from __future__ import annotations

import heapq
import itertools
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from mmedge_ros.core.data_types import (
    NS_PER_S,
    Decision,
    Novelty,
    SkipDecision,
    TrackLabel,
    Unit,
    UnitFeatures,
    UnitOutcome,
    UnitReceipt,
    extend_trail,
)
from mmedge_ros.core.device_profile import DeviceProfile
from mmedge_ros.core.run_record import RunRecord, UnitCounts, count_failure
from mmedge_ros.encoding import EncodingError
from mmedge_ros.encoding.track_recogniser import Recognised, TrackRecogniser
from mmedge_ros.encoding.unit_encoder import UnitEncoder
from mmedge_ros.geometry.sensor_rig import RigReport
from mmedge_ros.pipeline.perception_pipeline import PerceptionPipeline
from mmedge_ros.pipeline.unit_intake import Admitted, UnitIntake, receipt_of
from mmedge_ros.sensing import SensingError
from mmedge_ros.sensing.radar.filter import PROBLEM_WORDS

_LONGEST_SILENCE_NS = 5 * NS_PER_S
# A look at a track takes so long where times are those of a profile: more than was measured.
_LOOK_NS = 1_000_000


class _Server:
    """One encoder: its intake, and whether it is at work."""

    def __init__(self, encoder: UnitEncoder, native_period_ns: int | None) -> None:
        self.encoder = encoder
        self.intake = UnitIntake(encoder.modality, native_period_ns=native_period_ns)
        self.busy = False
        self.counts = UnitCounts()
        self.failures: Counter[str] = Counter()
        self.recogniser: TrackRecogniser | None = getattr(encoder, 'recogniser', None)
        self.decision: Decision | None = None


class OfflineReplay:
    """Runs units through encoders and pipeline in virtual time; encoders obey leases.

    :param profile: service times; without one they are measured
    :param native_periods_ns: distance of units per modality, for rate control
    :param on_decision: called with every decision as it is published
    """

    def __init__(
        self,
        pipeline: PerceptionPipeline,
        encoders: Mapping[str, UnitEncoder],
        profile: DeviceProfile | None = None,
        native_periods_ns: Mapping[str, int] | None = None,
        on_decision: Callable[[Decision], None] | None = None,
    ) -> None:
        periods = native_periods_ns or {}
        self.pipeline = pipeline
        self.servers = {m: _Server(e, periods.get(m)) for m, e in encoders.items()}
        self._recognising = [s for s in self.servers.values() if s.recogniser is not None]
        self.decisions: list[Decision] = []
        self.updates: list[Decision] = []
        self.features: list[UnitFeatures] = []
        self.novelties: list[Novelty] = []
        self._profile = profile
        self._on_decision = on_decision
        self._events: list[tuple[int, int, Callable[..., None], tuple[Any, ...]]] = []
        self._order = itertools.count()
        self._poll_ns: int | None = None
        self._free_ns = 0
        self._comes_back = False
        self._last_arrival_ns = 0
        self._exhausted = False

    def run(self, received: Iterator[Unit | RigReport]) -> None:
        """Play units and odometry in the order they were received; let the graph finish."""
        self._feed(received)
        while self._events:
            now_ns, _, action, arguments = heapq.heappop(self._events)
            action(now_ns, *arguments)
            self._schedule_poll(now_ns)
        # What else arrived later, or was still in work, closed windows beyond the last unit.
        beyond_ns = self._last_arrival_ns + self.pipeline.assembler.stride_ns
        self.decisions = [d for d in self.decisions if d.window_end_ns < beyond_ns]
        self.updates = [u for u in self.updates if u.window_end_ns < beyond_ns]

    def fill(self, record: RunRecord) -> None:
        record.decisions = self.decisions
        record.updates = self.updates
        record.features = self.features
        record.novelties = self.novelties
        for server in self._recognising:
            if server.recogniser is not None:
                record.recognition = server.recogniser.figures()
        record.dropped = self.pipeline.assembler.counts.dropped_windows
        for modality, server in self.servers.items():
            counts, intake = server.counts, server.intake
            counts.captured = counts.transferred = counts.received = intake.received
            counts.skipped, counts.dropped = intake.skipped, intake.dropped
            counts.thinned = intake.thinned
            counts.late = self.pipeline.assembler.counts.late[modality]
            record.units[modality] = counts
            if intake.implausible_stamps:
                record.problems.append(
                    f'{modality}: {intake.implausible_stamps} of {intake.received} stamps '
                    'cannot be true; the time of arrival was used instead'
                )
            record.problems += [
                f'{modality}: {count} of {intake.received} messages not used: {text}'
                for text, count in server.failures.most_common()
            ]
            record.problems += [
                f'{modality}: {PROBLEM_WORDS.get(name, name)}: {count}'
                for name, count in sorted(server.encoder.problems.items())
            ]
        if self.pipeline.feature_fusion is not None:
            record.problems += [
                f'feature fusion did without {count} units: {text}'
                for text, count in self.pipeline.feature_fusion.refused.most_common()
            ]
        if self.pipeline.tracker.too_late:
            record.problems.append(
                'units stamped too long before newer ones and not used for tracking: '
                f'{self.pipeline.tracker.too_late}'
            )

    def _at(self, now_ns: int, action: Callable[..., None], *arguments: Any) -> None:
        heapq.heappush(self._events, (now_ns, next(self._order), action, arguments))

    def _feed(self, received: Iterator[Unit | RigReport]) -> None:
        """Schedule the next arrival only, so that the bag is never in memory as a whole."""
        arrival = next(received, None)
        if arrival is None:
            self._exhausted = True
        else:
            self._at(arrival.available_ns, self._arrive, arrival, received)

    def _arrive(
        self,
        now_ns: int,
        arrival: Unit | RigReport,
        received: Iterator[Unit | RigReport],
    ) -> None:
        if isinstance(arrival, Unit):
            self._take_unit(now_ns, arrival)
        else:
            self.pipeline.rig.enter(arrival)
        self._feed(received)

    def _take_unit(self, now_ns: int, unit: Unit) -> None:
        self._last_arrival_ns = now_ns
        server = self.servers[unit.modality]
        for receipt in server.intake.offer(unit):
            self._send_receipt(now_ns, receipt)
        if not server.busy:
            self._serve(now_ns, server)

    def _send_receipt(self, now_ns: int, receipt: UnitReceipt) -> None:
        delay_ns = self._profiled('receipt.transport', receipt.modality, receipt.sequence)
        self._at(now_ns + delay_ns, self._take_receipt, receipt)

    def _take_receipt(self, now_ns: int, receipt: UnitReceipt) -> None:
        self.pipeline.add_receipt(receipt, now_ns)

    def _serve(self, now_ns: int, server: _Server) -> None:
        admitted = server.intake.take()
        server.busy = admitted is not None
        if admitted is None:
            decision, server.decision = server.decision, None
            if decision is not None:
                self._recognise(now_ns, server, decision)
            return
        unit = admitted.unit
        begun = time.perf_counter_ns()
        try:
            features = server.encoder.encode(
                unit, admitted.configuration, admitted.configuration_id
            )
        except (SensingError, EncodingError) as err:
            server.counts.failed += 1
            count_failure(server.failures, str(err))
            self._send_receipt(now_ns, receipt_of(unit, UnitOutcome.FAILED, str(err)))
            self._at(now_ns, self._serve, server)
            return
        taken_ns = time.perf_counter_ns() - begun
        if self._profile is not None:
            seconds = self._profile.sample_work(
                unit.modality, features.level, unit.sequence, features.followed
            )
            taken_ns = round(seconds * NS_PER_S)
        self._at(now_ns + taken_ns, self._encoded, server, features, now_ns, admitted)

    def _take_decision(self, now_ns: int, server: _Server, decision: Decision) -> None:
        """Have the tracks of a decision recognised when no unit waits, as live."""
        server.decision = decision
        if not server.busy:
            self._serve(now_ns, server)

    def _recognise(self, now_ns: int, server: _Server, decision: Decision) -> None:
        begun = time.perf_counter_ns()
        recognised = server.recogniser.recognise(decision) if server.recogniser else Recognised()
        taken_ns = time.perf_counter_ns() - begun
        if self._profile is not None:
            taken_ns = recognised.looks * _LOOK_NS
        for problem in recognised.problems:
            count_failure(server.failures, problem)
        self.novelties += recognised.novelties
        server.busy = True
        self._at(now_ns + taken_ns, self._serve, server)
        self._at(now_ns + taken_ns, self._take_labels, recognised.labels)

    def _take_labels(self, _: int, labels: Sequence[TrackLabel]) -> None:
        self.pipeline.add_labels(labels)

    def _encoded(
        self,
        now_ns: int,
        server: _Server,
        features: UnitFeatures,
        begun_ns: int,
        admitted: Admitted,
    ) -> None:
        if features.followed:
            server.counts.followed += 1
        else:
            server.counts.encoded += 1
        trail = extend_trail(admitted.unit.trail, 'queue', begun_ns)
        features = replace(features, trail=extend_trail(trail, features.stage, now_ns))
        delay_ns = self._profiled('features.transport', features.modality, features.sequence)
        self._at(now_ns + delay_ns, self._take_features, features)
        self._serve(now_ns, server)

    def _take_features(self, now_ns: int, features: UnitFeatures) -> None:
        self.features.append(features.without_grid())
        begun = time.perf_counter_ns()
        self.pipeline.add_features(features, now_ns)
        if self._profile is None:
            # The pipeline is busy with it; a window that ends meanwhile has to wait.
            self._free_ns = max(self._free_ns, now_ns) + time.perf_counter_ns() - begun

    def _schedule_poll(self, now_ns: int) -> None:
        """Poll after every event, and once more when the window may close by time alone.

        Not while the pipeline is at work: it decides one window after the other.
        """
        if now_ns >= self._free_ns:
            self._decide(now_ns)
            self._update(now_ns)
            self._work_ahead(now_ns)
            self._update(now_ns)
        busy = now_ns < self._free_ns
        has_work = self.pipeline.has_work_ahead or self.pipeline.has_update
        if busy and has_work and not self._comes_back:
            # Where it is busy for longer by then, it comes back once more.
            self._comes_back = True
            self._at(self._free_ns, self._come_back)
        wake_ns = self.pipeline.next_poll_ns(now_ns)
        if wake_ns is None:
            return
        wake_ns = max(wake_ns, self._free_ns)
        if self._poll_ns is not None and self._poll_ns <= wake_ns:
            return
        if self._is_over(wake_ns):
            return
        self._poll_ns = wake_ns
        self._at(max(wake_ns, now_ns), self._wake)

    def _work_ahead(self, now_ns: int) -> None:
        """Let the pipeline do a bit of what need not be done yet, while it is free."""
        while now_ns >= self._free_ns:
            begun = time.perf_counter_ns()
            if not self.pipeline.work_ahead(now_ns):
                return
            if self._profile is None:
                self._free_ns = now_ns + time.perf_counter_ns() - begun

    def _update(self, now_ns: int) -> None:
        """Publish what is new between decisions, where the pipeline is free."""
        if now_ns < self._free_ns:
            return
        begun = time.perf_counter_ns()
        # As long as a decision takes, which has more to do.
        taken_ns = self._profiled('fusion', 'update', len(self.updates))
        update = self.pipeline.update(now_ns, taken_ns)
        if update is None:
            return
        if self._profile is None:
            taken_ns = time.perf_counter_ns() - begun
        self._free_ns = now_ns + taken_ns
        self.updates.append(update.published(self._free_ns))

    def _come_back(self, _: int) -> None:
        self._comes_back = False

    def _is_over(self, wake_ns: int) -> bool:
        """Whether waking up would only close windows after the end, or inside a long gap.

        A recording with one wrong time would otherwise have windows for years.
        """
        assembler = self.pipeline.assembler
        if self._exhausted and not self._events:
            return (assembler.next_end_ns or 0) - self._last_arrival_ns >= assembler.stride_ns
        return wake_ns - self._last_arrival_ns > _LONGEST_SILENCE_NS

    def _wake(self, _: int) -> None:
        self._poll_ns = None

    def _decide(self, now_ns: int) -> None:
        begun = time.perf_counter_ns()
        for decision in self.pipeline.poll(now_ns):
            taken_ns = time.perf_counter_ns() - begun
            if self._profile is not None:
                number = decision.window_end_ns // self.pipeline.assembler.stride_ns
                taken_ns = self._profiled('fusion', 'decision', number)
            self._free_ns = max(self._free_ns, now_ns) + taken_ns
            done = decision.published(self._free_ns)
            self.decisions.append(done)
            for server in self._recognising:
                self._at(self._free_ns, self._take_decision, server, done)
            if self._on_decision:
                self._on_decision(done)
            begun = time.perf_counter_ns()
        for skip in self.pipeline.take_skips():
            number = skip.window_end_ns // self.pipeline.assembler.stride_ns
            delay_ns = self._profiled('receipt.transport', 'lease', number)
            self._at(now_ns + delay_ns, self._take_lease, skip)

    def _take_lease(self, _: int, skip: SkipDecision) -> None:
        for server in self.servers.values():
            server.intake.control.lease(skip)

    def _profiled(self, stage: str, key: str, sequence: int) -> int:
        """Nanoseconds from the profile; transport costs nothing where nothing is known."""
        if self._profile is None:
            return 0
        return round(self._profile.sample(stage, key, sequence) * NS_PER_S)
