"""A discharge passes through three states once each, whatever motors and sensors do."""

from __future__ import annotations

import math
from itertools import groupby

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mmedge_lab.rivals.nanomind.discharge import REPORTS, VOLTAGE_ALONE, discharge, flown
from mmedge_ros.adaptation.caps_policy import NO_CAPS, Caps
from mmedge_ros.adaptation.power_policy import (
    SPARSEST,
    STANDING_BY,
    PowerMode,
    PowerParameters,
    PowerPolicy,
    PowerState,
    least_gap,
    power_caps,
)
from mmedge_ros.monitoring.system_state import SystemState

PERIOD = 0.25
# With the default reserve of 0.2: where usable charge is 0.6 and 0.25.
HIGH, LOW = 0.68, 0.4


class Flight:
    """A policy that takes a state of the system four times a second."""

    def __init__(self, parameters: PowerParameters | None = None) -> None:
        self.policy = PowerPolicy(parameters or STANDING_BY)
        self.now = 50.0
        self.states: list[PowerState] = []

    def fly(self, state: SystemState | None, seconds: float = PERIOD) -> PowerState:
        for _ in range(round(seconds / PERIOD)):
            self.now += PERIOD
            if state is not None:
                self.policy.take(state, self.now)
            self.states.append(self.policy.update(self.now))
        return self.states[-1]

    @property
    def modes(self) -> list[PowerMode]:
        """The states in the order in which they were taken."""
        modes = [state.mode for state in self.states]
        return [m for n, m in enumerate(modes) if n == 0 or m is not modes[n - 1]]


def charged(charge: float) -> SystemState:
    return SystemState(charge=charge)


def test_without_a_battery_nothing_is_held_back_and_that_is_said() -> None:
    state = Flight().fly(SystemState(cpu=(50.0,)), 60.0)
    assert state.mode is PowerMode.UNCONSTRAINED
    assert 'no battery was heard' in state.reason


def test_a_discharge_passes_through_the_three_states_once_each() -> None:
    flight = Flight()
    for charge in np.linspace(1.0, 0.05, 4000):
        flight.fly(charged(float(charge)))
    assert flight.modes == [
        PowerMode.UNCONSTRAINED,
        PowerMode.PROPORTIONAL,
        PowerMode.CRITICAL,
    ]


def test_alpha_falls_without_jumps_from_one_to_nothing() -> None:
    flight = Flight()
    for charge in np.linspace(HIGH + 0.01, LOW - 0.01, 4000):
        flight.fly(charged(float(charge)))
    alphas = np.array([state.alpha for state in flight.states])
    assert alphas[0] == 1.0
    assert alphas[-1] == 0.0
    assert np.diff(alphas).max() <= 0.0
    assert np.diff(alphas).min() > -0.03


@given(noise=st.lists(st.floats(-0.012, 0.012), min_size=200, max_size=200))
def test_a_noisy_charge_changes_the_state_at_most_once_per_crossing(noise: list[float]) -> None:
    flight = Flight()
    for charge, wrong in zip(np.linspace(HIGH + 0.06, HIGH - 0.06, 200), noise, strict=True):
        flight.fly(charged(float(charge) + wrong), 2.0)
    assert flight.modes == [PowerMode.UNCONSTRAINED, PowerMode.PROPORTIONAL]
    reuse = [power_caps(state).reuse.get('camera', 1) for state in flight.states]
    assert reuse == sorted(reuse)


def test_by_default_the_camera_never_stands_by_and_saves_all_it_can_instead() -> None:
    state = Flight(PowerParameters()).fly(charged(0.05), 60.0)
    assert (state.mode, state.alpha) == (PowerMode.PROPORTIONAL, 0.0)
    assert power_caps(state).reuse['camera'] == SPARSEST


def test_with_no_high_limit_only_an_empty_battery_saves() -> None:
    flight = Flight(PowerParameters(high=0.0))
    assert flight.fly(charged(0.25), 60.0).mode is PowerMode.UNCONSTRAINED


def test_a_short_dip_is_no_change_but_a_critical_charge_is_one_at_once() -> None:
    flight = Flight()
    flight.fly(charged(0.9), 10.0)
    assert flight.fly(charged(0.5), 3.0).mode is PowerMode.UNCONSTRAINED
    assert flight.fly(charged(0.9), 1.0).mode is PowerMode.UNCONSTRAINED
    assert flight.fly(charged(0.3)).mode is PowerMode.CRITICAL


def test_a_better_state_needs_more_charge_than_the_worse_one_was_left_at() -> None:
    flight = Flight()
    flight.fly(charged(0.35), 1.0)
    assert flight.fly(charged(LOW + 0.01), 60.0).mode is PowerMode.CRITICAL
    assert flight.fly(charged(LOW + 0.05), 4.0).mode is PowerMode.CRITICAL
    assert flight.fly(charged(LOW + 0.05), 2.0).mode is PowerMode.PROPORTIONAL


def test_a_lost_battery_is_half_saving_with_a_warning_and_never_unconstrained() -> None:
    flight = Flight()
    flight.fly(charged(0.95), 10.0)
    assert flight.fly(None, 3.0).mode is PowerMode.UNCONSTRAINED
    state = flight.fly(None, 3.0)
    assert (state.mode, state.alpha) == (PowerMode.PROPORTIONAL, 0.5)
    assert 'silent' in state.reason
    assert math.isnan(state.charge)
    assert flight.fly(None, 3600.0).mode is PowerMode.PROPORTIONAL
    assert flight.fly(charged(0.95), 6.0).mode is PowerMode.UNCONSTRAINED


def test_a_battery_lost_in_critical_does_not_blind_for_ever() -> None:
    flight = Flight()
    flight.fly(charged(0.2), 10.0)
    state = flight.fly(None, 10.0)
    assert (state.mode, state.alpha) == (PowerMode.PROPORTIONAL, 0.0)


def sagging(rest: float, amperes: float) -> SystemState:
    """A pack of four cells with 12 milliohms each."""
    return SystemState(voltage=4 * rest - 4 * 0.012 * amperes, current=amperes)


def test_motor_sag_is_no_discharge() -> None:
    random = np.random.default_rng(3)
    flight = Flight()
    for n in range(2400):
        # 3.95 V at rest: 70 %. Climbs take 45 A for ten seconds, hovering takes 18.
        amperes = (45.0 if n // 40 % 3 == 2 else 18.0) + random.normal(0.0, 1.0)
        flight.fly(sagging(3.95, amperes))
    assert flight.modes == [PowerMode.UNCONSTRAINED]
    charges = [state.charge for state in flight.states if math.isfinite(state.charge)]
    assert charges[-1] == pytest.approx(0.7, abs=0.05)


def test_a_voltage_without_a_current_is_taken_in_hover() -> None:
    flight = Flight()
    for n in range(400):
        # Hovering takes off 0.15 V, climbs twice as much.
        sag = 0.3 if n // 40 % 3 == 2 else 0.15
        flight.fly(SystemState(voltage=4 * (3.80 - sag)))
    assert flight.states[-1].charge == pytest.approx(0.4, abs=0.02)


def test_a_guessed_charge_makes_perception_save_and_never_blinds_it() -> None:
    flight = Flight()
    state = flight.fly(SystemState(voltage=4 * 3.4), 120.0)
    assert (state.mode, state.alpha) == (PowerMode.PROPORTIONAL, 0.0)


@pytest.mark.parametrize('report', REPORTS)
def test_a_discharge_with_climbs_passes_each_state_once(report: str) -> None:
    modes = [mode for mode, _ in groupby(state.mode for state in flown(discharge(report)).states)]
    assert modes[:2] == [PowerMode.UNCONSTRAINED, PowerMode.PROPORTIONAL]
    assert modes[2:] == ([] if report == VOLTAGE_ALONE else [PowerMode.CRITICAL])


def test_a_supply_of_five_volts_is_no_battery() -> None:
    assert (
        Flight().fly(SystemState(voltage=5.1, current=2.0), 60.0).reason == 'no battery was heard'
    )


@given(
    st.lists(
        st.builds(
            SystemState,
            voltage=st.floats(allow_nan=True, allow_infinity=True),
            current=st.floats(allow_nan=True, allow_infinity=True),
            charge=st.floats(allow_nan=True, allow_infinity=True),
        ),
        max_size=30,
    )
)
def test_whatever_is_reported_the_state_is_a_state(states: list[SystemState]) -> None:
    flight = Flight()
    for reported in states:
        state = flight.fly(reported, 3.0)
        assert 0.0 <= state.alpha <= 1.0
        assert 1 <= power_caps(state).reuse.get('camera', 1) <= SPARSEST


def proportional(alpha: float) -> Caps:
    return power_caps(PowerState(PowerMode.PROPORTIONAL, alpha))


def test_pictures_are_encoded_less_often_first_and_scans_are_left_out_last() -> None:
    assert power_caps(PowerState()) == NO_CAPS
    reuse = [proportional(a).reuse.get('camera', 1) for a in (1.0, 0.8, 0.6, 0.4, 0.2, 0.0)]
    assert reuse == [1, 2, 3, 4, 5, 6]
    assert proportional(0.9).levels == {'camera': 'medium', 'radar': 'medium'}
    assert [proportional(a).rates for a in (0.6, 0.4, 0.1)] == [
        {},
        {'radar': 10.0},
        {'radar': 5.0},
    ]


def test_bounds_do_not_loosen_as_alpha_falls() -> None:
    caps = [proportional(1.0 - a / 100) for a in range(101)]
    reuse = [of.reuse.get('camera', 1) for of in caps]
    assert reuse == sorted(reuse)
    radar = [of.rates.get('radar', 1000.0) for of in caps]
    assert radar == sorted(radar, reverse=True)


@pytest.mark.parametrize(
    ('alpha', 'gap'),
    [(1.0, 0.0), (0.5, 0.5), (0.0, 1.0), (math.nan, 0.0), (-3.0, 0.0), (9.0, 0.0)],
)
def test_pictures_to_look_at_are_thinned_by_alpha_and_by_nothing_impossible(
    alpha: float, gap: float
) -> None:
    assert least_gap(alpha) == gap
