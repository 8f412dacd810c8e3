from __future__ import annotations

import math

import numpy as np

from mmedge_lab.simulation.obstacles import Block, Obstacles

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
