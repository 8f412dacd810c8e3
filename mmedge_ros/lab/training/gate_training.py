"""Trains the gate: two layers, dropout in training only, binary cross-entropy.

In numpy: it has some thousand weights and some thousand samples, and is trained in seconds
wherever flights can be replayed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from mmedge_ros.data_types import FloatArray
from mmedge_ros.lab.training import TrainingError
from mmedge_ros.lab.training.adam import Adam
from mmedge_ros.lab.training.gate_samples import GateSamples
from mmedge_ros.parameter import parameter
from mmedge_ros.skipping.gate import Gate

_FEWEST_SAMPLES = 50
_FEWEST_FLIGHTS = 3
_CUT = 4.0
# How often the held-out loss is looked at, in epochs.
_LOOK = 5


@dataclass(frozen=True)
class GateTrainingSettings:
    """How the gate is trained."""

    hidden: int = parameter(32, 'units of the hidden layer', '', 1, 1024)
    dropout: float = parameter(0.2, 'share of hidden units left out in training', '', 0.0, 0.9)
    learning_rate: float = parameter(0.003, 'step of the optimiser', '', 1e-6, 1.0)
    weight_decay: float = parameter(0.01, 'pull of the weights to zero', '', 0.0, 1.0)
    batch: int = parameter(128, 'samples in a step', '', 1, 100_000)
    epochs: int = parameter(150, 'most passes over the samples', '', 1, 100_000)
    held_out: float = parameter(0.2, 'share of flights that decide when to stop', '', 0.05, 0.5)
    seed: int = parameter(0, 'of weights, order and dropout', '', 0, 2**31 - 1)


class GateFit(NamedTuple):
    """A trained gate, and what is known of it; losses in nats per sample."""

    gate: Gate
    epochs: int
    samples: int
    flights: int
    held_out_loss: float
    constant_loss: float


class _Weights(NamedTuple):
    first: FloatArray
    bias: FloatArray
    second: FloatArray
    offset: FloatArray


def train_gate(samples: GateSamples, settings: GateTrainingSettings | None = None) -> GateFit:
    """Train a gate; the same samples and settings give the same gate.

    Flights are held out as a whole, and training stops where it was best for them.

    :raises TrainingError: for too few samples or flights, or if all answers are the same
    """
    p = settings or GateTrainingSettings()
    flights = np.unique(samples.flights)
    if len(samples) < _FEWEST_SAMPLES or len(flights) < _FEWEST_FLIGHTS:
        raise TrainingError(
            f'{len(samples)} samples of {len(flights)} flights are too few to train a gate; '
            f'replay at least {_FEWEST_FLIGHTS} flights with {_FEWEST_SAMPLES} early decisions'
        )
    if samples.agrees.all() or not samples.agrees.any():
        raise TrainingError(
            'all early decisions turned out the same way, there is nothing to learn; replay '
            'flights with more happening in them'
        )
    random = np.random.default_rng(p.seed)
    count = min(max(round(p.held_out * len(flights)), 1), len(flights) - 1)
    held = random.permutation(flights)[:count]
    training, judging = samples.of(np.setdiff1d(flights, held)), samples.of(held)
    mean = training.features.mean(axis=0)
    deviation = training.features.std(axis=0)
    # A field that never varied says nothing, and must not when it varies in flight.
    scale = np.where(deviation > 1e-9, 1.0 / np.maximum(deviation, 1e-9), 0.0)
    inputs = np.clip((training.features - mean) * scale, -_CUT, _CUT)
    labels = training.agrees.astype(np.float64)

    weights = _initial(inputs.shape[1], p.hidden, float(labels.mean()), random)
    best = _gate(weights, mean, scale)
    best_loss, best_epoch = gate_loss(best, judging), 0
    adam = Adam(
        weights, p.learning_rate, p.weight_decay, [w.ndim == 2 or len(w) > 1 for w in weights]
    )
    for epoch in range(1, p.epochs + 1):
        order = random.permutation(len(inputs))
        for begin in range(0, len(order), p.batch):
            chosen = order[begin : begin + p.batch]
            gradients = _gradients(weights, inputs[chosen], labels[chosen], p.dropout, random)
            weights = _Weights(*adam.step(weights, gradients))
        if epoch % _LOOK == 0:
            gate = _gate(weights, mean, scale)
            loss = gate_loss(gate, judging)
            if loss < best_loss:
                best, best_loss, best_epoch = gate, loss, epoch
    share = float(np.clip(training.agrees.mean(), 1e-6, 1.0 - 1e-6))
    return GateFit(
        best,
        best_epoch,
        len(samples),
        len(flights),
        best_loss,
        _cross_entropy(np.full(len(judging), np.log(share / (1.0 - share))), judging.agrees),
    )


def gate_loss(gate: Gate, samples: GateSamples) -> float:
    """Return the mean cross-entropy of a gate, nats."""
    return _cross_entropy(gate.logits(samples.features), samples.agrees)


def _cross_entropy(logits: FloatArray, agrees: np.ndarray) -> float:
    return float(np.logaddexp(0.0, np.where(agrees, -logits, logits)).mean())


def _initial(fields: int, hidden: int, share: float, random: np.random.Generator) -> _Weights:
    return _Weights(
        random.normal(0.0, np.sqrt(2.0 / fields), (fields, hidden)),
        np.zeros(hidden),
        random.normal(0.0, np.sqrt(1.0 / hidden), hidden),
        np.array([np.log(max(share, 1e-3) / max(1.0 - share, 1e-3))]),
    )


def _gradients(
    weights: _Weights,
    inputs: FloatArray,
    labels: FloatArray,
    dropout: float,
    random: np.random.Generator,
) -> _Weights:
    hidden = inputs @ weights.first + weights.bias
    kept = (random.random(hidden.shape) >= dropout) / (1.0 - dropout)
    active = np.maximum(hidden, 0.0) * kept
    logits = active @ weights.second + weights.offset[0]
    error = (1.0 / (1.0 + np.exp(-np.clip(logits, -60.0, 60.0))) - labels) / len(labels)
    back = np.outer(error, weights.second) * kept * (hidden > 0.0)
    return _Weights(inputs.T @ back, back.sum(axis=0), active.T @ error, np.array([error.sum()]))


def _gate(weights: _Weights, mean: FloatArray, scale: FloatArray) -> Gate:
    return Gate(
        mean,
        scale,
        weights.first.copy(),
        weights.bias.copy(),
        weights.second.copy(),
        float(weights.offset[0]),
    )
