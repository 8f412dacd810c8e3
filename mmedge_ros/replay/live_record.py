"""Collects what a live graph publishes into the same record an offline replay leaves."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import replace

from mmedge_ros.core.data_types import (
    NS_PER_S,
    Configuration,
    Decision,
    Novelty,
    ResultKind,
    StageTiming,
    Trail,
    UnitFeatures,
    UnitKey,
    UnitOutcome,
    UnitReceipt,
)
from mmedge_ros.core.run_record import RunRecord, UnitCounts
from mmedge_ros.monitoring.system_state import SystemState
from mmedge_ros.replay.playback import PlaybackStatus

_WARM_UP = 1.0


class LiveRecord:
    """Takes messages in any order; `fill` sorts them out.

    Stamps are carried back into the bag's own time by the player's offset. Decisions outside
    the recording's span (before it began, after it ended) are left out.
    """

    def __init__(self) -> None:
        self.status: PlaybackStatus | None = None
        self.notes: list[str] = []
        self.input_problems: dict[str, str] = {}
        # The newest figures that each node shows of itself.
        self.figures: dict[str, Mapping[str, str]] = {}
        # What a node that describes decisions says of itself, by instant of the graph.
        self.described: list[tuple[int, Mapping[str, str]]] = []
        self._decisions: list[Decision] = []
        self._updates: list[Decision] = []
        self._features: list[UnitFeatures] = []
        self._outcomes: dict[UnitKey, UnitOutcome] = {}
        self._configurations: dict[int, Configuration] = {}
        self._states: list[tuple[int, SystemState]] = []
        self._novelties: list[Novelty] = []

    @property
    def newest(self) -> Decision | None:
        return self._decisions[-1] if self._decisions else None

    @property
    def decided(self) -> int:
        return len(self._decisions)

    def add_decision(self, decision: Decision) -> None:
        """Take in a decision, or an update between two."""
        is_update = decision.kind is ResultKind.UPDATE
        (self._updates if is_update else self._decisions).append(decision)

    def add_features(self, features: UnitFeatures) -> None:
        """Take in an encoded unit; its grid is not kept. It arrived, receipt or not."""
        self._outcomes.setdefault(features.key, UnitOutcome.RECEIVED)
        self._features.append(features.without_grid())

    def add_novelty(self, novelty: Novelty) -> None:
        self._novelties.append(novelty)

    def add_receipt(self, receipt: UnitReceipt) -> None:
        """Take in a receipt; what became of a unit replaces that it arrived."""
        known = self._outcomes.get(receipt.key, UnitOutcome.RECEIVED)
        self._outcomes[receipt.key] = max(known, receipt.outcome)

    def add_configuration(self, configuration: Configuration) -> None:
        """Take in a configuration; one of a known number replaces it."""
        self._configurations[configuration.id] = configuration

    def add_state(self, stamp_ns: int, state: SystemState) -> None:
        self._states.append((stamp_ns, state))

    def add_status(self, stamp_ns: int, name: str, figures: Mapping[str, str]) -> None:
        """Take in what a node says of itself: the newest, and all that is of sentences."""
        self.figures[name] = figures
        if 'sentences' in figures:
            self.described.append((stamp_ns, figures))

    def share(self) -> float:
        """Return how much of the recording has been decided, 0..1."""
        if self.status is None or self.newest is None:
            return 0.0
        status = self.status
        done_ns = self.newest.window_end_ns - status.offset_ns - status.begin_ns
        return min(max(done_ns / max(status.end_ns - status.begin_ns, 1), 0.0), 1.0)

    def is_complete(self, last_arrival_ns: int, stride_ns: int) -> bool:
        """Whether the decision that covers the last unit is there."""
        if self.status is None or not self.status.finished or self.newest is None:
            return False
        last_end_ns = -(-last_arrival_ns // stride_ns) * stride_ns + self.status.offset_ns
        return self.newest.window_end_ns >= last_end_ns

    def lacks_units(self) -> bool:
        """Whether a unit that the newest decision used is still on its way from its encoder."""
        if self.newest is None:
            return False
        there = {(features.modality, features.stamp_ns) for features in self._features}
        return not self.newest.newest_ns.items() <= there

    def fill(self, record: RunRecord, first_ns: int, last_ns: int) -> None:
        """Complete a record begun from the recording; both instants are bag time."""
        offset_ns = self.status.offset_ns if self.status else 0
        stride_ns = round(record.stride * NS_PER_S)
        first_end_ns = -(-first_ns // stride_ns) * stride_ns
        last_end_ns = -(-last_ns // stride_ns) * stride_ns
        record.decisions, record.updates = (
            [d for d in shifted if first_end_ns <= d.window_end_ns <= last_end_ns]
            for shifted in (
                [_shift_decision(d, -offset_ns) for d in results]
                for results in (self._decisions, self._updates)
            )
        )
        record.features = [_shift_features(f, -offset_ns) for f in self._features]
        record.configurations = [
            replace(c, effective_from_ns=c.effective_from_ns - offset_ns)
            for c in self._configurations.values()
        ]
        record.novelties = [
            replace(novelty, stamp_ns=novelty.stamp_ns - offset_ns) for novelty in self._novelties
        ]
        record.states = [(stamp_ns - offset_ns, state) for stamp_ns, state in self._states]
        earliest_ns = min((f.available_ns for f in record.features), default=first_ns)
        if first_end_ns < earliest_ns <= first_end_ns + stride_ns:
            # Live, the first unit is received a little later, here beyond the first end: that
            # window never held anything, so that there was nothing to decide.
            record.windows -= 1
        record.dropped = max(record.windows - len(record.decisions), 0)
        record.warmup = min(round(_WARM_UP / record.stride), len(record.decisions))
        record.units = self._unit_counts(record)
        record.problems += [
            *(f'{name}: {text}' for name, text in sorted(self.input_problems.items())),
            *self.notes,
        ]

    def _unit_counts(self, record: RunRecord) -> dict[str, UnitCounts]:
        counts: dict[str, UnitCounts] = defaultdict(UnitCounts)
        if self.status:
            for modality, played in self.status.counts.items():
                counts[modality] = replace(played)
        # Counted apart from what the player left out, which was never received.
        settled: Counter[str] = Counter()
        for key, outcome in self._outcomes.items():
            settled[key.modality] += outcome is not UnitOutcome.RECEIVED
            entry = counts[key.modality]
            entry.received += 1
            entry.skipped += outcome is UnitOutcome.SKIPPED
            entry.dropped += outcome is UnitOutcome.DROPPED
            entry.failed += outcome is UnitOutcome.FAILED
            entry.thinned += outcome is UnitOutcome.THINNED
        published = {d.window_end_ns: d.published_ns for d in record.decisions}
        stride_ns = round(record.stride * NS_PER_S)
        for features in record.features:
            entry = counts[features.modality]
            entry.followed += features.followed
            entry.encoded += not features.followed
            settled[features.modality] += 1
            end_ns = -(-features.available_ns // stride_ns) * stride_ns
            decided_ns = published.get(end_ns)
            # Nothing is late for a window that was decided before its end.
            if decided_ns is not None and decided_ns >= end_ns and features.trail:
                entry.late += features.trail[-1].end_ns > decided_ns
        for modality, entry in counts.items():
            arrived = min(entry.received, settled[modality])
            entry.lost = max(entry.transferred - arrived, 0)
        return dict(counts)


def _shift_trail(trail: Trail, by_ns: int) -> Trail:
    return tuple(StageTiming(t.stage, t.begin_ns + by_ns, t.end_ns + by_ns) for t in trail)


def _shift_decision(decision: Decision, by_ns: int) -> Decision:
    return replace(
        decision,
        window_end_ns=decision.window_end_ns + by_ns,
        state_ns=decision.state_ns + by_ns,
        newest_ns={m: t + by_ns for m, t in decision.newest_ns.items()},
        trail=_shift_trail(decision.trail, by_ns),
        published_ns=decision.published_ns + by_ns,
    )


def _shift_features(features: UnitFeatures, by_ns: int) -> UnitFeatures:
    return replace(
        features,
        stamp_ns=features.stamp_ns + by_ns,
        available_ns=features.available_ns + by_ns,
        trail=_shift_trail(features.trail, by_ns),
    )
