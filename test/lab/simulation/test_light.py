from __future__ import annotations

import math

import numpy as np
import pytest

from mmedge_ros.lab.simulation.light import draw_light
from mmedge_ros.lab.simulation.scenario import LIGHTS

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
