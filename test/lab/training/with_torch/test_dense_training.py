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
    train_dense,
    yes_or_no,
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
        DenseSettings(epochs=20),
    )
    assert fit.held_out_loss > 0.5 * fit.constant_loss
    assert fit.epochs < 20


def test_only_weights_are_pulled_to_zero() -> None:
    inputs, rows = np.random.default_rng(0).normal(size=(20, 3)), np.arange(20)

    def trained(decay: float) -> list[np.ndarray]:
        settings = DenseSettings(epochs=1, batch=20, weight_decay=decay, learning_rate=0.1)
        loss = squared(np.zeros((20, 1)))
        *_, network = train_dense(inputs, rows, loss, np.ones(1), settings, 1)
        return [network.weights1, network.bias1, network.weights2, network.bias2]

    plain, pulled = trained(0.0), trained(0.5)
    assert np.abs(pulled[0]).sum() < np.abs(plain[0]).sum()
    assert np.array_equal(plain[1], pulled[1])
    assert plain[3] == pytest.approx(pulled[3], abs=1e-12)


def test_a_network_begins_as_the_best_constant() -> None:
    inputs = np.random.default_rng(0).normal(size=(20, 3))
    loss = squared(np.zeros((20, 2)))
    begun = next(
        train_dense(inputs, np.arange(20), loss, np.array([2.0, -1.0]), DenseSettings(), 1)
    )
    assert np.array_equal(begun.outputs(inputs), np.tile([2.0, -1.0], (20, 1)))


def test_losses_are_those_of_their_rows() -> None:
    labels, rows = np.array([True, False, True, True]), np.array([1, 3])
    logits = torch.tensor([[0.5], [2.0]], dtype=torch.float64)
    wanted = (np.log1p(np.exp(0.5)) + np.log1p(np.exp(-2.0))) / 2.0
    assert float(yes_or_no(labels)(logits, rows)) == pytest.approx(wanted)


def test_how_far_a_person_moved_counts_where_one_is_present() -> None:
    present, moved = np.array([True, False]), np.array([[0.5, 3.0], [np.nan, np.nan]])
    outputs = torch.zeros((2, 3), dtype=torch.float64)
    loss = present_and_moved(present, moved)
    # An error up to one counts as half its square, beyond linearly.
    both = np.log(2.0) + (0.125 + 2.5) / 2.0
    assert float(loss(outputs, np.array([0, 1]))) == pytest.approx(both)
    assert float(loss(outputs[:1], np.array([1]))) == pytest.approx(np.log(2.0))
