"""Training the fusion network on features made by hand: it learns, repeats itself and resumes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from hand_made_features import hand_made_flight

from mmedge_lab.training.epoch_training import EpochTraining
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


def trained(
    windows: WindowSet, checkpoint: Path, settings: FusionSettings = TINY
) -> EpochTraining:
    training = fusion_training(windows, settings, checkpoint, 'data')
    training.run()
    return training


@pytest.fixture(scope='module')
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """That of `whole`."""
    return tmp_path_factory.mktemp('whole') / 'c.pt'


@pytest.fixture(scope='module')
def whole(windows: WindowSet, checkpoint: Path) -> EpochTraining:
    """A training that nothing disturbed."""
    return trained(windows, checkpoint)


def assert_equal(one: EpochTraining, two: EpochTraining) -> None:
    assert one.losses == two.losses
    for name, value in one.network.state_dict().items():
        assert torch.equal(value, two.network.state_dict()[name]), name


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


def test_the_same_seed_gives_the_same_network_and_another_one_another(
    whole: EpochTraining, windows: WindowSet, tmp_path: Path
) -> None:
    assert_equal(whole, trained(windows, tmp_path / 'again.pt'))
    assert trained(windows, tmp_path / 'other.pt', replace(TINY, seed=4)).losses != whole.losses


class StoppedError(Exception):
    """Ends a training in the middle of an epoch."""


def test_a_training_that_was_cut_short_ends_as_if_nothing_had_happened(
    whole: EpochTraining, windows: WindowSet, tmp_path: Path
) -> None:
    def stop(share: float, words: str) -> None:
        if share > 0.6:
            raise StoppedError

    with pytest.raises(StoppedError):
        fusion_training(windows, TINY, tmp_path / 'cut.pt', 'data').run(stop)
    resumed = fusion_training(windows, TINY, tmp_path / 'cut.pt', 'data')
    assert resumed.epoch == 1
    resumed.run()
    assert_equal(whole, resumed)
