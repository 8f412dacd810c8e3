"""Each figure of the system's state changes the caps within a second, and releases them late."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mmedge_ros.adaptation.caps_policy import (
    NO_CAPS,
    Caps,
    CapsParameters,
    CapsPolicy,
    ScanShare,
    Slope,
)
from mmedge_ros.monitoring.system_state import SystemState

PERIOD = 0.25
GOOD = SystemState(
    voltage=15.6, charge=0.8, temperature=60.0, gpu=50.0, memory=40.0, throttled=False
)


class Flight:
    """A policy that takes a state four times a second."""

    def __init__(self, parameters: CapsParameters | None = None) -> None:
        self.policy = CapsPolicy(parameters)
        self.now = 100.0

    def fly(self, seconds: float, state: SystemState | None, scans: float = math.nan) -> Caps:
        caps = NO_CAPS
        for _ in range(round(seconds / PERIOD)):
            self.now += PERIOD
            if state is not None:
                self.policy.take(state, self.now)
            caps = self.policy.caps(self.now, scans)
        return caps


def state(**changes: Any) -> SystemState:
    values = {name: getattr(GOOD, name) for name in SystemState.__dataclass_fields__}
    return SystemState(**(values | changes))


TROUBLES: list[tuple[SystemState, str, float]] = [
    (state(voltage=13.8), 'voltage sag: 3.45 V per cell', 20.0),
    (state(voltage=13.2), 'voltage sag: 3.30 V per cell', 10.0),
    (state(temperature=84.0), 'temperature', 20.0),
    (state(temperature=95.0), 'temperature', 10.0),
    (state(throttled=True), 'the firmware throttles', 20.0),
    (state(gpu=99.0), 'GPU load 99 %', 20.0),
    (state(memory=88.0), 'memory 88 % used', 20.0),
    (state(memory=97.0), 'memory 97 % used', 10.0),
]


@pytest.mark.parametrize(('trouble', 'reason', 'rate'), TROUBLES)
def test_a_trouble_caps_within_a_second_and_says_why(
    trouble: SystemState, reason: str, rate: float
) -> None:
    flight = Flight()
    assert flight.fly(5.0, GOOD) == NO_CAPS
    caps = flight.fly(1.0, trouble)
    assert caps.rates['camera'] == rate
    assert [words for words in caps.reasons if words.startswith(reason)]


@pytest.mark.parametrize(('trouble', 'reason', 'rate'), TROUBLES)
def test_a_trouble_that_is_over_holds_on_for_a_while_and_is_then_released(
    trouble: SystemState, reason: str, rate: float
) -> None:
    flight = Flight()
    flight.fly(5.0, GOOD)
    flight.fly(1.0, trouble)
    assert flight.fly(2.0, GOOD).rates['camera'] == rate, reason
    assert flight.fly(20.0, GOOD) == NO_CAPS


def test_a_voltage_at_its_limit_does_not_flicker() -> None:
    flight = Flight()
    flight.fly(5.0, GOOD)
    changes = 0
    before = NO_CAPS
    for step in range(80):
        caps = flight.fly(PERIOD, state(voltage=13.98 if step % 2 else 14.02))
        changes += caps != before
        before = caps
    assert changes == 1


def test_a_temperature_that_rises_caps_before_it_is_high() -> None:
    flight = Flight()
    temperature, seconds = 60.0, 0.0
    while flight.fly(PERIOD, state(temperature=temperature)) == NO_CAPS:
        seconds += PERIOD
        temperature += 1.0 * PERIOD
    assert 68.0 < temperature < 72.0


def test_a_figure_that_is_lost_keeps_its_grade_and_is_then_worrying() -> None:
    flight = Flight()
    flight.fly(5.0, GOOD)
    lost = state(voltage=math.nan)
    assert flight.fly(2.0, lost) == NO_CAPS
    caps = flight.fly(2.0, lost)
    assert (caps.rates['camera'], caps.reasons) == (20.0, ('voltage unknown since it was lost',))
    assert flight.fly(20.0, lost) == caps
    assert flight.fly(1.0, GOOD) == NO_CAPS


def test_a_bad_figure_that_falls_silent_stays_bad() -> None:
    flight = Flight()
    flight.fly(5.0, GOOD)
    flight.fly(1.0, state(voltage=13.2))
    assert flight.fly(30.0, state(voltage=math.nan)).rates['camera'] == 10.0


def test_a_monitor_that_falls_silent_is_worrying_and_one_that_never_spoke_is_not() -> None:
    flight = Flight()
    assert flight.fly(60.0, None) == NO_CAPS
    flight.fly(5.0, GOOD)
    caps = flight.fly(6.0, None)
    assert caps.rates['camera'] == 20.0
    assert len(caps.reasons) == 5


def test_a_machine_without_battery_is_not_capped() -> None:
    assert Flight().fly(60.0, SystemState(temperature=50.0, memory=30.0)) == NO_CAPS


@pytest.mark.parametrize(('volts', 'cells'), [(12.4, 3), (16.4, 4), (24.9, 6)])
def test_cells_are_guessed_from_the_highest_voltage(volts: float, cells: int) -> None:
    flight = Flight()
    assert flight.fly(2.0, SystemState(voltage=volts)) == NO_CAPS
    assert flight.fly(1.0, SystemState(voltage=3.55 * cells)) == NO_CAPS
    assert flight.fly(1.0, SystemState(voltage=3.45 * cells)).rates['camera'] == 20.0


def test_a_supply_of_five_volts_is_no_battery() -> None:
    assert Flight().fly(5.0, SystemState(voltage=5.05)) == NO_CAPS


def test_a_radar_that_stutters_is_told() -> None:
    flight = Flight()
    assert flight.fly(2.0, GOOD, scans=1.0) == NO_CAPS
    assert flight.fly(1.0, GOOD, scans=0.4).reasons == ('radar brown-out: 40 % of its scans',)


def test_words_stay_those_of_the_change() -> None:
    flight = Flight()
    flight.fly(5.0, GOOD)
    first = flight.fly(1.0, state(voltage=13.8)).reasons
    assert flight.fly(1.0, state(voltage=13.7)).reasons == first


@given(
    st.lists(
        st.builds(
            SystemState,
            voltage=st.floats(),
            charge=st.floats(),
            temperature=st.floats(),
            gpu=st.floats(),
            memory=st.floats(),
        ),
        max_size=30,
    )
)
def test_nothing_that_is_read_breaks_it(states: list[SystemState]) -> None:
    policy = CapsPolicy()
    for number, read in enumerate(states):
        policy.take(read, 0.3 * number)
        caps = policy.caps(0.3 * number)
        assert set(caps.rates.values()) <= {5.0, 10.0, 20.0}


def test_it_says_how_much_a_figure_will_have_risen() -> None:
    slope = Slope(10.0)
    for second in range(6):
        slope.add(float(second), 50.0 + 0.5 * second)
    assert slope.rise() == pytest.approx(5.0)


def test_too_short_a_look_says_nothing() -> None:
    slope = Slope(10.0)
    for step in range(10):
        slope.add(0.25 * step, 50.0 + step)
    assert slope.rise() == 0.0


def test_an_unknown_value_and_a_clock_set_back_start_all_over() -> None:
    slope = Slope(10.0)
    for second in range(6):
        slope.add(float(second), 50.0 + second)
    slope.add(6.0, math.nan)
    assert slope.rise() == 0.0
    for second in range(6):
        slope.add(float(second), 50.0 + second)
    slope.add(1.0, 50.0)
    assert slope.rise() == 0.0


STAMPED = 1.7e9


def scans(counter: ScanShare, begin: float, seconds: float, rate: float) -> float:
    """Let scans arrive, and return the instant after."""
    for number in range(round(seconds * rate)):
        now = begin + number / rate
        counter.arrived(now, STAMPED + now)
        counter.share(now)
    return begin + seconds


def test_a_radar_that_sends_half_its_scans_is_seen() -> None:
    counter = ScanShare()
    now = scans(counter, 0.0, 4.0, 20.0)
    assert counter.share(now) == pytest.approx(1.0, abs=0.05)
    now = scans(counter, now, 2.0, 10.0)
    assert counter.share(now) == pytest.approx(0.5, abs=0.05)


def test_a_radar_that_was_never_there_is_unknown() -> None:
    assert math.isnan(ScanShare().share(10.0))


def test_a_lower_rate_that_was_asked_for_is_no_stutter() -> None:
    counter = ScanShare()
    now = scans(counter, 0.0, 4.0, 20.0)
    counter.configure(10.0, now)
    assert counter.share(now + 0.1) == pytest.approx(1.0, abs=0.05)
    now = scans(counter, now, 3.0, 10.0)
    assert counter.share(now) == pytest.approx(1.0, abs=0.1)


def test_what_a_rate_brought_is_remembered() -> None:
    counter = ScanShare()
    now = scans(counter, 0.0, 4.0, 20.0)
    counter.configure(10.0, now)
    now = scans(counter, now, 3.0, 10.0)
    counter.configure(0.0, now)
    now = scans(counter, now, 3.0, 8.0)
    assert counter.share(now) == pytest.approx(0.4, abs=0.05)


def test_a_radar_that_rests_under_a_lease_does_not_stutter() -> None:
    counter = ScanShare()
    now = scans(counter, 0.0, 4.0, 20.0)
    counter.excuse(now + 0.5)
    assert counter.share(now + 0.5) == pytest.approx(1.0, abs=0.05)


def test_no_excuse_hides_a_radar_that_is_lost() -> None:
    counter = ScanShare()
    now = scans(counter, 0.0, 4.0, 20.0)
    counter.excuse(1e12)
    assert counter.share(now + 1.5) == pytest.approx(1.0, abs=0.05)
    assert counter.share(now + 2.0) == 0.0


def test_leases_in_a_row_leave_the_share_as_it_was() -> None:
    counter = ScanShare()
    now = scans(counter, 0.0, 4.0, 20.0)
    for _ in range(20):
        counter.excuse(now + 0.5)
        counter.arrived(now, STAMPED + now)
        now += 0.5
        assert counter.share(now) == pytest.approx(1.0, abs=0.05)


def test_scans_that_come_late_and_all_at_once_are_no_brown_out_and_raise_no_hopes() -> None:
    counter = ScanShare()
    now = scans(counter, 0.0, 4.0, 20.0)
    now += 1.0
    for number in range(20):
        counter.arrived(now, STAMPED + now - 1.0 + number / 20.0)
    assert counter.share(now) == pytest.approx(1.0, abs=0.05)
    now = scans(counter, now, 3.0, 20.0)
    assert counter.share(now) == pytest.approx(1.0, abs=0.05)


@pytest.mark.parametrize('jump', [4e8, -3600.0, 10.0])
def test_a_stamp_of_another_time_is_no_brown_out(jump: float) -> None:
    counter = ScanShare()
    now = scans(counter, 0.0, 4.0, 20.0)
    counter.arrived(now, STAMPED + now + jump)
    for number in range(80):
        counter.arrived(now, STAMPED + now)
        assert counter.share(now) == pytest.approx(1.0, abs=0.05), number
        now += 0.05


def test_scans_of_the_rate_before_are_no_measure_of_the_new_one() -> None:
    counter = ScanShare()
    now = scans(counter, 0.0, 4.0, 20.0)
    counter.configure(10.0, now)
    now = scans(counter, now, 0.8, 20.0)
    now = scans(counter, now, 5.0, 10.0)
    assert counter.share(now) == pytest.approx(1.0, abs=0.1)


def test_what_a_rate_once_brought_is_forgotten_within_minutes() -> None:
    counter = ScanShare()
    now = scans(counter, 0.0, 4.0, 30.0)
    now = scans(counter, now, 180.0, 15.0)
    assert counter.share(now) > 0.9
