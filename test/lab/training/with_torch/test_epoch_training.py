"""The loop that trains every network: it repeats itself, goes on where it was, keeps the best."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from mmedge_lab.training import TrainingError
from mmedge_lab.training.epoch_training import EpochTraining, Task, TrainingParameters

STEPS = 5
PARAMETERS = TrainingParameters(0.05, 0.01, 1, 1.0, 4, epochs=4, steps=STEPS)


def batches(epoch: int) -> Iterator[torch.Tensor]:
    generator = torch.Generator().manual_seed(epoch)
    return (torch.randn((8, 3), generator=generator) for _ in range(STEPS))


def training_of(
    checkpoint: Path | None = None,
    parameters: TrainingParameters = PARAMETERS,
    scale: float = 1.0,
    worths: list[float] | None = None,
    seed: int = 0,
) -> EpochTraining:
    torch.manual_seed(seed)
    network = torch.nn.Linear(3, 1)

    def loss(batch: torch.Tensor) -> torch.Tensor:
        return scale * (network(batch)[:, 0] - batch.sum(dim=1)).square().mean()

    judge = None if worths is None else (lambda _: worths.pop(0))
    identity = {'settings': {'seed': seed}}
    return EpochTraining(Task(network, batches, loss, judge), parameters, checkpoint, identity)


def trained(*arguments: object, **more: object) -> EpochTraining:
    training = training_of(*arguments, **more)  # type: ignore[arg-type]
    training.run()
    return training


def weights(training: EpochTraining) -> list[float]:
    return [v for p in training.network.parameters() for v in p.flatten().tolist()]


def test_it_learns_and_the_same_seed_gives_the_same_network() -> None:
    one, again, other = trained(), trained(), trained(seed=1)
    assert one.losses[-1] < 0.5 * one.losses[0]
    assert weights(one) == weights(again) != weights(other)


class StoppedError(Exception):
    """Ends a training in the middle of an epoch."""


def test_a_training_that_was_cut_short_ends_as_if_nothing_had_happened(tmp_path: Path) -> None:
    def stop(share: float, words: str) -> None:
        if share > 0.6:
            raise StoppedError

    place = tmp_path / 'c.pt'
    with pytest.raises(StoppedError):
        training_of(place).run(stop)
    resumed = training_of(place)
    assert resumed.epoch == 2
    said: list[str] = []
    resumed.run(lambda _, words: said.append(words))
    assert said[0].startswith('epoch 3 of 4')
    assert weights(resumed) == weights(trained())
    with pytest.raises(TrainingError, match=r'other settings: seed 0, not 1'):
        training_of(place, seed=1)
    place.write_bytes(place.read_bytes()[:200])
    with pytest.raises(TrainingError, match='cannot be read'):
        training_of(place)


def test_the_best_network_is_kept_also_over_a_break(tmp_path: Path) -> None:
    shorter = trained(parameters=PARAMETERS._replace(epochs=2, held=2))
    judged = trained(
        tmp_path / 'c.pt', PARAMETERS._replace(held=2), worths=[0.1, 0.5, 0.4, float('nan')]
    )
    assert judged.best_epoch == 2
    assert weights(judged) == pytest.approx(weights(shorter), abs=1e-6)
    assert training_of(tmp_path / 'c.pt', worths=[]).best_epoch == 2


def test_a_loss_without_bound_ends_the_training() -> None:
    with pytest.raises(TrainingError, match='the training has diverged'):
        trained(scale=float('inf'))
