"""Training the gate."""

from __future__ import annotations

import numpy as np
import pytest

from mmedge_lab.training.gate_training import SETTINGS, GateSamples, train_gate
from mmedge_ros.windows.gate_features import FIELDS

LEAD, PEOPLE = FIELDS.index('lead'), FIELDS.index('people')


def samples(count: int = 600, flights: int = 6, seed: int = 0) -> GateSamples:
    """More is kept of decisions the nearer the end and the fewer people there are."""
    random = np.random.default_rng(seed)
    features = random.normal(size=(count, len(FIELDS)))
    features[:, 3] = 7.0  # never varies
    logits = 2.0 - 2.0 * features[:, LEAD] - 1.5 * features[:, PEOPLE]
    # What is kept of a decision is anything between nothing and all of it.
    kept = random.beta(2.0, 2.0 * np.exp(-logits))
    return GateSamples(features, kept, np.arange(count) % flights)


def test_a_gate_learns_what_decides() -> None:
    gate, fit = train_gate(samples(3000), SETTINGS._replace(epochs=20))
    assert fit.held_out_loss < 0.9 * fit.constant_loss
    assert fit.facts() == {
        'epochs': fit.epochs,
        'held_out_loss': pytest.approx(fit[2], abs=1e-6),
        'constant_loss': pytest.approx(fit[3], abs=1e-6),
    }
    unseen = samples(seed=1)
    logits = gate.outputs(unseen.features)
    assert (np.logaddexp(0.0, logits) - unseen.kept * logits).mean() < 0.9 * fit.constant_loss


def test_the_same_seed_gives_the_same_gate() -> None:
    settings = SETTINGS._replace(epochs=5, hidden=4)
    one, other = (train_gate(samples(), settings)[0] for _ in range(2))
    assert np.array_equal(one.weights1, other.weights1)
    different = train_gate(samples(), settings._replace(seed=1))[0]
    assert not np.array_equal(one.weights1, different.weights1)
