from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mmedge_ros.adaptation import ConfigurationError
from mmedge_ros.adaptation.unit_time_calibration import UnitTimeCalibration
from mmedge_ros.adaptation.unit_time_profile import StageTime

LEVELS = ('small', 'medium', 'large')
KINDS = [
    (modality, level, StageTime(0.005 * (n + 1), 0.1))
    for modality in ('camera', 'radar')
    for n, level in enumerate(LEVELS)
]
PERIOD = 1 / 30


class Machine:
    """Measures units of one level on a machine that is slower by a factor."""

    def __init__(self, scatter: float = 0.1, outliers: float = 0.0, seed: int = 0) -> None:
        self.calibration = UnitTimeCalibration(KINDS)
        self.now = 0.0
        self._random = np.random.default_rng(seed)
        self._scatter, self._outliers = scatter, outliers

    def run(self, units: int, slower: float, level: str = 'medium') -> list[tuple[int, float]]:
        """Return the detected steps and after how many units."""
        profiled = 0.005 * (LEVELS.index(level) + 1)
        steps = []
        for number in range(1, units + 1):
            self.now += PERIOD
            duration = profiled * slower * math.exp(self._scatter * self._random.normal())
            if self._random.random() < self._outliers:
                duration *= 8.0
            step = self.calibration.observe('camera', level, duration, self.now)
            if step is not None:
                steps.append((number, step))
        return steps

    def slower(self, modality: str, level: str) -> float:
        """How much slower than profiled a kind is believed to be."""
        medians, _, _ = self.calibration.predict(self.now)
        number = [kind[:2] for kind in KINDS].index((modality, level))
        return float(medians[number]) / KINDS[number][2].median

    def ignorance(self, modality: str, level: str) -> float:
        _, _, ignorance = self.calibration.predict(self.now)
        return float(ignorance[[kind[:2] for kind in KINDS].index((modality, level))])


def test_before_anything_is_measured_the_profile_counts() -> None:
    assert Machine().slower('radar', 'large') == pytest.approx(1.0)
    assert Machine().ignorance('radar', 'large') == pytest.approx(0.05)


def test_a_step_up_is_taken_at_once_and_not_averaged_over() -> None:
    machine = Machine()
    machine.run(300, 1.0)
    steps = machine.run(4, 2.0)
    assert [number <= 3 for number, _ in steps] == [True]
    assert machine.slower('camera', 'medium') == pytest.approx(2.0, rel=0.15)


def test_a_step_down_is_taken_later_but_within_a_second() -> None:
    machine = Machine()
    machine.run(100, 2.0)
    machine.run(2, 1.0)
    assert machine.slower('camera', 'medium') > 1.7
    machine.run(28, 1.0)
    assert machine.slower('camera', 'medium') == pytest.approx(1.0, rel=0.15)


def test_what_slows_one_level_is_expected_of_the_others_but_less_certain() -> None:
    machine = Machine()
    machine.run(300, 1.0)
    machine.run(300, 2.0)
    assert machine.slower('camera', 'large') > 1.6
    assert machine.slower('radar', 'small') > 1.3
    assert machine.ignorance('camera', 'medium') < 0.1
    assert machine.ignorance('camera', 'large') > 2 * machine.ignorance('camera', 'medium')
    assert machine.ignorance('radar', 'small') > machine.ignorance('camera', 'large')


def test_what_is_special_to_one_level_stays_with_it() -> None:
    machine = Machine()
    for _ in range(6):
        machine.run(60, 1.0, 'small')
        machine.run(60, 1.5, 'large')
    machine.run(60, 1.0, 'small')
    assert machine.slower('camera', 'large') > 1.15
    assert machine.slower('camera', 'small') == pytest.approx(1.0, rel=0.1)


def test_what_has_not_been_seen_for_long_becomes_uncertain_and_fades_to_the_profile() -> None:
    machine = Machine()
    machine.run(300, 2.0)
    known = machine.ignorance('camera', 'medium')
    machine.now += 5.0
    later = machine.ignorance('camera', 'medium')
    machine.now += 200.0
    assert known < later < machine.ignorance('camera', 'medium')
    assert machine.slower('camera', 'medium') == pytest.approx(1.0, rel=0.02)


def test_outliers_neither_move_the_expectation_nor_count_as_steps() -> None:
    machine = Machine(outliers=0.02, seed=4)
    assert machine.run(600, 1.0) == []
    assert machine.slower('camera', 'medium') == pytest.approx(1.0, rel=0.12)


@pytest.mark.parametrize('slower', [1.0, 1.7])
def test_the_95_percent_quantile_is_kept_by_about_95_percent(slower: float) -> None:
    machine = Machine(scatter=0.15, seed=2)
    machine.run(300, slower)
    random = np.random.default_rng(8)
    kept = 0
    for _ in range(1000):
        medians, scatter, ignorance = machine.calibration.predict(machine.now)
        limit = medians[1] * math.exp(1.645 * math.hypot(scatter[1], ignorance[1]))
        machine.now += PERIOD
        duration = 0.010 * slower * math.exp(0.15 * random.normal())
        machine.calibration.observe('camera', 'medium', duration, machine.now)
        kept += duration <= limit
    assert 925 <= kept <= 990


@pytest.mark.parametrize('duration', [math.nan, math.inf, -math.inf, 0.0, -0.01, 1e9, 1e-12])
def test_a_duration_that_is_none_teaches_nothing(duration: float) -> None:
    machine = Machine()
    machine.run(50, 1.0)
    before = machine.calibration.predict(machine.now)
    assert machine.calibration.observe('camera', 'medium', duration, machine.now + 99) is None
    assert machine.calibration.observe('nose', 'medium', 0.01, machine.now) is None
    assert machine.calibration.rejected == 2
    for old, new in zip(before, machine.calibration.predict(machine.now), strict=True):
        assert np.array_equal(old, new)


@settings(max_examples=50)
@given(st.lists(st.tuples(st.sampled_from(LEVELS), st.floats(), st.floats()), max_size=60))
def test_whatever_is_measured_whenever_predictions_stay_usable(
    samples: list[tuple[str, float, float]],
) -> None:
    calibration = UnitTimeCalibration(KINDS)
    for level, duration, now in samples:
        calibration.observe('camera', level, duration, now)
    medians, scatter, ignorance = calibration.predict(samples[-1][2] if samples else 0.0)
    assert np.all(np.isfinite(medians))
    assert np.all(medians > 0.0)
    assert np.all(scatter > 0.0)
    assert np.all((ignorance >= 0.0) & np.isfinite(ignorance))


def test_a_clock_that_jumps_does_not_spoil_what_is_learned() -> None:
    machine = Machine()
    machine.run(200, 1.5)
    for jump in (-1e9, 1e15, math.nan, -1e15):
        machine.calibration.observe('camera', 'medium', 0.015, machine.now + jump)
    machine.run(100, 1.5)
    assert machine.slower('camera', 'medium') == pytest.approx(1.5, rel=0.1)


def test_nothing_or_something_twice_cannot_be_calibrated() -> None:
    for kinds in ([], [KINDS[0], KINDS[0]]):
        with pytest.raises(ConfigurationError, match='nothing to calibrate'):
            UnitTimeCalibration(kinds)


def test_before_the_first_unit_the_profile_is_trusted_however_long_that_lasts() -> None:
    calibration = UnitTimeCalibration(KINDS)
    _, _, first = calibration.predict(0.0)
    _, _, later = calibration.predict(60.0)
    assert later == pytest.approx(first)
    calibration.observe('camera', 'medium', 0.010, 60.0)
    _, _, after = calibration.predict(120.0)
    assert (after > 2.0 * first).all()
