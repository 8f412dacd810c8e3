"""What is nearer is painted later."""

from __future__ import annotations

import numpy as np
import pytest

from mmedge_lab.simulation.painting_order import Standing, painting_order

EYE = np.array([0.0, 0.0])


def point(x: float, y: float = 0.0) -> Standing:
    return Standing(np.array([x, y]), 0.0, 100.0)


def prism(x0: float, y0: float, x1: float, y1: float) -> Standing:
    corners = np.array([[x0, y0], [x1, y0], [x1, y1], [x0, y1]])
    return Standing(corners.mean(axis=0), 0.0, 100.0, corners)


@pytest.mark.parametrize('x', [9.5, 3.0])
def test_one_before_a_long_wall_is_painted_after_it_wherever_its_middle_is(x: float) -> None:
    # The wall's middle is at 10.5 m and 20 m to the side; its face is at 10 m.
    wall = prism(10.0, -5.0, 11.0, 45.0)
    assert painting_order(EYE, [point(x), wall]) == [1, 0]


def test_one_behind_a_wall_is_painted_before_it_though_nearer_than_its_middle() -> None:
    wall = prism(10.0, -5.0, 11.0, 60.0)
    assert painting_order(EYE, [wall, point(12.0)]) == [1, 0]


def test_a_car_before_a_house_covers_it_and_a_house_before_a_car_hides_it() -> None:
    house, car = prism(10, -20, 20, 20), prism(6, -2, 8, 2)
    assert painting_order(EYE, [car, house]) == [1, 0]
    assert painting_order(np.array([40.0, 0.0]), [car, house]) == [0, 1]


def test_things_in_a_circle_are_still_all_painted() -> None:
    wall = prism(10.0, -5.0, 11.0, 5.0)
    # Behind the wall, before the wall, and the one behind nearer than the one before.
    things = [wall, point(12.0, 0.0), Standing(np.array([9.0, 30.0]), 0.0, 100.0)]
    assert sorted(painting_order(EYE, things)) == [0, 1, 2]
