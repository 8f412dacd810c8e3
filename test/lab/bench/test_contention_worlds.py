from __future__ import annotations

import numpy as np
import pytest

from mmedge_ros.lab.bench.contention_worlds import cost_ranks, draw_worlds


def test_the_same_seed_gives_the_same_worlds() -> None:
    ranks = [[0, 1, 2], [1, 0]]
    assert np.array_equal(draw_worlds(ranks, 50, 3), draw_worlds(ranks, 50, 3))
    assert not np.array_equal(draw_worlds(ranks, 50, 3), draw_worlds(ranks, 50, 4))


def test_nearly_half_of_the_worlds_are_unremarkable() -> None:
    worlds = draw_worlds([[0, 1, 2]] * 4, 400)
    calm = np.abs(worlds).max(axis=1) < 0.25
    assert 0.4 < calm.mean() < 0.75


def test_in_most_worlds_the_most_expensive_configuration_suffers_most() -> None:
    worlds = draw_worlds([[0, 1, 2], [2, 1, 0]], 400)
    # The second axis is listed from the most expensive to the cheapest.
    most_expensive, cheapest = 2 * 3 + 0, 0 * 3 + 2
    assert (worlds[:, most_expensive] >= worlds[:, cheapest]).mean() > 0.95


@pytest.mark.parametrize('ranks', [[[0]], [[0], [0, 1]], [[0, 1]] * 3])
def test_axes_of_any_number_and_length_will_do(ranks: list[list[int]]) -> None:
    worlds = draw_worlds(ranks, 20)
    assert worlds.shape == (20, np.prod([len(r) for r in ranks]))
    assert np.isfinite(worlds).all()


def test_the_best_accuracy_a_value_allows_tells_what_it_costs() -> None:
    accuracy = np.array([[0.5, 0.9], [0.8, 0.3], [0.6, 0.4]])
    assert cost_ranks(accuracy) == [[2, 1, 0], [0, 1]]
