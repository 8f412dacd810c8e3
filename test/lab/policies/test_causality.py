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

from mmedge_lab.policies.causality import Promise, check
from mmedge_lab.policies.policy_run import POLICIES
from mmedge_lab.policies.schedule import (
    Arrival,
    Encoding,
    PlannedDecision,
    Schedule,
    Use,
)
from mmedge_lab.policies.window_policies import Blocking, NonBlocking
from mmedge_ros.core.data_types import CAMERA, RADAR

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
        (decision(1, 102, 105, 0, 1), decision(2, 202, 205, 0, 1, 2)),
        (encoding(0, 40, 60), encoding(1, 80, 100), encoding(2, 140, 160)),
    )


def blocking() -> Schedule:
    return Schedule(
        'blocking',
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


def without_what_was_made_for_the_second_window() -> Schedule:
    kept = [e for e in blocking().encodings if e.window_end_ns == end_of(1) or e.sequence == 2]
    return replace(blocking(), encodings=tuple(kept))


def encoded_twice() -> Schedule:
    once = with_encoding(blocking(), 0, window_end_ns=None)
    return with_encoding(once, 2, window_end_ns=None)


def with_a_unit_that_never_was() -> Schedule:
    return replace(pipelined(), encodings=(*pipelined().encodings, encoding(7, 170, 180)))


NEVER = Schedule('any', (decision(1, 100, 103, 0),), (encoding(0, 40, 60),))
BROKEN = {
    'camera 1 0.5 ms before its features are ready': (
        with_decision(pipelined(), 0, decide_ns=at(99.5)),
        PIPELINED,
    ),
    'camera 2 is encoded 2 ms before it is available': (
        with_encoding(pipelined(), 2, begin_ns=at(138)),
        PIPELINED,
    ),
    'camera 2 ends before it begins': (
        with_encoding(pipelined(), 2, end_ns=at(139)),
        PIPELINED,
    ),
    'camera 2, which was available 40 ms after its end': (
        replace(pipelined(), decisions=(decision(1, 170, 173, 0, 1, 2),)),
        PIPELINED,
    ),
    'camera 0, which is older than the window': (
        replace(pipelined(), decisions=(decision(6, 602, 605, 0),)),
        PIPELINED,
    ),
    'camera encoder does two things at once': (
        with_encoding(pipelined(), 0, end_ns=at(85)),
        PIPELINED,
    ),
    'begins 8 ms before the last one is done': (
        with_decision(pipelined(), 0, published_ns=at(210)),
        PIPELINED,
    ),
    'decided out of order': (
        replace(pipelined(), decisions=pipelined().decisions[::-1]),
        PIPELINED,
    ),
    'is published 1 ms before its work begins': (
        with_decision(pipelined(), 0, published_ns=at(101)),
        PIPELINED,
    ),
    'camera 0 is encoded 10 ms before the end of its window': (
        with_encoding(blocking(), 0, begin_ns=at(90), end_ns=at(110)),
        BLOCKING,
    ),
    'camera 1 is encoded 20 ms before the end of its window': (pipelined(), CACHED),
    'decided 1 ms before its end': (with_decision(NEVER, 0, decide_ns=at(99)), CACHED),
    'camera 0, which was not encoded for it': (
        without_what_was_made_for_the_second_window(),
        BLOCKING,
    ),
    'camera 0 is encoded 2 times': (encoded_twice(), CACHED),
    'is decided 2 ms later than it could be': (
        with_decision(NEVER, 0, decide_ns=at(102)),
        NEVER_WAITING,
    ),
    'was dropped and decided': (
        replace(pipelined(), dropped=(end_of(2), end_of(3))),
        PIPELINED,
    ),
    'camera 7 is encoded and never arrived': (with_a_unit_that_never_was(), PIPELINED),
    'camera 7, which never arrived': (
        with_decision(pipelined(), 1, uses=(Use(CAMERA, 7, 'large'),)),
        PIPELINED,
    ),
    'camera 2, which was not encoded for it': (
        with_decision(pipelined(), 1, uses=(Use(CAMERA, 2, 'small'),)),
        PIPELINED,
    ),
}


@pytest.mark.parametrize('words', BROKEN)
def test_what_cannot_be_is_named(words: str) -> None:
    schedule, promises = BROKEN[words]
    assert words in ' | '.join(check(schedule, ARRIVALS, promises, WINDOW_NS))


def test_each_modality_and_each_window_alone_has_a_server_of_its_own() -> None:
    more = (*pipelined().encodings, encoding(0, 60, 95, modality=RADAR))
    assert check(replace(pipelined(), encodings=more), ARRIVALS) == []
    alone = Schedule(
        'any',
        (decision(1, 102, 105, 1), decision(2, 202, 205, 1)),
        (encoding(1, 80, 100, window=1), encoding(1, 80, 100, window=2)),
        alone=True,
    )
    assert check(alone, ARRIVALS) == []
    twice = replace(alone, encodings=(*alone.encodings, encoding(0, 70, 90, window=2)))
    assert any('two things at once' in v for v in check(twice, ARRIVALS))


EXECUTIONS = [
    (Blocking('blocking'), BLOCKING),
    (Blocking('blocking_cached', cached=True), CACHED),
    (Blocking('modality_gating', cached=True, first=RADAR), CACHED),
    (NonBlocking('non_blocking'), NEVER_WAITING),
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
@pytest.mark.parametrize('alone', [True, False])
def test_no_policy_breaks_a_promise_whatever_arrives(
    policy: Any, promises: frozenset[Promise], alone: bool
) -> None:
    @tries(max_examples=15, deadline=None)
    @given(units(), st.floats(0.0, 400.0), st.floats(0.0, 90.0), st.floats(0.0, 150.0))
    def holds(arrivals: tuple[Arrival, ...], camera: float, radar: float, deciding: float) -> None:
        profile = constant_profile(camera, radar, 1.0, deciding)
        schedule = policy.schedule(arrivals, PERIODS, settings(profile), alone=alone)
        assert check(schedule, arrivals, promises, WINDOW_NS) == []
        ends = [d.window_end_ns for d in schedule.decisions]
        assert not set(ends) & set(schedule.dropped)
        if arrivals and alone:
            first, last = arrivals[0].available_ns, arrivals[-1].available_ns
            assert ends == list(range(-(-first // (100 * MS)) * 100 * MS, ends[-1] + 1, 100 * MS))
            assert last <= ends[-1] < last + 100 * MS

    holds()
