"""Lamps light pools, and air takes what the visibility says."""

from __future__ import annotations

import math

import hand_made_scenery as made
import numpy as np
import pytest

from mmedge_lab.simulation.light import clearness, draw_light, lamp_light, lamps_at
from mmedge_lab.simulation.scenario import LIGHTS

SEEDS = range(40)


@pytest.mark.parametrize('name', LIGHTS)
def test_a_light_is_within_what_the_camera_can_do(name: str) -> None:
    for light in (draw_light(name, seed) for seed in SEEDS):
        assert light.name == name
        assert np.linalg.norm(light.sun_direction) == pytest.approx(1.0)
        assert light.sun_direction[2] > 0.0
        assert light.sky.shape == (2, 3)
        assert light.sky.min() >= 0.0
        assert light.sky.max() <= 255.0
        assert light.exposure < 1.0 / 30.0, 'a picture must be over before the next'
        assert 0.0 < light.ambient < 1.0


@pytest.mark.parametrize(
    ('name', 'shortest', 'longest'),
    [('day', 0.001, 0.002), ('dusk', 0.007, 0.009), ('night', 0.016, 0.025)],
)
def test_the_darker_it_is_the_longer_the_exposure(
    name: str, shortest: float, longest: float
) -> None:
    exposures = [draw_light(name, seed).exposure for seed in SEEDS]
    assert shortest <= min(exposures) < max(exposures) <= longest


def test_only_fog_ends_the_sight() -> None:
    for name in LIGHTS:
        visibilities = [draw_light(name, seed).fog_visibility for seed in SEEDS]
        if name == 'fog':
            assert 79.0 < min(visibilities) < 110.0 < 150.0 < max(visibilities) < 201.0
        else:
            assert all(math.isinf(v) for v in visibilities)


def test_day_is_brighter_than_dusk_and_dusk_than_night() -> None:
    def least(name: str) -> float:
        return min(light.ambient for light in (draw_light(name, seed) for seed in SEEDS))

    assert least('day') > 1.5 * least('dusk')
    assert least('dusk') > 1.2 * least('night')


def test_dusk_has_a_low_red_sun() -> None:
    for seed in SEEDS:
        light = draw_light('dusk', seed)
        assert math.degrees(math.asin(light.sun_direction[2])) < 11.0
        assert light.tint[2] > light.tint[0]


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
