"""The rate at which an encoder that is too slow is given units, in virtual time."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import pytest
from hand_made_units import BEGIN_NS, MS, unit
from hypothesis import given
from hypothesis import strategies as st

from mmedge_ros.core.data_types import (
    CAMERA,
    NS_PER_S,
    Configuration,
    ModalityConfiguration,
    UnitOutcome,
)
from mmedge_ros.pipeline.overload_pace import OverloadPace
from mmedge_ros.pipeline.unit_intake import UnitIntake

PERIOD = 1000.0 / 30.0


def encoded(
    takes: Callable[[float], float], seconds: float, intake: UnitIntake | None = None
) -> list[tuple[float, float]]:
    """Offer pictures at 30 Hz; return the arrival and the end of the work of each encoded one.

    :param takes: how long a unit takes that is begun then, ms
    """
    intake = UnitIntake(CAMERA) if intake is None else intake
    done: list[tuple[float, float]] = []
    busy_until = 0.0
    current: float | None = None
    for number in range(int(30 * seconds)):
        now = PERIOD * number
        while current is not None and busy_until <= now:
            done.append((current, busy_until))
            current = None
            if (admitted := intake.take()) is not None:
                current = (admitted.unit.available_ns - BEGIN_NS) / MS
                busy_until += takes(busy_until)
        intake.offer(unit(now, sequence=number))
        if current is None and (admitted := intake.take()) is not None:
            current, busy_until = now, now + takes(now)
    return done


def ages(done: list[tuple[float, float]], after: float) -> list[float]:
    """How old each unit was when it was encoded, of those that came later, ms."""
    return [end - begin for begin, end in done if begin > after]


def test_an_encoder_that_keeps_up_gets_every_unit() -> None:
    assert len(encoded(lambda _: 25.0, 20)) >= 599


def test_a_single_stall_costs_no_unit_after_it() -> None:
    done = encoded(lambda now: 600.0 if 2000 <= now < 2010 else 15.0, 10)
    assert len([begin for begin, _ in done if begin > 2700]) >= 217


@pytest.mark.parametrize('takes', [80.0, 107.0, 250.0])
def test_an_encoder_that_is_too_slow_gets_units_that_are_fresh(takes: float) -> None:
    done = encoded(lambda _: takes, 20)
    late = ages(done, after=2000)
    # Now and then it is tried whether more fits.
    assert sum(late) / len(late) <= takes + 10.0
    assert len(late) >= 0.7 * 18_000 / takes


def test_units_are_spread_evenly_once_the_rate_is_found() -> None:
    begun = [begin for begin, _ in encoded(lambda _: 107.0, 5)][12:]
    gaps = [b - a for a, b in pairwise(begun)]
    assert max(gaps) <= 201.0
    assert sum(gap < 168.0 for gap in gaps) >= 0.9 * len(gaps)


def test_all_units_pass_again_some_time_after_the_overload() -> None:
    done = encoded(lambda now: 107.0 if now < 2000 else 15.0, 27)
    assert len([begin for begin, _ in done if 24_000 <= begin < 27_000]) >= 88


def overloaded(configuration: Configuration) -> UnitIntake:
    """An intake whose encoder cannot keep up, after two seconds under a configuration."""
    intake = UnitIntake(CAMERA)
    intake.control.schedule.add(configuration)
    encoded(lambda _: 107.0, 2, intake)
    return intake


def camera(level: str, reuse: int = 1, effective_from_ns: int = 0) -> Configuration:
    part = ModalityConfiguration(CAMERA, 0.0, level, reuse=reuse)
    return Configuration(1 if effective_from_ns == 0 else 2, effective_from_ns, (part,))


def test_a_unit_that_is_passed_over_is_announced_as_arrived() -> None:
    intake, passed_over = overloaded(camera('large')), 0
    for number in range(60, 90):
        receipts = intake.offer(unit(PERIOD * number, sequence=number))
        own = [r.outcome for r in receipts if r.sequence == number]
        assert own[0] == UnitOutcome.RECEIVED
        passed_over += own[1:] == [UnitOutcome.DROPPED]
        while intake.take():
            pass
    assert passed_over > 5


def test_another_level_is_given_all_units_at_once() -> None:
    intake = overloaded(camera('large'))
    intake.control.schedule.add(camera('small', effective_from_ns=BEGIN_NS + 2000 * MS))
    dropped = intake.dropped
    for number in range(61, 91):
        intake.offer(unit(PERIOD * number, sequence=number))
        while intake.take():
            pass
    assert intake.dropped <= dropped + 1  # what still waited


def test_with_reuse_no_rate_breaks_the_grid_of_encoded_pictures() -> None:
    intake = overloaded(camera('large', reuse=3))
    while intake.take():
        pass
    dropped = intake.dropped
    for number in range(60, 90):
        intake.offer(unit(PERIOD * number, sequence=number))
        while intake.take():
            pass
    assert intake.dropped == dropped


def behind() -> OverloadPace:
    """A pace whose encoder cannot keep up with units that come every 100 ms for two seconds."""
    pace = OverloadPace()
    for number in range(20):
        pace.admits(BEGIN_NS + number * 100 * MS)
        pace.waits(gave_way=1)
        pace.begins()
    assert pace.rate > 0.0
    return pace


def test_after_a_pause_no_two_units_pass_at_once() -> None:
    pace = behind()
    assert [pace.admits(BEGIN_NS + 3000 * MS + n) for n in range(2)] == [True, False]


def test_when_the_clock_is_set_back_all_units_pass() -> None:
    pace = behind()
    assert pace.admits(BEGIN_NS - 60 * NS_PER_S)
    assert pace.rate == 0.0


@given(
    st.lists(
        st.tuples(
            st.sampled_from(['admits', 'waits', 'begins']),
            st.integers(-(2 * 10**9), 2 * 10**9) | st.integers(-(2**62), 2**62),
        ),
        max_size=60,
    )
)
def test_no_stamps_blind_a_sensor(calls: list[tuple[str, int]]) -> None:
    pace = OverloadPace()
    for call, step in calls:
        if call == 'admits':
            pace.admits(pace._newest_ns + step)
        elif call == 'waits':
            pace.waits(gave_way=step % 3)
        else:
            pace.begins()
    newest_ns = pace._newest_ns
    admitted = [pace.admits(newest_ns + n * 33 * MS) for n in range(1, 91)]
    assert any(admitted)
