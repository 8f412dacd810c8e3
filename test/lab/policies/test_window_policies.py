"""What blocking costs, with and without a cache, and what non-blocking does without."""

from __future__ import annotations

from collections import Counter

import pytest
from hand_made_schedules import (
    PERIODS,
    FakeChooser,
    arrivals,
    constant_profile,
    end_of,
    settings,
)
from hand_made_units import MS

from mmedge_lab.policies.schedule import PlannedDecision, Schedule
from mmedge_lab.policies.steering import ChooserSteering, Facts
from mmedge_lab.policies.window_policies import Blocking, NonBlocking
from mmedge_ros.core.data_types import CAMERA, RADAR

BLOCKING, CACHED = Blocking('blocking'), Blocking('blocking_cached', cached=True)
NON_BLOCKING = NonBlocking('non_blocking')


def run(
    policy: Blocking | NonBlocking,
    seconds: float = 2.0,
    first: float = 3.0,
    *,
    alone: bool = False,
    **times: float,
) -> Schedule:
    profile = settings(constant_profile(**times))
    return policy.schedule(arrivals(seconds, first), PERIODS, profile, alone=alone)


def at_end(schedule: Schedule, number: int) -> PlannedDecision:
    return next(d for d in schedule.decisions if d.window_end_ns == end_of(number))


def test_blocking_alone_encodes_the_whole_window_after_its_end() -> None:
    schedule = run(BLOCKING, alone=True)
    decision = at_end(schedule, 10)
    assert len([use for use in decision.uses if use.modality == CAMERA]) == 15
    # One encoder each, one after the other; then transport and the decision's own work.
    assert decision.latency == pytest.approx(15 * 0.010 + 0.001 + 0.003)
    calls = Counter(e.modality for e in schedule.encodings if e.window_end_ns == end_of(10))
    assert calls == {CAMERA: 15, RADAR: 10}
    assert not schedule.dropped


def test_a_cache_leaves_only_what_is_new() -> None:
    schedule = run(CACHED, alone=True)
    decision = at_end(schedule, 10)
    assert len([use for use in decision.uses if use.modality == CAMERA]) == 15
    assert decision.latency == pytest.approx(3 * 0.010 + 0.001 + 0.003)
    calls = Counter(e.unit for e in schedule.encodings)
    assert set(calls.values()) == {1}
    assert len(calls) == len(arrivals(2.0))


def test_a_stream_that_cannot_keep_up_drops_windows_oldest_first() -> None:
    schedule = run(BLOCKING, 4.0, camera=40.0)
    ends = [d.window_end_ns for d in schedule.decisions]
    assert sorted([*ends, *schedule.dropped]) == [end_of(n) for n in range(1, 41)]
    assert len(schedule.dropped) > 20
    # What waits is bounded: two windows behind the one in work.
    assert max(d.latency for d in schedule.decisions) < 3 * 0.61
    alone = run(BLOCKING, 4.0, alone=True, camera=40.0)
    assert len(alone.decisions) == 40
    assert max(d.latency for d in alone.decisions) < 16.5 * 0.04


def test_a_chooser_knows_only_what_is_ready_and_is_followed_from_the_next_window() -> None:
    def choose(facts: Facts) -> tuple[float, str]:
        return (30.0, 'large') if len(facts.features.get(CAMERA, ())) < 8 else (10.0, 'small')

    chooser = FakeChooser(choose)
    steered = settings(
        constant_profile(small=5.0, large=10.0),
        make_steering=lambda: ChooserSteering(chooser, 500 * MS),
    )
    schedule = CACHED.schedule(arrivals(1.5), PERIODS, steered)
    assert chooser.asked[0].features == {}
    for facts in chooser.asked:
        for units in facts.features.values():
            for unit in units:
                assert unit.trail[-1].end_ns + MS <= facts.now_ns
                assert unit.trail[-1].stage == 'encode'
    levels = [e.level for e in schedule.encodings if e.modality == CAMERA]
    assert levels[:3] == ['large'] * 3
    assert 'small' in levels
    assert any(d.configuration.of(CAMERA).rate == 10.0 for d in schedule.decisions)


@pytest.mark.parametrize('alone', [True, False])
def test_what_is_not_ready_is_left_out_and_serves_later_windows(alone: bool) -> None:
    schedule = run(NON_BLOCKING, first=30.0, alone=alone, camera=32.0)
    before, after = (
        {use.sequence for use in at_end(schedule, n).uses if use.modality == CAMERA}
        for n in (10, 11)
    )
    # Picture 29 is available at 995.7 ms, and ready 33 ms later.
    assert {28, 29} - before == {29}
    assert 29 in after
    assert {d.decide_ns - d.window_end_ns for d in schedule.decisions} == {0}
    assert all(d.latency == pytest.approx(0.003) for d in schedule.decisions)
    assert not schedule.decisions[5].imputed


def test_imputation_names_the_modality_whose_newest_unit_is_missing() -> None:
    policy = NonBlocking('imputation', imputes=True)
    assert at_end(run(policy, first=30.0, camera=32.0), 10).imputed == (CAMERA,)
    assert at_end(run(policy, first=30.0, camera=2.0), 10).imputed == ()
