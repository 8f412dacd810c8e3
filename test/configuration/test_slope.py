from __future__ import annotations

import math

import pytest

from mmedge_ros.configuration.slope import Slope


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
