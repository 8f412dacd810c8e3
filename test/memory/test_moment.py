"""Light, motion and phases of flight in words come from stated limits."""

from __future__ import annotations

import math

import numpy as np
import pytest

from mmedge_ros.memory.moment import (
    FlightPhase,
    Light,
    Motion,
    Spot,
    lights_of,
    moves,
    phase_of,
)


@pytest.mark.parametrize(
    ('velocity', 'phase'),
    [
        (Spot(0.1, 0.2, 0.1), FlightPhase.HOVERING),
        (Spot(3.0, 0.0, 0.0), FlightPhase.TRAVELLING),
        (Spot(3.0, 0.0, 2.0), FlightPhase.TRAVELLING),
        (Spot(0.5, 0.0, 2.0), FlightPhase.CLIMBING),
        (Spot(0.5, 0.0, -2.0), FlightPhase.DESCENDING),
        (Spot(0.0, 0.0, 0.4), FlightPhase.HOVERING),
        (Spot(), FlightPhase.UNKNOWN),
        (Spot(1.0, math.inf, 0.0), FlightPhase.UNKNOWN),
    ],
)
def test_the_phase_of_a_flight_is_known_by_its_velocity(
    velocity: Spot, phase: FlightPhase
) -> None:
    assert phase_of(velocity) == phase


def test_light_is_known_by_the_brightness_of_pictures() -> None:
    lights = lights_of(np.array([0.1, 0.2, 0.5, np.nan]))
    assert lights.tolist() == [Light.NIGHT, Light.DUSK, Light.DAY, Light.UNKNOWN]


@pytest.mark.parametrize('motion', list(Motion))
def test_what_is_not_known_moves_in_no_way(motion: Motion) -> None:
    unknown = np.full((1, 3), np.nan)
    assert not moves(motion, np.zeros((1, 3)), unknown, np.zeros((1, 4))).any()


def test_somebody_right_below_the_drone_neither_approaches_nor_leaves() -> None:
    here, speed = np.zeros((1, 3)), np.array([[1.0, 0.0, 0.0]])
    assert not moves(Motion.APPROACHING, here, speed, np.zeros((1, 4))).any()
    assert not moves(Motion.LEAVING, here, speed, np.zeros((1, 4))).any()
