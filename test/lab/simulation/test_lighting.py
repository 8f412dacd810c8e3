"""Lamps light pools, and air takes what the visibility says."""

from __future__ import annotations

import math

import hand_made_scenery as made
import numpy as np
import pytest

from mmedge_ros.lab.simulation.lighting import clearness, lamp_light, lamps_at


def test_at_the_visibility_a_twentieth_of_the_light_is_left() -> None:
    assert clearness(made.light('fog'), 40.0) == pytest.approx(0.05)
    assert clearness(made.light('fog'), 0.0) == 1.0


def test_clear_air_takes_little_within_a_hundred_metres() -> None:
    assert clearness(made.light('day'), 100.0) > 0.8


def test_a_lamps_light_falls_from_its_foot_to_nothing_at_its_reach() -> None:
    lamp = made.lamp(0.0, 0.0, lit=True)
    light = lamp_light(lamp, np.linspace(0.0, lamp.reach, 30))
    assert (np.diff(light, axis=0) <= 0.0).all()
    assert light[-1] == pytest.approx(0.0)
    assert light[0].min() > 0.3


def test_only_lit_lamps_within_reach_add_up() -> None:
    lamps = [made.lamp(0.0, 0.0, lit=True), made.lamp(4.0, 0.0, lit=True), made.lamp(2.0, 0.0)]
    one = lamps_at(lamps[:1], np.array([2.0, 0.0]))
    assert lamps_at(lamps, np.array([2.0, 0.0])) == pytest.approx(2.0 * one)
    assert lamps_at(lamps, np.array([math.inf, 0.0])) == pytest.approx(0.0)
