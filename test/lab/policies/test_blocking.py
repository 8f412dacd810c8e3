"""What blocking costs, with and without a cache, alone and as a stream."""

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

from mmedge_lab.policies.blocking import Blocking
from mmedge_lab.policies.schedule import SAMPLE, STREAM
from mmedge_lab.policies.steering import ChooserSteering, Facts
from mmedge_ros.data_types import CAMERA, RADAR

BLOCKING, CACHED = Blocking('blocking'), Blocking('blocking_cached', cached=True)


def test_blocking_alone_encodes_the_whole_window_after_its_end() -> None:
    schedule = BLOCKING.schedule(arrivals(2.0), PERIODS, settings(), SAMPLE)
    decision = next(d for d in schedule.decisions if d.window_end_ns == end_of(10))
    pictures = [use for use in decision.uses if use.modality == CAMERA]
    assert len(pictures) == 15
    # One encoder each, one after the other; then transport and the decision's own work.
    assert decision.latency == pytest.approx(15 * 0.010 + 0.001 + 0.003)
    assert decision.waited == {CAMERA: pytest.approx(0.151), RADAR: pytest.approx(0.011)}
    calls = Counter(e.modality for e in schedule.encodings if e.window_end_ns == end_of(10))
    assert calls == {CAMERA: 15, RADAR: 10}
    assert not schedule.dropped


def test_a_cache_leaves_only_what_is_new() -> None:
    schedule = CACHED.schedule(arrivals(2.0), PERIODS, settings(), SAMPLE)
    decision = next(d for d in schedule.decisions if d.window_end_ns == end_of(10))
    assert len([use for use in decision.uses if use.modality == CAMERA]) == 15
    assert decision.latency == pytest.approx(3 * 0.010 + 0.001 + 0.003)
    calls = Counter((e.modality, e.sequence) for e in schedule.encodings)
    assert set(calls.values()) == {1}
    assert len(calls) == len(arrivals(2.0))


def test_a_stream_that_cannot_keep_up_drops_windows_oldest_first() -> None:
    schedule = BLOCKING.schedule(
        arrivals(4.0), PERIODS, settings(constant_profile(camera=40.0)), STREAM
    )
    ends = [d.window_end_ns for d in schedule.decisions]
    assert sorted([*ends, *schedule.dropped]) == [end_of(n) for n in range(1, 41)]
    assert len(schedule.dropped) > 20
    # What waits is bounded: two windows behind the one in work.
    assert max(d.latency for d in schedule.decisions) < 3 * 0.61
    alone = BLOCKING.schedule(
        arrivals(4.0), PERIODS, settings(constant_profile(camera=40.0)), SAMPLE
    )
    assert len(alone.decisions) == 40
    assert max(d.latency for d in alone.decisions) < 16.5 * 0.04


def test_a_stream_that_keeps_up_drops_nothing() -> None:
    schedule = CACHED.schedule(arrivals(3.0), PERIODS, settings(), STREAM)
    assert not schedule.dropped
    assert [d.window_end_ns for d in schedule.decisions] == [end_of(n) for n in range(1, 31)]


def test_a_chooser_knows_only_what_is_ready_and_is_followed_from_the_next_window() -> None:
    def choose(facts: Facts) -> tuple[float, str]:
        return (30.0, 'large') if len(facts.features.get(CAMERA, ())) < 8 else (10.0, 'small')

    chooser = FakeChooser(choose)
    steered = settings(
        constant_profile(small=5.0, large=10.0),
        make_steering=lambda: ChooserSteering(chooser, 500 * MS),
    )
    schedule = CACHED.schedule(arrivals(1.5), PERIODS, steered, STREAM)
    assert chooser.asked[0].features == {}
    assert chooser.asked[0].current is None
    for facts in chooser.asked:
        for units in facts.features.values():
            for unit in units:
                assert unit.trail[-1].end_ns + MS <= facts.now_ns
                assert unit.trail[-1].stage == 'encode'
    levels = [e.level for e in schedule.encodings if e.modality == CAMERA]
    assert levels[:3] == ['large'] * 3
    assert 'small' in levels
    slow = [d for d in schedule.decisions if d.configuration.of(CAMERA).rate == 10.0]
    assert slow
    assert len(chooser.asked[5].latencies) == 4


def test_nothing_comes_of_nothing() -> None:
    for protocol in (SAMPLE, STREAM):
        schedule = BLOCKING.schedule((), PERIODS, settings(), protocol)
        assert schedule.decisions == schedule.encodings == schedule.dropped == ()
