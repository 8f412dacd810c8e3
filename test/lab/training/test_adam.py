"""The optimiser of the small networks."""

from __future__ import annotations

import numpy as np
import pytest

from mmedge_ros.lab.training.adam import Adam


def test_the_first_step_goes_down_the_gradient_by_the_learning_rate() -> None:
    weights = [np.array([1.0, -2.0])]
    (found,) = Adam(weights, 0.1, 0.5, [False]).step(weights, [np.array([3.0, -0.01])])
    assert found == pytest.approx([0.9, -1.9], abs=1e-6)


def test_a_bowl_is_descended_to_its_bottom() -> None:
    weights = [np.array([[4.0, -3.0]])]
    adam = Adam(weights, 0.05, 0.0, [True])
    for _ in range(1000):
        weights = adam.step(weights, [2.0 * (weights[0] - 1.0)])
    assert weights[0] == pytest.approx(np.ones((1, 2)), abs=1e-2)


def test_only_what_decays_is_pulled_to_zero() -> None:
    weights = [np.ones((1, 1)), np.ones(1)]
    adam = Adam(weights, 0.1, 0.5, [True, False])
    pulled, left = adam.step(weights, [np.zeros((1, 1)), np.zeros(1)])
    assert (pulled.item(), left.item()) == pytest.approx((0.95, 1.0))
