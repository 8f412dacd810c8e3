"""Each promise is broken on purpose, and has to be named; no policy breaks any."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hand_made_schedules import LARGE, PERIODS, constant_profile, end_of, settings
from hand_made_units import MS, at
from hypothesis import given
from hypothesis import settings as tries
from hypothesis import strategies as st

from mmedge_lab.policies.blocking import Blocking
from mmedge_lab.policies.causality import Promise, check
from mmedge_lab.policies.non_blocking import NonBlocking
from mmedge_lab.policies.pipelined import Pipelined
from mmedge_lab.policies.registry import POLICIES
from mmedge_lab.policies.schedule import (
    SAMPLE,
    STREAM,
    Arrival,
    Encoding,
    PlannedDecision,
    Schedule,
    Use,
)
from mmedge_ros.data_types import CAMERA, RADAR

WINDOW_NS = 500 * MS
ARRIVALS = (
    Arrival(CAMERA, 0, at(35), at(40)),
    Arrival(CAMERA, 1, at(75), at(80)),
    Arrival(RADAR, 0, at(55), at(60)),
    Arrival(CAMERA, 2, at(135), at(140)),
)
BLOCKING = POLICIES['blocking'].execution.promises
CACHED = POLICIES['blocking_cached'].execution.promises
NEVER_WAITING = POLICIES['non_blocking'].execution.promises
PIPELINED = POLICIES['ours'].execution.promises


def encoding(
    sequence: int, begin: float, end: float, modality: str = CAMERA, window: int | None = None
) -> Encoding:
    window_end_ns = None if window is None else end_of(window)
    return Encoding(modality, sequence, 'large', at(begin), at(end), window_end_ns)


def decision(number: int, decide: float, published: float, *uses: int, **more: Any) -> Any:
    return PlannedDecision(
        end_of(number),
        at(decide),
        at(published),
        tuple(Use(CAMERA, sequence, 'large') for sequence in uses),
        LARGE,
        **more,
    )


def pipelined() -> Schedule:
    """Two windows, decided as they should be."""
    return Schedule(
        'any',
        STREAM,
        (decision(1, 102, 105, 0, 1), decision(2, 202, 205, 0, 1, 2)),
        (encoding(0, 40, 60), encoding(1, 80, 100), encoding(2, 140, 160)),
    )


def blocking() -> Schedule:
    return Schedule(
        'blocking',
        STREAM,
        (decision(1, 140, 143, 0, 1), decision(2, 260, 263, 0, 1, 2)),
        (
            encoding(0, 100, 120, window=1),
            encoding(1, 120, 140, window=1),
            *(encoding(n, 200 + 20 * n, 220 + 20 * n, window=2) for n in range(3)),
        ),
    )


def with_encoding(schedule: Schedule, number: int, **changes: Any) -> Schedule:
    encodings = list(schedule.encodings)
    encodings[number] = encodings[number]._replace(**changes)
    return replace(schedule, encodings=tuple(encodings))


def with_decision(schedule: Schedule, number: int, **changes: Any) -> Schedule:
    decisions = list(schedule.decisions)
    decisions[number] = replace(decisions[number], **changes)
    return replace(schedule, decisions=tuple(decisions))


def test_what_is_as_it_should_be_is_not_complained_of() -> None:
    assert check(pipelined(), ARRIVALS, PIPELINED, WINDOW_NS) == []
    assert check(blocking(), ARRIVALS, BLOCKING, WINDOW_NS) == []


def test_a_unit_used_before_its_features_are_ready_is_named() -> None:
    broken = with_decision(pipelined(), 0, decide_ns=at(99.5))
    assert check(broken, ARRIVALS) == [
        f'the window {end_of(1)} uses camera 1 0.5 ms before its features are ready'
    ]


def test_a_unit_encoded_before_it_is_available_is_named() -> None:
    broken = with_encoding(pipelined(), 2, begin_ns=at(138))
    assert check(broken, ARRIVALS) == ['camera 2 is encoded 2 ms before it is available']


def test_a_unit_that_came_after_the_windows_end_is_named() -> None:
    late = decision(1, 170, 173, 0, 1, 2)
    broken = replace(pipelined(), decisions=(late,))
    assert check(broken, ARRIVALS) == [
        f'the window {end_of(1)} uses camera 2, which was available 40 ms after its end'
    ]


def test_a_unit_older_than_the_window_is_named() -> None:
    old = replace(pipelined(), decisions=(decision(6, 602, 605, 0),))
    assert check(old, ARRIVALS, (), WINDOW_NS) == [
        f'the window {end_of(6)} uses camera 0, which is older than the window'
    ]


def test_two_encodings_at_once_on_one_server_are_named() -> None:
    broken = with_encoding(pipelined(), 0, end_ns=at(85))
    assert any('camera encoder does two things at once' in v for v in check(broken, ARRIVALS))
    # Another modality has another encoder, and another window alone another machine.
    beside = replace(
        pipelined(), encodings=(*pipelined().encodings, encoding(0, 60, 95, modality=RADAR))
    )
    assert check(beside, ARRIVALS) == []
    alone = Schedule(
        'any',
        SAMPLE,
        (decision(1, 102, 105, 1), decision(2, 202, 205, 1)),
        (encoding(1, 80, 100, window=1), encoding(1, 80, 100, window=2)),
    )
    assert check(alone, ARRIVALS) == []
    twice = replace(alone, encodings=(*alone.encodings, encoding(0, 70, 90, window=2)))
    assert any('two things at once' in v for v in check(twice, ARRIVALS))


def test_overlapping_work_on_decisions_is_named() -> None:
    broken = with_decision(pipelined(), 0, published_ns=at(210))
    assert check(broken, ARRIVALS) == [
        f'the work on the decisions of the windows {end_of(1)} and {end_of(2)} overlaps by 8 ms'
    ]


def test_decisions_out_of_order_are_named() -> None:
    broken = replace(pipelined(), decisions=pipelined().decisions[::-1])
    assert any('decided out of order' in v for v in check(broken, ARRIVALS))


def test_a_publication_before_its_decision_is_named() -> None:
    broken = with_decision(pipelined(), 0, published_ns=at(101))
    assert check(broken, ARRIVALS) == [
        f'the window {end_of(1)} is published 1 ms before its work begins'
    ]


def test_a_blocking_policy_that_peeks_is_named() -> None:
    broken = with_encoding(blocking(), 0, begin_ns=at(90), end_ns=at(110))
    result = check(broken, ARRIVALS, BLOCKING)
    assert result == [
        f'camera 0 is encoded 10 ms before the end of its window {end_of(1)}, by a policy that '
        'waits for it'
    ]
    assert check(broken, ARRIVALS) == []  # nobody else has promised that


def test_a_cached_policy_that_peeks_is_named() -> None:
    assert any('before the end of its window' in v for v in check(pipelined(), ARRIVALS, CACHED))


def test_a_blocking_policy_that_uses_what_it_encoded_for_another_window_is_named() -> None:
    kept = [e for e in blocking().encodings if e.window_end_ns == end_of(1) or e.sequence == 2]
    broken = replace(blocking(), encodings=tuple(kept))
    assert check(broken, ARRIVALS, BLOCKING) == [
        f'the window {end_of(2)} uses camera {n}, which was not encoded for it' for n in (0, 1)
    ]


def test_a_cached_policy_that_encodes_twice_is_named() -> None:
    cached = with_encoding(with_encoding(blocking(), 0, window_end_ns=None), 2, window_end_ns=None)
    assert any('camera 0 is encoded 2 times' in v for v in check(cached, ARRIVALS, CACHED))


def test_a_policy_that_waits_though_it_never_does_is_named() -> None:
    never = Schedule('any', STREAM, (decision(1, 100, 103, 0),), (encoding(0, 40, 60),))
    assert check(never, ARRIVALS, NEVER_WAITING) == []
    late = with_decision(never, 0, decide_ns=at(102))
    assert check(late, ARRIVALS, NEVER_WAITING) == [
        f'the window {end_of(1)} is decided 2 ms later than it could be, by a policy that never '
        'waits'
    ]
    alone = replace(late, protocol=SAMPLE)
    assert any('decided 2 ms off its end' in v for v in check(alone, ARRIVALS, NEVER_WAITING))
    waited = with_decision(never, 0, waited={CAMERA: 0.01})
    assert any('waited for units' in v for v in check(waited, ARRIVALS, NEVER_WAITING))


def test_a_dropped_window_with_a_decision_is_named() -> None:
    broken = replace(pipelined(), dropped=(end_of(2), end_of(3)))
    assert check(broken, ARRIVALS) == [f'the window {end_of(2)} was dropped and decided']


def test_units_that_never_were_are_named() -> None:
    more = replace(pipelined(), encodings=(*pipelined().encodings, encoding(7, 170, 180)))
    assert check(more, ARRIVALS) == ['camera 7 is encoded and never arrived']
    used = with_decision(pipelined(), 1, uses=(Use(CAMERA, 7, 'large'),))
    assert check(used, ARRIVALS) == [f'the window {end_of(2)} uses camera 7, which never arrived']
    other = with_decision(pipelined(), 1, uses=(Use(CAMERA, 2, 'small'),))
    assert check(other, ARRIVALS) == [
        f'the window {end_of(2)} uses camera 2, which was not encoded for it'
    ]


def test_an_unknown_protocol_is_named() -> None:
    assert check(replace(pipelined(), protocol='other'), ())[0] == "there is no protocol 'other'"


EXECUTIONS = [
    (Blocking('blocking'), BLOCKING),
    (Blocking('blocking_cached', cached=True), CACHED),
    (Blocking('modality_gating', cached=True, first=RADAR), CACHED),
    (NonBlocking('non_blocking'), NEVER_WAITING),
    (Pipelined('pipelined'), PIPELINED),
]


@st.composite
def units(draw: st.DrawFn) -> tuple[Arrival, ...]:
    result = []
    for modality in (CAMERA, RADAR):
        gaps = draw(st.lists(st.integers(0, 300), max_size=14))
        when = draw(st.integers(0, 200))
        for sequence, gap in enumerate(gaps):
            when += gap
            delay = draw(st.integers(0, 40))
            result.append(Arrival(modality, sequence, at(when - delay), at(when)))
    return tuple(sorted(result, key=lambda a: a.available_ns))


@pytest.mark.parametrize(('policy', 'promises'), EXECUTIONS, ids=lambda given: str(given)[:20])
@pytest.mark.parametrize('protocol', [SAMPLE, STREAM])
def test_no_policy_breaks_a_promise_whatever_arrives(
    policy: Any, promises: frozenset[Promise], protocol: str
) -> None:
    @tries(max_examples=15, deadline=None)
    @given(units(), st.floats(0.0, 400.0), st.floats(0.0, 90.0), st.floats(0.0, 150.0))
    def holds(arrivals: tuple[Arrival, ...], camera: float, radar: float, deciding: float) -> None:
        profile = constant_profile(camera, radar, 1.0, deciding)
        schedule = policy.schedule(arrivals, PERIODS, settings(profile), protocol)
        assert check(schedule, arrivals, promises, WINDOW_NS) == []
        ends = [d.window_end_ns for d in schedule.decisions]
        assert not set(ends) & set(schedule.dropped)
        if arrivals and protocol == SAMPLE:
            first, last = arrivals[0].available_ns, arrivals[-1].available_ns
            assert ends == list(range(-(-first // (100 * MS)) * 100 * MS, ends[-1] + 1, 100 * MS))
            assert last <= ends[-1] < last + 100 * MS

    holds()
