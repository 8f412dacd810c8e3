"""Training networks of two layers."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from mmedge_lab.training.dense_training import (
    DenseSettings,
    Loss,
    fit_network,
    present_and_moved,
)


def squared(targets: np.ndarray) -> Loss:
    wanted = torch.from_numpy(targets)
    return lambda outputs, rows: torch.nn.functional.mse_loss(outputs, wanted[rows])


def test_flights_are_held_out_as_a_whole() -> None:
    # Each flight has an answer of its own: what is learnt of some is wrong of the others.
    flights = np.repeat(np.arange(8), 40)
    inputs = np.eye(8)[flights]
    targets = np.random.default_rng(1).normal(size=8)[flights][:, None]
    fit = fit_network(
        inputs,
        flights,
        squared(targets),
        lambda rows: targets[rows].mean(0),
        DenseSettings(epochs=20, learning_rate=0.03),
    )
    assert fit.held_out_loss > 0.5 * fit.constant_loss
    assert fit.epochs < 20


def test_where_nothing_can_be_learnt_the_network_is_the_best_constant() -> None:
    inputs, flights = np.random.default_rng(0).normal(size=(60, 3)), np.arange(60) % 3
    best = np.array([2.0, -1.0])
    loss = squared(np.tile(best, (60, 1)))
    fit = fit_network(inputs, flights, loss, lambda _: best, DenseSettings(epochs=1))
    assert np.array_equal(fit.network.outputs(inputs), np.tile(best, (60, 1)))


def test_how_far_a_person_moved_counts_where_one_is_present() -> None:
    present, moved = np.array([True, False]), np.array([[0.5, 3.0], [np.nan, np.nan]])
    outputs = torch.zeros((2, 3), dtype=torch.float64)
    loss = present_and_moved(present, moved)
    # An error up to one counts as half its square, beyond linearly.
    both = np.log(2.0) + (0.125 + 2.5) / 2.0
    assert float(loss(outputs, np.array([0, 1]))) == pytest.approx(both)
    assert float(loss(outputs[:1], np.array([1]))) == pytest.approx(np.log(2.0))
