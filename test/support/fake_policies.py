"""Policies made up: replays whose decisions come late by so much, so that figures are known."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

from mmedge_lab.judging.bundle_cases import FUSION
from mmedge_lab.judging.bundle_under_test import BundleUnderTest
from mmedge_lab.judging.encoded_flight import EncodedFlight, replay_encoded
from mmedge_lab.policies.policy_run import PolicyRun
from mmedge_lab.policies.schedule import (
    SAMPLE,
    Encoding,
    PlannedDecision,
    Schedule,
    Use,
)
from mmedge_lab.rivals.comparison.plan import ComparisonCase, PolicyFacts
from mmedge_ros.data_types import CAMERA, RADAR, Configuration, ModalityConfiguration
from mmedge_ros.records.run_record import RunRecord

FACTS = (
    PolicyFacts('blocking', 'blocking', 'waits for the window, then encodes all of it'),
    PolicyFacts('non_blocking', 'non-blocking', 'takes what is there'),
    PolicyFacts('ours', 'ours', 'encodes on arrival'),
    PolicyFacts('ours_without_aggregation', 'without aggregation', 'ours, newest unit only'),
)
# Added to each publication, ms.
LATE_MS = {'blocking': 180, 'non_blocking': 4, 'ours': 0, 'ours_without_aggregation': 1}


def run_fake(
    case: ComparisonCase, flight: EncodedFlight, bundle: BundleUnderTest, networks: object = None
) -> PolicyRun:
    """Replay in one configuration; every third decision of blocking in the stream is dropped."""
    level = 'large' if case.limit_ms >= 50.0 else 'small'
    record = _replayed(_Held(flight, bundle), level)
    late_ns = round(LATE_MS[case.policy] * 1_000_000 * 100.0 / case.share)
    made = [
        replace(decision, published_ns=decision.published_ns + late_ns)
        for number, decision in enumerate(record.decisions)
        if case.policy != 'blocking' or case.protocol == SAMPLE or number % 3
    ]
    ends = {decision.window_end_ns for decision in made}
    dropped = tuple(d.window_end_ns for d in record.decisions if d.window_end_ns not in ends)
    return PolicyRun(
        Schedule(
            case.policy,
            case.protocol,
            tuple(_planned(decision, level) for decision in made),
            tuple(
                Encoding(
                    u.modality, u.sequence, level, u.available_ns, u.available_ns + 10_000_000
                )
                for u in record.features
                for _ in range(5 if case.policy == 'blocking' else 1)
            ),
            dropped,
        ),
        replace(record, decisions=made),
        {CAMERA: 0.01 * len(record.features), RADAR: 0.001},
        cpu_seconds=1.0,
        energy_joules=10.0,
    )


def _planned(decision, level: str) -> PlannedDecision:
    return PlannedDecision(
        decision.window_end_ns,
        decision.published_ns - 3_000_000,
        decision.published_ns,
        (Use(CAMERA, 0, level),),
        _configuration(level),
        {CAMERA: max(decision.latency, 0.0), RADAR: 0.0},
    )


def _configuration(level: str) -> Configuration:
    return Configuration(
        1,
        0,
        (ModalityConfiguration(CAMERA, 30.0, level), ModalityConfiguration(RADAR, 20.0, level)),
    )


@dataclass(frozen=True, eq=False)
class _Held:
    flight: EncodedFlight
    bundle: BundleUnderTest

    def __hash__(self) -> int:
        return id(self.flight)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Held) and other.flight is self.flight


@lru_cache(maxsize=4)
def _replayed(held: _Held, level: str) -> RunRecord:
    return replay_encoded(
        held.flight,
        held.bundle.pipeline(FUSION, held.bundle.networks()),
        _configuration(level),
        held.bundle.profile,
    )
