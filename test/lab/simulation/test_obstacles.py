from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mmedge_lab.simulation.obstacles import Block, Obstacles, distance_to_line
from mmedge_lab.simulation.world import Plant

HOUSE = Block(np.array([4.0, 1.0]), np.array([6.0, 2.0]), math.pi / 2, 5.0)


def test_distances_to_a_turned_block() -> None:
    house = Obstacles([HOUSE])
    points = np.array([[4.0, 1.0], [6.0, 1.0], [4.0, 5.0], [8.0, 7.0]])
    np.testing.assert_allclose(
        house.distance(points), [-1.0, 1.0, 1.0, math.hypot(3.0, 3.0)], atol=1e-12
    )


def test_the_nearest_of_blocks_and_discs_counts() -> None:
    both = Obstacles([HOUSE], [(np.array([0.0, 0.0]), 0.5)])
    np.testing.assert_allclose(both.distance(np.array([[1.0, 0.0]])), [0.5])
    assert np.isinf(Obstacles().distance(np.array([[1.0, 0.0]]))).all()


def test_corners_run_counter_clockwise() -> None:
    corners = HOUSE.corners
    after = np.roll(corners, -1, axis=0)
    area = 0.5 * np.sum(corners[:, 0] * after[:, 1] - after[:, 0] * corners[:, 1])
    assert area == pytest.approx(12.0)
    assert Obstacles([HOUSE]).distance(HOUSE.outline)[:-1] == pytest.approx(0.0, abs=1e-9)


def test_one_cannot_walk_straight_through_a_house() -> None:
    house = Obstacles([HOUSE])
    assert not house.clear_way(np.array([0.0, 1.0]), np.array([9.0, 1.0]), 0.4)
    assert house.clear_way(np.array([0.0, 1.0]), np.array([0.0, 9.0]), 0.4)


def test_a_house_hides_what_is_behind_it_but_not_what_is_seen_over_it() -> None:
    house = Obstacles([HOUSE])
    behind = np.array([9.0, 1.0, 1.0])
    assert house.hides(np.array([0.0, 1.0, 2.0]), behind)
    assert not house.hides(np.array([0.0, 1.0, 20.0]), behind)
    assert not house.hides(np.array([0.0, 9.0, 2.0]), np.array([9.0, 9.0, 1.0]))


def test_a_crown_hides_what_is_behind_it_but_not_what_is_seen_below_it() -> None:
    tree = Plant(np.array([5.0, 0.0]), 2.0, 0.2, 1.5, 4.0, (40, 80, 40), 1)
    wood = Obstacles(crowns=[tree])
    assert wood.hides(np.array([0.0, 0.0, 6.0]), np.array([8.0, 0.0, 1.0]))
    assert not wood.hides(np.array([0.0, 0.0, 1.5]), np.array([8.0, 0.0, 1.0]))
    assert not wood.hides(np.array([0.0, 4.0, 6.0]), np.array([8.0, 4.0, 1.0]))
    assert np.isinf(wood.distance(tree.position)).all(), 'one walks below it'


@given(x=st.floats(-10.0, 10.0), y=st.floats(-10.0, 10.0))
def test_a_push_never_leads_further_in(x: float, y: float) -> None:
    house = Obstacles([HOUSE])
    point = np.array([[x, y]])
    pushed = point + 0.01 * house.push(point, 1.0)
    assert house.distance(pushed)[0] >= house.distance(point)[0] - 1e-9


def test_the_distance_to_a_line_is_that_to_its_nearest_point() -> None:
    line = np.array([[0.0, 0.0], [10.0, 0.0], [10.0, 5.0]])
    points = np.array([[5.0, 2.0], [-3.0, 4.0], [12.0, 3.0]])
    np.testing.assert_allclose(distance_to_line(points, line), [2.0, 5.0, 2.0])
