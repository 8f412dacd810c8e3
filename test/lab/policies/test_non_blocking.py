"""Non-blocking decides at the end of the window, with what it has."""

from __future__ import annotations

import pytest
from hand_made_schedules import PERIODS, arrivals, constant_profile, end_of, settings

from mmedge_lab.policies.non_blocking import NonBlocking
from mmedge_lab.policies.schedule import SAMPLE, STREAM, PlannedDecision, Schedule
from mmedge_ros.data_types import CAMERA, RADAR


def at_end(schedule: Schedule, number: int) -> PlannedDecision:
    return next(d for d in schedule.decisions if d.window_end_ns == end_of(number))


@pytest.mark.parametrize('protocol', [SAMPLE, STREAM])
def test_what_is_not_ready_is_left_out_and_serves_later_windows(protocol: str) -> None:
    policy = NonBlocking('non_blocking')
    slow = settings(constant_profile(camera=32.0))
    schedule = policy.schedule(arrivals(2.0, first=30.0), PERIODS, slow, protocol)
    before, after = (
        {use.sequence for use in at_end(schedule, n).uses if use.modality == CAMERA}
        for n in (10, 11)
    )
    # Picture 29 is available at 995.7 ms, and ready 33 ms later.
    assert 29 not in before
    assert {28, 29} - before == {29}
    assert 29 in after
    assert {d.decide_ns - d.window_end_ns for d in schedule.decisions} == {0}
    assert all(d.latency == pytest.approx(0.003) for d in schedule.decisions)
    assert not schedule.decisions[5].imputed


def test_an_encoder_that_cannot_keep_up_drops_the_oldest_units() -> None:
    policy = NonBlocking('non_blocking')
    slow = settings(constant_profile(camera=100.0))
    schedule = policy.schedule(arrivals(3.0), PERIODS, slow, STREAM)
    pictures = [e for e in schedule.encodings if e.modality == CAMERA]
    assert len(pictures) == pytest.approx(30, abs=2)
    available = {(a.modality, a.sequence): a.available_ns for a in arrivals(3.0)}
    # Two wait at most, and a newer one takes their place: nobody waits long, but the last one.
    waits = [e.begin_ns - available[CAMERA, e.sequence] for e in pictures[:-2]]
    assert max(waits) <= 0.067e9


def test_imputation_names_the_modality_whose_newest_unit_is_missing() -> None:
    policy = NonBlocking('imputation', imputes=True)
    slow = settings(constant_profile(camera=32.0))
    schedule = policy.schedule(arrivals(2.0, first=30.0), PERIODS, slow, STREAM)
    assert at_end(schedule, 10).imputed == (CAMERA,)
    quick = settings(constant_profile(camera=2.0))
    schedule = policy.schedule(arrivals(2.0, first=30.0), PERIODS, quick, STREAM)
    assert at_end(schedule, 10).imputed == ()


def test_decisions_that_take_too_long_drop_windows() -> None:
    policy = NonBlocking('non_blocking')
    schedule = policy.schedule(
        arrivals(3.0), PERIODS, settings(constant_profile(decision=250.0)), STREAM
    )
    assert len(schedule.dropped) >= 15
    assert max(d.latency for d in schedule.decisions) < 0.75
    assert {use.modality for use in schedule.decisions[-1].uses} == {CAMERA, RADAR}
