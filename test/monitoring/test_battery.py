"""Messages of a battery: silent, frozen, half empty and wrong."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from virtual_clock import VirtualClock

from mmedge_ros.core.data_types import NS_PER_S
from mmedge_ros.monitoring import MonitoringError
from mmedge_ros.monitoring.battery import Battery, battery_reading

NAN = math.nan
approx = pytest.approx


def message(stamp: int = 1, **fields: Any) -> Any:
    header = SimpleNamespace(stamp=SimpleNamespace(sec=stamp, nanosec=0))
    given_fields = {
        'voltage': 15.0,
        'current': -20.0,
        'percentage': 0.5,
        'charge': NAN,
        'capacity': NAN,
        'design_capacity': NAN,
        'temperature': NAN,
        'cell_voltage': (),
        'present': False,
        **fields,
    }
    return SimpleNamespace(header=header, **given_fields)


def test_a_discharging_battery_gives_a_positive_current_and_its_power() -> None:
    reading = battery_reading(message(temperature=31.0, cell_voltage=(3.8, 3.7, NAN)))
    state = reading.state
    assert (state.voltage, state.current, state.power, state.charge) == (15.0, 20.0, 300.0, 0.5)
    assert reading.problem == ''
    assert reading.details == {'temperature (C)': 31.0, 'cells': 3.0, 'lowest cell (V)': 3.7}
    assert battery_reading(message(current=2.0)).state.current == -2.0


def test_a_battery_that_falls_silent_is_unknown_after_its_age() -> None:
    clock = VirtualClock(NS_PER_S)
    battery = Battery(clock, longest_age=3.0)
    with pytest.raises(MonitoringError, match='no message of the battery yet'):
        battery.read()
    battery.take(message())
    clock.advance_to(4 * NS_PER_S)
    assert battery.read().state.voltage == 15.0
    clock.advance_to(4 * NS_PER_S + 1)
    late = battery.read()
    assert math.isnan(late.state.voltage)
    assert math.isnan(late.state.charge)
    assert late.problem == 'no new message of the battery for 3.0 s'
    assert battery.take(message(stamp=9))
    assert battery.read().state.voltage == 15.0


def test_a_bridge_that_repeats_the_last_message_does_not_keep_it_fresh() -> None:
    clock = VirtualClock(NS_PER_S)
    battery = Battery(clock, longest_age=3.0)
    assert battery.take(message(stamp=5))
    for second in range(2, 6):
        clock.advance_to(second * NS_PER_S)
        assert not battery.take(message(stamp=5))
    assert math.isnan(battery.read().state.voltage)


def test_messages_without_stamps_are_as_fresh_as_they_arrive() -> None:
    clock = VirtualClock(NS_PER_S)
    battery = Battery(clock, longest_age=3.0)
    for second in range(1, 9):
        clock.advance_to(second * NS_PER_S)
        assert battery.take(message(stamp=0))
    assert battery.read().state.voltage == 15.0


@pytest.mark.parametrize('volts', [NAN, 0.0, -1.0, math.inf, 1e9])
def test_a_voltage_that_cannot_be_is_unknown_and_so_is_the_power(volts: float) -> None:
    reading = battery_reading(message(voltage=volts))
    assert math.isnan(reading.state.voltage)
    assert math.isnan(reading.state.power)
    assert reading.state.charge == 0.5
    assert reading.problem == 'the battery does not report its voltage'


@pytest.mark.parametrize('percentage', [NAN, -0.01, 55.0, math.inf])
def test_a_percentage_that_cannot_be_is_unknown(percentage: float) -> None:
    assert math.isnan(battery_reading(message(percentage=percentage)).state.charge)


@pytest.mark.parametrize(
    ('fields', 'expected'),
    [
        ({'charge': 1.5, 'capacity': 5.0}, 0.3),
        ({'charge': 1.5, 'design_capacity': 6.0}, 0.25),
        ({'charge': 7.0, 'capacity': 5.0}, NAN),
        ({'charge': 1.0, 'capacity': 0.0}, NAN),
    ],
)
def test_without_a_percentage_the_ampere_hours_tell(
    fields: dict[str, float], expected: float
) -> None:
    charge = battery_reading(message(percentage=NAN, **fields)).state.charge
    assert charge == approx(expected, nan_ok=True)


NUMBERS = st.floats(width=32)


@given(NUMBERS, NUMBERS, NUMBERS, NUMBERS, NUMBERS, st.lists(NUMBERS, max_size=4))
def test_no_message_gives_an_impossible_state(
    volts: float, amperes: float, part: float, left: float, size: float, cells: list[float]
) -> None:
    state = battery_reading(
        message(
            voltage=volts,
            current=amperes,
            percentage=part,
            charge=left,
            capacity=size,
            cell_voltage=cells,
        )
    ).state
    assert not state.voltage <= 0.0
    assert not math.isinf(state.power)
    assert math.isnan(state.charge) or 0.0 <= state.charge <= 1.0
