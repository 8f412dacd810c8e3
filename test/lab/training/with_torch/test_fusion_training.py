"""Training the fusion network on features made by hand: it learns, repeats itself and resumes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from hand_made_features import hand_made_flight

from mmedge_lab.training.fusion_settings import FusionSettings
from mmedge_lab.training.fusion_training import fusion_training, run_network
from mmedge_lab.training.window_judging import judge
from mmedge_lab.training.window_set import Window, WindowConfiguration, WindowSet

SLOW = (10.0, 10.0)
TINY = FusionSettings(epochs=2, batch=4, seed=3, threads=1, thinning=1)


@pytest.fixture(scope='module', autouse=True)
def repeatable() -> None:
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)


@pytest.fixture(scope='module')
def windows() -> WindowSet:
    return WindowSet([hand_made_flight(0, 0.9, rates=SLOW)], 0.5, 0.1)


@pytest.fixture(scope='module')
def validation() -> WindowSet:
    return WindowSet([hand_made_flight(7, 0.9, rates=SLOW)], 0.5, 0.1)


def chosen(validation: WindowSet) -> tuple[Window, ...]:
    return tuple(validation.at(*place, WindowConfiguration()) for place in validation.ends)


def test_it_learns_boxes_and_ranges(
    windows: WindowSet, validation: WindowSet, tmp_path: Path
) -> None:
    settings = replace(TINY, epochs=25, learning_rate=4e-3)
    training = fusion_training(
        windows, settings, tmp_path / 'c.pt', 'data', validation, chosen(validation)[::3]
    )
    training.run()
    assert training.losses[-1] < 0.7 * training.losses[0]
    assert max(training.worths) > training.worths[0]
    network = training.network
    fused, alone = judge(validation, chosen(validation), lambda b: run_network(network, b))
    assert fused.best().worth > alone.best().worth
    assert fused.best().plain()['range_error'] < 0.15
    assert training.worths[training.best_epoch - 1] == max(training.worths)
