"""The rival that imputes learns what its samples hold."""

from __future__ import annotations

import numpy as np
import pytest

from mmedge_lab.policies.imputation import PERSON_FIELDS
from mmedge_lab.training import TrainingError
from mmedge_lab.training.dense_training import DenseSettings
from mmedge_lab.training.imputation_training import ImputationSamples, judge_imputer, train_imputer

FEW = DenseSettings(epochs=20)


def samples(count: int = 900, seed: int = 0) -> ImputationSamples:
    """All people go on as they went; those of a low score are gone."""
    random = np.random.default_rng(seed)
    onward = PERSON_FIELDS.index('onward_right')
    before = random.normal(size=(count, len(PERSON_FIELDS)))
    before[:, onward : onward + 4] *= 0.2
    moved = before[:, onward : onward + 4]
    boxes = np.tile(np.array([100.0, 100.0, 150.0, 220.0]), (count, 1))
    middle = 125.0 + 50.0 * moved[:, 0], 160.0 + 120.0 * moved[:, 1]
    half = 25.0 * np.exp(moved[:, 2]), 60.0 * np.exp(moved[:, 3])
    corners = middle[0] - half[0], middle[1] - half[1], middle[0] + half[0], middle[1] + half[1]
    found = before[:, PERSON_FIELDS.index('score')] > -0.5
    return ImputationSamples(before, found, moved, boxes, np.stack(corners, 1))


def test_an_imputer_learns_how_people_move() -> None:
    known = samples()
    imputer, facts = train_imputer(known, np.arange(900) % 6, FEW)
    assert facts['held_out_loss'] < facts['constant_loss']
    figures = judge_imputer(imputer, samples(300, seed=1))
    assert figures['iou_going_on'] == pytest.approx(1.0)
    assert figures['iou'] > figures['iou_staying'] + 0.15
    assert figures['accuracy'] > max(figures['found'], 1.0 - figures['found']) + 0.1


def test_too_little_to_learn_from_is_said() -> None:
    with pytest.raises(TrainingError, match='too few'):
        train_imputer(samples(30), np.arange(30) % 6, FEW)
    nobody = samples(60)._replace(found=np.zeros(60, bool))
    with pytest.raises(TrainingError, match='no person is seen'):
        train_imputer(nobody, np.arange(60) % 6, FEW)
