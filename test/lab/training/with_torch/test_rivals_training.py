"""Rivals learn what their samples hold."""

from __future__ import annotations

import numpy as np
import pytest
from hand_made_rivals import choices, rival_samples

from mmedge_lab.training import TrainingError
from mmedge_lab.training.dense_training import FitSettings
from mmedge_lab.training.rivals.rival_training import (
    RivalSettings,
    judge_rivals,
    train_rivals,
)

FEW = RivalSettings(FitSettings(epochs=20, folds=3), FitSettings(epochs=20, folds=3))
LEVELS = choices('small', 'medium', 'large')


@pytest.fixture(scope='module')
def figures() -> dict[str, dict[str, float]]:
    known = rival_samples()
    return judge_rivals(
        train_rivals(known, LEVELS, FEW).plugins, known, rival_samples(300, seed=1, first=10)
    )


def test_a_gate_learns_when_resting_is_no_loss(figures: dict[str, dict[str, float]]) -> None:
    gate = figures['modality_gating']
    assert gate['auc'] > 0.9
    assert gate['accuracy'] > gate['accuracy_constant'] + 0.2
    assert gate['cross_entropy'] < 0.7 * gate['cross_entropy_constant']
    assert 0.3 < gate['rests'] < 0.7
    assert gate['rests_worse'] < 0.2
    assert gate['quality_lost'] < 0.4 * gate['quality_lost_resting_always']


def test_a_selector_learns_which_level_is_enough(figures: dict[str, dict[str, float]]) -> None:
    selector = figures['model_selection']
    assert selector['accuracy'] > selector['accuracy_constant'] + 0.1
    assert selector['r2_against_constant'] > 0.6
    assert selector['quality'] > selector['quality_small'] + 0.01
    assert selector['quality'] > selector['quality_best'] - 0.05
    shares = [selector[f'chosen_{level}'] for level in LEVELS.levels]
    assert sum(shares) == pytest.approx(1.0)
    assert shares[0] > 0.3


def test_an_imputer_learns_how_people_move(figures: dict[str, dict[str, float]]) -> None:
    imputer = figures['imputation']
    assert imputer['iou_going_on'] == pytest.approx(1.0)
    assert imputer['iou'] > imputer['iou_staying'] + 0.15
    assert imputer['auc'] > 0.95
    assert imputer['accuracy'] > imputer['accuracy_constant'] + 0.1


def test_the_same_samples_and_seed_give_the_same_rivals() -> None:
    def weights(seed: int) -> np.ndarray:
        little = FitSettings(epochs=2, hidden=4, seed=seed)
        settings = RivalSettings(little, little)
        gate = train_rivals(rival_samples(200), LEVELS, settings).plugins.modality_gating
        return gate.network.weights1  # type: ignore[union-attr]

    assert np.array_equal(weights(0), weights(0))
    assert not np.array_equal(weights(0), weights(1))


def test_too_little_to_learn_from_is_said() -> None:
    few = rival_samples(60)
    with pytest.raises(TrainingError, match='too few'):
        train_rivals(rival_samples(30), LEVELS, FEW)
    alike = few._replace(gating=few.gating._replace(no_loss=np.ones(60, bool)))
    with pytest.raises(TrainingError, match='never made a difference'):
        train_rivals(alike, LEVELS, FEW)
    nobody = few._replace(imputation=few.imputation._replace(found=np.zeros(60, bool)))
    with pytest.raises(TrainingError, match='no person is seen'):
        train_rivals(nobody, LEVELS, FEW)
