"""Trains the gate: two layers, dropout in training only, binary cross-entropy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mmedge_ros.data_types import FloatArray
from mmedge_ros.lab.training import TrainingError
from mmedge_ros.lab.training.dense_training import (
    DenseSettings,
    log_odds,
    require_enough,
    train_dense,
    yes_or_no,
)
from mmedge_ros.lab.training.gate_flights import GateSamples
from mmedge_ros.parameter import parameter
from mmedge_ros.skipping.gate import Gate

# How often the held-out loss is looked at, in epochs.
_LOOK = 5


@dataclass(frozen=True)
class GateTrainingSettings(DenseSettings):
    """How the gate is trained."""

    dropout: float = parameter(0.2, 'share of hidden units left out in training', '', 0.0, 0.9)
    epochs: int = parameter(150, 'most passes over the samples', '', 1, 100_000)
    held_out: float = parameter(0.2, 'share of flights that decide when to stop', '', 0.05, 0.5)


class GateFit(NamedTuple):
    """A trained gate, and what is known of it; losses in nats per sample."""

    gate: Gate
    epochs: int
    samples: int
    flights: int
    held_out_loss: float
    constant_loss: float


def train_gate(samples: GateSamples, settings: GateTrainingSettings | None = None) -> GateFit:
    """Train a gate; the same samples and settings give the same gate.

    Flights are held out as a whole, and training stops where it was best for them.

    :raises TrainingError: for too few samples or flights, or if all answers are the same
    """
    p = settings or GateTrainingSettings()
    flights = np.unique(samples.flights)
    require_enough(len(samples), len(flights))
    if samples.agrees.all() or not samples.agrees.any():
        raise TrainingError(
            'all early decisions turned out the same way, there is nothing to learn; replay '
            'flights with more happening in them'
        )
    count = min(max(round(p.held_out * len(flights)), 1), len(flights) - 1)
    held = np.random.default_rng(p.seed).permutation(flights)[:count]
    judged = samples.of(held)
    rows = np.flatnonzero(~np.isin(samples.flights, held))
    learned = samples.agrees[rows]
    networks = train_dense(
        samples.features,
        rows,
        yes_or_no(samples.agrees),
        np.array([log_odds(learned, 1e-3)]),
        p,
        _LOOK,
    )
    gates = [
        Gate(n.mean, n.scale, n.weights1, n.bias1, n.weights2[:, 0], float(n.bias2[0]))
        for n in networks
    ]
    losses = [gate_loss(gate, judged) for gate in gates]
    best = int(np.argmin(losses))
    constant = np.full(len(judged), log_odds(learned, 1e-6))
    return GateFit(
        gates[best],
        _LOOK * best,
        len(samples),
        len(flights),
        losses[best],
        _cross_entropy(constant, judged.agrees),
    )


def gate_loss(gate: Gate, samples: GateSamples) -> float:
    """Return the mean cross-entropy of a gate, nats."""
    return _cross_entropy(gate.logits(samples.features), samples.agrees)


def _cross_entropy(logits: FloatArray, agrees: NDArray[np.bool_]) -> float:
    return float(np.logaddexp(0.0, np.where(agrees, -logits, logits)).mean())
