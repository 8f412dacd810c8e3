"""Trains the fusion network on cached windows."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from mmedge_lab.training import TrainingError
from mmedge_lab.training.checkpoint import load_checkpoint
from mmedge_lab.training.epoch_training import (
    BFLOAT16,
    EpochTraining,
    Task,
    TrainingParameters,
    training_device,
)
from mmedge_lab.training.feature_cache import SHAPES
from mmedge_lab.training.fusion_loss import FusionLoss
from mmedge_lab.training.fusion_settings import FusionSettings
from mmedge_lab.training.networks.fusion_network import FusionBatch, FusionNetwork
from mmedge_lab.training.window_judging import Maps, judge
from mmedge_lab.training.window_set import (
    Window,
    WindowBatch,
    WindowSet,
    epoch_steps,
    window_batches,
)
from mmedge_ros.core.data_types import CAMERA, RADAR

_FORMAT = 1
_WARM_UP, _LARGEST_GRADIENT, _AVERAGED_STEPS = 60, 5.0, 200
# Rows of each flight and level that means and deviations of the channels are taken from.
_STATISTICS_ROWS = 4


def fusion_training(
    windows: WindowSet,
    settings: FusionSettings,
    checkpoint: Path,
    data: str,
    validation: WindowSet | None = None,
    judged: Sequence[Window] = (),
) -> EpochTraining:
    """Return the training of a fusion network.

    :param windows: to learn from
    :param judged: windows of ``validation`` on which the network is judged after each epoch
    :param data: digest of the cache
    :raises TrainingError: if there are no windows, or a checkpoint is damaged or of another
        training
    """
    if not windows.ends:
        raise TrainingError(
            'the flights hold not one window whose truth is known; look at them first'
        )
    device = training_device()
    torch.manual_seed(settings.seed)
    network = FusionNetwork(settings.without)
    network.set_statistics(*(channel_statistics(windows, k) for k in (CAMERA, RADAR)))
    network.to(device)
    loss_of = FusionLoss(device)

    def loss(batch: WindowBatch) -> Any:
        with torch.autocast(device, torch.bfloat16, enabled=settings.precision == BFLOAT16):
            maps = network(as_tensors(batch, device))
        return loss_of(maps.float(), batch)

    def worth(average: Any) -> float:
        assert validation is not None
        fused, _ = judge(validation, judged, lambda batch: run_network(average, batch, device))
        return fused.best().worth

    return EpochTraining(
        Task(network, partial(window_batches, windows, settings), loss, worth if judged else None),
        TrainingParameters(
            settings.learning_rate,
            settings.weight_decay,
            _WARM_UP,
            _LARGEST_GRADIENT,
            _AVERAGED_STEPS,
            settings.epochs,
            epoch_steps(windows, settings),
        ),
        checkpoint,
        {'format': _FORMAT, 'data': data, 'settings': settings.plain()},
    )


def load_network(checkpoint: Path) -> Any:
    """Return the best network of a training that has ended, for judging.

    :raises TrainingError: if the checkpoint is damaged or none
    """
    content = load_checkpoint(checkpoint)
    try:
        network = FusionNetwork(content['settings']['without'])
        network.load_state_dict(content['best'] or content['average'])
    except (KeyError, TypeError, ValueError, RuntimeError) as err:
        raise TrainingError(f'{checkpoint} is of no fusion training ({str(err)[:200]})') from err
    return network.eval()


def as_tensors(batch: WindowBatch, device: str) -> FusionBatch:
    """Return a batch as the network takes it."""

    def tensor(values: Any) -> Any:
        return torch.from_numpy(values).to(device).float()

    return FusionBatch(*(tensor(values) for units in batch[:2] for values in units))


def run_network(network: Any, batch: WindowBatch, device: str = 'cpu') -> Maps:
    """Return the maps (B, 54, 30, 40) of a batch, without learning from it."""
    with torch.no_grad():
        maps = network(as_tensors(batch, device))
    return np.asarray(maps.float().cpu().numpy(), np.float32)


def channel_statistics(windows: WindowSet, modality: str) -> tuple[Any, Any]:
    """Return mean and standard deviation (C,) of the channels of a modality's grids."""
    channels = SHAPES[modality][0]
    count, total, squares = 0, np.zeros(channels), np.zeros(channels)
    for flight in windows.flights:
        for (kind, _), grids in flight.grids.items():
            if kind != modality or not len(grids):
                continue
            step = max(1, len(grids) // _STATISTICS_ROWS)
            rows = grids[step // 2 :: step].astype(np.float64)
            count += rows.size // channels
            total += rows.sum(axis=(0, 2, 3))
            squares += np.square(rows).sum(axis=(0, 2, 3))
    mean = total / max(count, 1)
    deviation = np.sqrt(np.maximum(squares / max(count, 1) - mean**2, 0.0))
    return torch.from_numpy(mean).float(), torch.from_numpy(deviation).float()
