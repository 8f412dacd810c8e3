"""Trains a network of two layers by any loss, in numpy: some thousand weights, in seconds.

How long to train is found by cross-validation: flights are held out as a whole, each once, and
what was best for them on average is then done with all flights. Where a constant is best for
flights held out, the network is that constant.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mmedge_ros.data_types import FloatArray
from mmedge_ros.lab.policies.dense_network import DenseNetwork, logistic
from mmedge_ros.lab.training import TrainingError
from mmedge_ros.lab.training.adam import Adam
from mmedge_ros.parameter import parameter

# How often the held-out loss is looked at, in epochs.
_LOOK = 2
FEWEST_SAMPLES = 50
FEWEST_FLIGHTS = 3

Rows = NDArray[np.intp]
# Of outputs (B, O) for samples at rows (B,): the mean loss, and its gradient (B, O).
Loss = Callable[[FloatArray, Rows], tuple[float, FloatArray]]
# The outputs (O,) that are best for samples at rows (B,), whatever the inputs.
Constant = Callable[[Rows], FloatArray]


@dataclass(frozen=True)
class FitSettings:
    """How a network is trained."""

    hidden: int = parameter(32, 'units of the hidden layer', '', 1, 1024)
    dropout: float = parameter(0.1, 'share of hidden units left out in training', '', 0.0, 0.9)
    learning_rate: float = parameter(0.003, 'step of the optimiser', '', 1e-6, 1.0)
    weight_decay: float = parameter(0.01, 'pull of the weights to zero', '', 0.0, 1.0)
    batch: int = parameter(128, 'samples in a step', '', 1, 100_000)
    epochs: int = parameter(40, 'most passes over the samples', '', 1, 100_000)
    folds: int = parameter(10, 'parts of the flights, each held out once', '', 2, 100)
    seed: int = parameter(0, 'of weights, order and dropout', '', 0, 2**31 - 1)


class Fit(NamedTuple):
    """A trained network; losses are those of flights held out, and of the best constant there."""

    network: DenseNetwork
    epochs: int
    held_out_loss: float
    constant_loss: float


class _Weights(NamedTuple):
    first: FloatArray
    bias1: FloatArray
    second: FloatArray
    bias2: FloatArray


def fit_network(
    inputs: FloatArray,
    flights: NDArray[np.int64],
    loss: Loss,
    constant: Constant,
    settings: FitSettings | None = None,
) -> Fit:
    """Train a network; the same samples and settings give the same one.

    :param inputs: (N, F)
    :param flights: (N,) numbers of the flights they come from
    :param constant: what training begins with
    :raises TrainingError: for too few samples or flights
    """
    p = settings or FitSettings()
    known = np.unique(flights)
    if len(inputs) < FEWEST_SAMPLES or len(known) < FEWEST_FLIGHTS:
        raise TrainingError(
            f'{len(inputs)} samples of {len(known)} flights are too few to train a rival; use a '
            f'set of at least {FEWEST_FLIGHTS} flights with {FEWEST_SAMPLES} samples'
        )
    order = np.random.default_rng(p.seed).permutation(known)
    losses, counts = [], []
    for held in np.array_split(order, min(p.folds, len(known))):
        is_held = np.isin(flights, held)
        judged = np.flatnonzero(is_held)
        rows = np.flatnonzero(~is_held)
        networks = _trained(inputs, rows, loss, constant(rows), p, p.epochs)
        losses.append([loss(n.outputs(inputs[judged]), judged)[0] for n in networks])
        counts.append(len(judged))
    by_epoch = np.average(losses, axis=0, weights=counts)
    best = int(by_epoch.argmin())
    rows = np.arange(len(inputs))
    *_, network = _trained(inputs, rows, loss, constant(rows), p, best * _LOOK)
    return Fit(network, best * _LOOK, float(by_epoch[best]), float(by_epoch[0]))


def _trained(
    inputs: FloatArray, rows: Rows, loss: Loss, begin: FloatArray, p: FitSettings, epochs: int
) -> Iterator[DenseNetwork]:
    """Train on some rows; yields the network at the beginning and every few epochs."""
    random = np.random.default_rng(p.seed)
    mean, deviation = inputs[rows].mean(axis=0), inputs[rows].std(axis=0)
    # A field that never varied says nothing, and must not when it varies later.
    scale = np.where(deviation > 1e-9, 1.0 / np.maximum(deviation, 1e-9), 0.0)
    weights = _initial(inputs.shape[1], p.hidden, begin, random)
    network = DenseNetwork(mean, scale, *(w.copy() for w in weights))
    standardised = network.standardised(inputs)
    yield network
    adam = Adam(weights, p.learning_rate, p.weight_decay, [w.ndim == 2 for w in weights])
    for epoch in range(1, epochs + 1):
        order = random.permutation(rows)
        for place in range(0, len(order), p.batch):
            chosen = order[place : place + p.batch]
            gradients = _gradients(weights, standardised[chosen], chosen, loss, p.dropout, random)
            weights = _Weights(*adam.step(weights, gradients))
        if epoch % _LOOK == 0:
            yield DenseNetwork(mean, scale, *(w.copy() for w in weights))


def yes_or_no(labels: NDArray[np.bool_]) -> Loss:
    """Return the cross-entropy (nats) of one logit with labels (N,)."""
    wanted = labels.astype(np.float64)

    def loss(outputs: FloatArray, rows: Rows) -> tuple[float, FloatArray]:
        logits, truth = outputs[:, 0], wanted[rows]
        value = np.logaddexp(0.0, logits) - truth * logits
        return float(value.mean()), ((logistic(logits) - truth) / len(rows))[:, None]

    return loss


def squared(targets: FloatArray) -> Loss:
    """Return the mean squared error of outputs with targets (N, O)."""

    def loss(outputs: FloatArray, rows: Rows) -> tuple[float, FloatArray]:
        error = outputs - targets[rows]
        return float((error**2).mean()), 2.0 * error / error.size

    return loss


def found_and_moved(found: NDArray[np.bool_], moved: FloatArray) -> Loss:
    """Return the loss of a logit, whether someone is found, and of how far they moved if they are.

    :param found: (N,)
    :param moved: (N, D) in units of their deviation; errors beyond one count linearly
    """
    presence = yes_or_no(found)

    def loss(outputs: FloatArray, rows: Rows) -> tuple[float, FloatArray]:
        value, gradient = presence(outputs[:, :1], rows)
        there = found[rows, None]
        error = np.where(there, outputs[:, 1:] - moved[rows], 0.0)
        size = np.abs(error)
        huber = np.where(size < 1.0, 0.5 * error**2, size - 0.5)
        count = max(int(there.sum()) * error.shape[1], 1)
        return (
            value + float(huber.sum()) / count,
            np.concatenate([gradient, np.clip(error, -1.0, 1.0) / count], axis=1),
        )

    return loss


def _initial(fields: int, hidden: int, begin: FloatArray, random: np.random.Generator) -> _Weights:
    return _Weights(
        random.normal(0.0, np.sqrt(2.0 / fields), (fields, hidden)),
        np.zeros(hidden),
        # The best constant, until there is something to learn.
        np.zeros((hidden, len(begin))),
        begin.astype(np.float64).copy(),
    )


def _gradients(
    weights: _Weights,
    inputs: FloatArray,
    rows: Rows,
    loss: Loss,
    dropout: float,
    random: np.random.Generator,
) -> _Weights:
    hidden = inputs @ weights.first + weights.bias1
    kept = (random.random(hidden.shape) >= dropout) / (1.0 - dropout)
    active = np.maximum(hidden, 0.0) * kept
    _, error = loss(active @ weights.second + weights.bias2, rows)
    back = (error @ weights.second.T) * kept * (hidden > 0.0)
    return _Weights(inputs.T @ back, back.sum(axis=0), active.T @ error, error.sum(axis=0))
