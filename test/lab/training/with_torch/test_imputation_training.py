"""The rival that imputes learns what its samples hold."""

from __future__ import annotations

import numpy as np
import pytest

from mmedge_lab.policies.imputation import PERSON_FIELDS
from mmedge_lab.training import TrainingError
from mmedge_lab.training.dense_training import DenseSettings
from mmedge_lab.training.imputation_training import ImputationSamples, train_imputer

FEW = DenseSettings(epochs=20)


def samples(count: int = 900, seed: int = 0) -> ImputationSamples:
    """All people go on as they went; those of a low score are gone."""
    random = np.random.default_rng(seed)
    onward = PERSON_FIELDS.index('onward_right')
    before = random.normal(size=(count, len(PERSON_FIELDS)))
    before[:, onward : onward + 4] *= 0.2
    moved = before[:, onward : onward + 4]
    found = before[:, PERSON_FIELDS.index('score')] > -0.5
    return ImputationSamples(before, found, moved)


def test_an_imputer_learns_how_people_move() -> None:
    known = samples()
    imputer, facts = train_imputer(known, np.arange(900) % 6, FEW)
    assert facts['held_out_loss'] < facts['constant_loss']
    unseen = samples(300, seed=1)
    outputs = imputer.network.outputs(unseen.before)
    right = (outputs[:, 0] >= 0.0) == unseen.found
    assert right.mean() > max(unseen.found.mean(), 1.0 - unseen.found.mean()) + 0.1
    errors = np.abs(outputs[:, 1:] * imputer.scale - unseen.moved)[unseen.found]
    assert errors.mean() < 0.5 * np.abs(unseen.moved[unseen.found]).mean()


def test_too_little_to_learn_from_is_said() -> None:
    with pytest.raises(TrainingError, match='too few'):
        train_imputer(samples(30), np.arange(30) % 6, FEW)
    nobody = samples(60)._replace(found=np.zeros(60, bool))
    with pytest.raises(TrainingError, match='no person is seen'):
        train_imputer(nobody, np.arange(60) % 6, FEW)
