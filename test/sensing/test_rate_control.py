"""Rates as upper bounds."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mmedge_ros.sensing.rate_control import RateControl, lead_ns, native_period_ns

SECOND = 10**9
BEGIN = 1_700_000_000 * SECOND


def stream(native: float, seconds: float, jitter: float = 0.0, begin: int = BEGIN) -> list[int]:
    """Stamps of a sensor whose every unit is up to ``jitter`` periods early or late."""
    period = SECOND / native
    shifts = np.random.default_rng(7).uniform(-jitter, jitter, round(seconds * native)) * period
    return [begin + round(n * period + shift) for n, shift in enumerate(shifts)]


def admitted(stamps: list[int], rate: float, native: float | None) -> list[int]:
    control = RateControl(None if native is None else round(SECOND / native))
    return [stamp for stamp in stamps if control.admits(stamp, rate)]


@pytest.mark.parametrize('native', [20.0, 25.0, 30.0])
@pytest.mark.parametrize('rate', [5.0, 10.0, 20.0])
@pytest.mark.parametrize('jitter', [0.0, 0.05])
def test_a_long_stream_is_thinned_to_its_rate(native: float, rate: float, jitter: float) -> None:
    taken = admitted(stream(native, 60.0, jitter), rate, native)
    expected = 60 * native if rate >= 0.9 * native else 60 * rate
    assert len(taken) == pytest.approx(expected, abs=1)


@pytest.mark.parametrize('rate', [18.0, 20.0, 30.0, 1e9, float('inf'), 0.0, -3.0, float('nan')])
def test_near_the_native_rate_and_above_every_unit_passes(rate: float) -> None:
    stamps = stream(20.0, 5.0, jitter=0.3)
    assert admitted(stamps, rate, 20.0) == stamps


def test_just_below_it_units_are_left_out() -> None:
    assert len(admitted(stream(20.0, 60.0), 17.9, 20.0)) == pytest.approx(60 * 17.9, abs=1)


@pytest.mark.parametrize(('native', 'rate'), [(20.0, 5.0), (25.0, 10.0), (30.0, 10.0)])
@pytest.mark.parametrize('shift', [0, 7_000_000, 23_000_000])
@pytest.mark.parametrize('delay', [3_000_000, 17_000_000])
def test_where_the_delay_is_known_the_unit_that_arrives_last_in_its_slot_is_taken(
    native: float, rate: float, shift: int, delay: int
) -> None:
    control = RateControl(round(SECOND / native))
    stamps = stream(native, 20.0, begin=BEGIN + shift)
    lead = lead_ns([delay] * 10)
    taken = [stamp for stamp in stamps if control.admits(stamp, rate, lead)]
    period = round(SECOND / rate)
    assert len({stamp // period for stamp in taken}) == len(taken)
    left = [period - (stamp + delay) % period for stamp in taken]
    # The delay is known to 5 ms, and as much is allowed for jitter.
    assert max(left[1:]) <= SECOND / native + 10_000_000
    assert min(left[1:]) > 0


def test_of_units_that_are_under_way_for_long_those_at_the_centre_are_taken() -> None:
    stamps = stream(30.0, 5.0)
    control = RateControl(round(SECOND / 30.0))
    taken = [stamp for stamp in stamps if control.admits(stamp, 10.0, lead_ns([90_000_000] * 10))]
    assert taken == admitted(stamps, 10.0, 30.0)


def test_one_unit_that_was_held_up_says_nothing_of_the_others() -> None:
    assert lead_ns([12_000_000] * 20 + [400_000_000]) == lead_ns([12_000_000] * 20) == 20_000_000
    assert lead_ns([12_000_001]) == 20_000_000


@pytest.mark.parametrize(
    ('native', 'rate'), [(20.0, 5.0), (25.0, 10.0), (25.0, 20.0), (30.0, 7.0)]
)
@pytest.mark.parametrize('shift', [0, 7_000_000, 23_000_000])
def test_the_unit_nearest_the_centre_of_each_slot_is_taken(
    native: float, rate: float, shift: int
) -> None:
    stamps = stream(native, 20.0, begin=BEGIN + shift)
    period = round(SECOND / rate)
    slots: dict[int, list[int]] = {}
    for stamp in stamps:
        slots.setdefault(stamp // period, []).append(stamp)
    centre_distance = {
        slot: min(abs(s - slot * period - period // 2) for s in inside)
        for slot, inside in slots.items()
    }
    taken = admitted(stamps, rate, native)
    # The slots at either end may be cut by the stream itself.
    for stamp in taken[1:-1]:
        slot = stamp // period
        assert abs(stamp - slot * period - period // 2) == pytest.approx(
            centre_distance[slot], abs=2
        )
    assert len(taken) >= len(slots) - 2


@given(
    steps=st.lists(st.integers(0, 300_000_000), max_size=200),
    rate=st.floats(0.5, 17.0),
    native=st.sampled_from([None, 20.0]),
)
def test_a_slot_never_takes_two_units(steps: list[int], rate: float, native: float | None) -> None:
    period = round(SECOND / rate)
    control = RateControl(None if native is None else round(SECOND / native))
    taken: Counter[int] = Counter()
    stamp = BEGIN
    for step in steps:
        stamp += step
        limited = control.period_ns is not None
        if control.admits(stamp, rate) and limited and rate * control.period_ns < 0.9 * SECOND:
            taken[stamp // period] += 1
    assert not taken or max(taken.values()) == 1


@given(
    stamps=st.lists(st.integers(-(10**18), 3 * 10**18), max_size=50),
    rates=st.lists(st.floats(allow_nan=True, allow_infinity=True), min_size=1),
    native=st.sampled_from([None, 1, 50_000_000]),
)
def test_whatever_comes_it_decides(
    stamps: list[int], rates: list[float], native: int | None
) -> None:
    control = RateControl(native)
    for number, stamp in enumerate(stamps):
        assert control.admits(stamp, rates[number % len(rates)]) in (True, False)


def test_the_decision_depends_on_the_stamps_alone_when_the_period_is_given() -> None:
    stamps = stream(25.0, 4.0, jitter=0.2)
    whole = admitted(stamps, 10.0, 25.0)
    begun_later = admitted(stamps[37:], 10.0, 25.0)
    # Only the slot it began in may have been served already.
    assert begun_later[1:] == [s for s in whole if s >= begun_later[1]]


def test_without_a_period_it_is_learnt_while_units_pass() -> None:
    stamps = stream(25.0, 20.0)
    taken = admitted(stamps, 5.0, None)
    assert taken[:5] == stamps[:5]
    assert len([s for s in taken if s >= BEGIN + SECOND]) == pytest.approx(19 * 5, abs=1)


def test_a_burst_at_the_start_does_not_disturb_the_learnt_period() -> None:
    burst = [BEGIN + n * 2_000_000 for n in range(7)]
    control = RateControl()
    for stamp in burst + stream(25.0, 3.0, begin=BEGIN + SECOND):
        control.admits(stamp, 5.0)
    assert control.period_ns == pytest.approx(40_000_000, abs=2)


def test_a_burst_and_repeated_stamps_take_no_more_than_their_slot() -> None:
    control = RateControl(50_000_000)
    centre = BEGIN + 100_000_000
    assert [control.admits(centre + n, 5.0) for n in (0, 0, 0, 1, 2)] == [True] + [False] * 4


def test_units_a_little_out_of_order_do_not_take_a_slot_again() -> None:
    control = RateControl(50_000_000)
    centre = BEGIN + 100_000_000
    assert control.admits(centre, 5.0)
    assert not control.admits(centre - 10_000_000, 5.0)


def test_a_jump_back_begins_anew() -> None:
    stamps = stream(20.0, 10.0)
    control = RateControl(50_000_000)
    first = [s for s in stamps if control.admits(s, 5.0)]
    second = [s for s in stamps if control.admits(s, 5.0)]
    assert first == second


def test_one_stamp_from_the_future_does_not_blind_the_sensor() -> None:
    stamps = stream(20.0, 10.0)
    control = RateControl(50_000_000)
    control.admits(BEGIN + 10**17, 0.0)
    assert sum(control.admits(s, 5.0) for s in stamps) == pytest.approx(50, abs=1)


def test_a_unit_without_a_stamp_passes_only_where_all_do() -> None:
    control = RateControl(50_000_000)
    assert control.admits(0, 20.0)
    assert not control.admits(0, 5.0)
    assert sum(control.admits(s, 5.0) for s in stream(20.0, 10.0)) == pytest.approx(50, abs=1)


def test_a_new_rate_counts_from_the_next_slot() -> None:
    control = RateControl(50_000_000)
    stamps = stream(20.0, 40.0)
    taken = Counter(
        (s - BEGIN) // (10 * SECOND)
        for s in stamps
        if control.admits(s, (5.0, 10.0, 0.0, 5.0)[(s - BEGIN) // (10 * SECOND)])
    )
    assert [taken[n] for n in range(4)] == [
        pytest.approx(count, abs=1) for count in (50, 100, 200, 50)
    ]


@pytest.mark.parametrize('period', [0, -1])
def test_a_period_that_is_none_is_an_error(period: int) -> None:
    with pytest.raises(ValueError, match='must be positive'):
        RateControl(period)


def test_the_native_period_is_a_robust_median() -> None:
    stamps = [BEGIN, BEGIN, BEGIN + 5, *stream(25.0, 2.0, 0.1, BEGIN + SECOND), BEGIN, 0]
    assert native_period_ns(stamps) == pytest.approx(40_000_000, rel=0.05)
    assert native_period_ns(np.array(stamps)) == pytest.approx(40_000_000, rel=0.05)


@pytest.mark.parametrize('stamps', [[], [1], [2, 2, 1]])
def test_without_a_forward_step_there_is_no_period(stamps: list[int]) -> None:
    assert native_period_ns(stamps) is None
