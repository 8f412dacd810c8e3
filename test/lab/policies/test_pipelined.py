"""The pipeline as a policy: what it really did, told as a schedule."""

from __future__ import annotations

from collections import Counter

import pytest
from hand_made_encoded_flight import PERIODS, encoded_flight
from hand_made_gates import always
from hand_made_schedules import FakeChooser, arrivals, constant_profile, end_of, settings
from hand_made_units import MS

from mmedge_lab.policies.causality import check
from mmedge_lab.policies.encoder_servers import arrivals_of
from mmedge_lab.policies.pipelined import Pipelined
from mmedge_lab.policies.registry import POLICIES
from mmedge_lab.policies.schedule import SAMPLE, STREAM
from mmedge_lab.policies.steering import ChooserSteering
from mmedge_ros.data_types import CAMERA, RADAR
from mmedge_ros.pipeline.fusion_strategy import gated_pipeline
from mmedge_ros.pipeline.perception_pipeline import PerceptionPipeline
from mmedge_ros.skipping.audits import AuditParameters
from mmedge_ros.skipping.early_decision import Gating
from mmedge_ros.skipping.skip_control import SkipControl, SkipParameters

POLICY = Pipelined('pipelined')
PROMISES = POLICIES['ours'].execution.promises


@pytest.mark.parametrize('protocol', [SAMPLE, STREAM])
def test_only_the_last_unit_is_left_when_the_window_ends(protocol: str) -> None:
    schedule = POLICY.schedule(arrivals(2.0, first=30.0), PERIODS, settings(), protocol)
    decision = next(d for d in schedule.decisions if d.window_end_ns == end_of(10))
    assert len([use for use in decision.uses if use.modality == CAMERA]) == 15
    # Picture 29 comes 4.3 ms before the end: 10 ms to encode, 1 ms on its way, 3 ms of work.
    assert decision.latency == pytest.approx(0.0097, abs=0.0001)
    assert decision.waited[CAMERA] == pytest.approx(0.0067, abs=0.0001)
    assert decision.waited[RADAR] == 0.0


def test_a_stream_encodes_each_unit_once_and_a_window_alone_all_of_its_own() -> None:
    stream = POLICY.schedule(arrivals(2.0), PERIODS, settings(), STREAM)
    calls = Counter((e.modality, e.sequence) for e in stream.encodings)
    assert set(calls.values()) == {1}
    assert len(calls) == len(arrivals(2.0))
    assert {e.window_end_ns for e in stream.encodings} == {None}
    alone = POLICY.schedule(arrivals(2.0), PERIODS, settings(), SAMPLE)
    own = [e for e in alone.encodings if e.window_end_ns == end_of(10)]
    assert len(own) == 25


def test_a_backlog_is_carried_in_the_stream_alone() -> None:
    slow = settings(constant_profile(camera=34.0))
    stream = POLICY.schedule(arrivals(4.0, first=30.0), PERIODS, slow, STREAM)
    alone = POLICY.schedule(arrivals(4.0, first=30.0), PERIODS, slow, SAMPLE)
    late = [
        max(d.latency for d in schedule.decisions if d.window_end_ns == end_of(30))
        for schedule in (stream, alone)
    ]
    assert late[0] == pytest.approx(0.053)  # the deadline, and the decision's own work
    assert late[1] < 0.045


@pytest.mark.parametrize('protocol', [SAMPLE, STREAM])
def test_steering_knows_what_has_happened_and_is_followed(protocol: str) -> None:
    chooser = FakeChooser(
        lambda facts: (30.0, 'large') if len(facts.latencies) < 4 else (10.0, 'small')
    )
    steered = settings(
        constant_profile(small=5.0, large=12.0),
        make_steering=lambda: ChooserSteering(chooser, 500 * MS),
    )
    schedule = POLICY.schedule(arrivals(2.5), PERIODS, steered, protocol)
    assert check(schedule, arrivals(2.5), PROMISES, 500 * MS) == []
    assert {e.level for e in schedule.encodings if e.modality == CAMERA} == {'small', 'large'}
    assert schedule.decisions[0].configuration.of(CAMERA).level == 'large'
    assert schedule.decisions[-1].configuration.of(CAMERA).level == 'small'
    assert len([u for u in schedule.decisions[-1].uses if u.modality == CAMERA]) <= 6
    for facts in chooser.asked:
        for units in facts.features.values():
            assert all(unit.trail[-1].end_ns <= facts.now_ns for unit in units)


def test_a_gate_lets_windows_be_decided_early_and_nothing_is_used_too_soon() -> None:
    flight = encoded_flight(lambda _: 2, 3.0)
    parameters = SkipParameters(audits=AuditParameters(share=0.0))
    control = SkipControl(parameters, 0.5, periods_ns=PERIODS)
    pipeline = gated_pipeline(Gating(always(1.0), control))
    schedule, record = POLICY.replay(flight, pipeline, settings())
    early = [d for d in schedule.decisions if d.latency < 0.0]
    assert len(early) > 10
    assert any(CAMERA in d.skipped for d in schedule.decisions)
    assert check(schedule, arrivals_of(flight), PROMISES, 500 * MS) == []
    assert len(schedule.encodings) == sum(c.encoded for c in record.units.values())
    # Somebody who peeks would be seen here, too.
    assert len(schedule.encodings) < len(arrivals_of(flight))


def test_the_schedule_has_the_very_decisions_of_the_record() -> None:
    flight = encoded_flight(lambda _: 2, 2.0)
    schedule, record = POLICY.replay(flight, PerceptionPipeline(), settings())
    reported = [(d.window_end_ns, d.published_ns) for d in schedule.decisions]
    assert reported == [(d.window_end_ns, d.published_ns) for d in record.decisions]
    assert len(reported) == 20


def test_nothing_comes_of_nothing() -> None:
    for protocol in (SAMPLE, STREAM):
        assert POLICY.schedule((), PERIODS, settings(), protocol).decisions == ()
