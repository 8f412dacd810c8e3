"""Which units of a window were sensed, how many it should have, and which modality is slow."""

from __future__ import annotations

import pytest
from hand_made_units import MS, at, features, unit
from hypothesis import given
from hypothesis import strategies as st

from mmedge_ros.core.data_types import CAMERA, RADAR, UnitFeatures
from mmedge_ros.windows.window_units import SlowModality, WindowUnits

WINDOW = 500 * MS


def sensed(available: float, sequence: int, **content: object) -> UnitFeatures:
    return features(unit(available, sequence=sequence), **content)


def filled(period: float, until: float, *missing: int, rate: float = 0.0) -> WindowUnits:
    units = WindowUnits(WINDOW)
    for number in range(int(until / period)):
        if number not in missing:
            units.add(sensed(1.0 + number * period, number, rate=rate))
    return units


def test_a_unit_counts_once_in_each_window_that_holds_it() -> None:
    units = WindowUnits(WINDOW)
    assert units.add(sensed(100.0, 1))
    assert not units.add(sensed(100.0, 1))
    assert units.sensed(at(100)) == units.sensed(at(599)) == 1
    assert units.sensed(at(99)) == units.sensed(at(600)) == 0


def test_how_many_are_expected_is_learned_from_their_distance() -> None:
    assert filled(33.4, 150).expected() == 0  # too few to know
    assert filled(33.4, 500).expected() == 15
    assert filled(50.0, 500).expected() == 10


def test_a_rate_is_an_upper_bound() -> None:
    assert filled(33.4, 500, rate=30.0).expected() == 15
    assert filled(100.0, 900, rate=10.0).expected() == 5
    # At once, before the distance has shown it.
    units = filled(33.4, 500)
    units.add(sensed(520.0, 99, rate=10.0))
    assert units.expected() == 5


def test_a_window_of_two_rates_or_levels_is_seen() -> None:
    units = WindowUnits(WINDOW)
    units.add(sensed(100.0, 1, level='small'))
    units.add(sensed(200.0, 2, level='small'))
    assert units.is_uniform(at(300))
    units.add(sensed(300.0, 3, level='large'))
    assert not units.is_uniform(at(300))
    assert units.is_uniform(at(710))
    assert units.level == 'large'


def test_what_no_open_window_holds_is_forgotten() -> None:
    units = filled(33.4, 2040)
    units.forget(at(1500))
    assert units.sensed(at(1500)) == 0
    assert units.sensed(at(2000)) == 15


@given(st.lists(st.tuples(st.integers(0, 3000), st.integers(0, 30)), max_size=60))
def test_no_order_and_no_repetition_counts_a_unit_twice(rows: list[tuple[int, int]]) -> None:
    units, keys = WindowUnits(WINDOW), set()
    for available, sequence in rows:
        result = sensed(float(available), sequence)
        assert units.add(result) == (result.key not in keys)
        keys.add(result.key)
    for end in range(0, 3600, 100):
        within = {k for k in keys if at(end) - WINDOW < k.stamp_ns + 5 * MS <= at(end)}
        assert units.sensed(at(end)) == len(within)


@pytest.mark.parametrize('delay', [0.0, 5.0, 60.0])
def test_the_longest_delay_is_known(delay: float) -> None:
    units = WindowUnits(WINDOW)
    assert units.delay_ns == 0
    units.add(features(unit(100.0, delay=delay)))
    units.add(features(unit(200.0, sequence=1, delay=0.0)))
    assert units.delay_ns == delay * MS


def observe(subject: SlowModality, modality: str, taken_ms: float, count: int = 40) -> None:
    for number in range(count):
        of = unit(100.0 * number, modality, number)
        subject.observe(features(of), of.available_ns + round(taken_ms * MS))


def test_the_slow_modality_is_the_one_whose_units_take_longer() -> None:
    for slow, fast in ((CAMERA, RADAR), (RADAR, CAMERA)):
        subject = SlowModality()
        observe(subject, slow, 12.0)
        assert subject.choose() == ''  # nothing to compare it with
        observe(subject, fast, 1.0)
        assert subject.choose() == slow


def test_roles_change_only_for_a_clear_difference() -> None:
    subject = SlowModality()
    observe(subject, CAMERA, 10.0)
    observe(subject, RADAR, 1.0)
    assert subject.choose() == CAMERA
    observe(subject, RADAR, 12.0)
    assert subject.choose() == CAMERA
    observe(subject, RADAR, 20.0)
    assert subject.choose() == RADAR
