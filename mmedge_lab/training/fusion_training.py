"""Trains the fusion network on cached windows."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch

from mmedge_lab.training import TrainingError
from mmedge_lab.training.checkpoint import load_checkpoint
from mmedge_lab.training.epoch_training import BFLOAT16, EpochTraining, TrainingParameters
from mmedge_lab.training.feature_cache import SHAPES
from mmedge_lab.training.fusion_loss import FusionLoss
from mmedge_lab.training.fusion_settings import FusionSettings
from mmedge_lab.training.networks.fusion_network import FusionBatch, FusionNetwork
from mmedge_lab.training.window_judging import Maps, judge
from mmedge_lab.training.window_set import Window, WindowBatch, WindowSet, WindowSource
from mmedge_ros.core.data_types import CAMERA, RADAR

_FORMAT = 1
_WARM_UP, _LARGEST_GRADIENT, _AVERAGED_STEPS = 60, 5.0, 200
# Rows of each flight and level that means and deviations of the channels are taken from.
_STATISTICS_ROWS = 4


class FusionTraining(EpochTraining):
    """The training of a fusion network.

    :param windows: to learn from
    :param judged: windows of ``validation`` on which the network is judged after each epoch;
        the best one is kept. Without them that of the last epoch is.
    :param data: digest of the cache
    :raises TrainingError: if there are no windows, the network is not for ones of that length,
        or a checkpoint is damaged or of another training
    """

    def __init__(
        self,
        windows: WindowSet,
        settings: FusionSettings,
        checkpoint: Path,
        data: str,
        validation: WindowSet | None = None,
        judged: tuple[Window, ...] = (),
    ) -> None:
        self._half = settings.precision == BFLOAT16
        self._validation, self._judged = validation, judged
        self._source = WindowSource(windows, settings)
        if not windows.ends or not len(self._source):
            raise TrainingError(
                'the flights hold not one window whose truth is known; look at them first'
            )
        self.device = 'cuda' if torch.cuda.is_available() else 'cpu'
        torch.manual_seed(settings.seed)
        network = FusionNetwork(settings.without)
        network.set_statistics(*(channel_statistics(windows, k) for k in (CAMERA, RADAR)))
        self._best: dict[str, Any] | None = None
        self.figures: list[float] = []
        self._loss = FusionLoss(self.device)
        parameters = TrainingParameters(
            settings.learning_rate,
            settings.weight_decay,
            _WARM_UP,
            _LARGEST_GRADIENT,
            _AVERAGED_STEPS,
            settings.epochs,
            len(self._source),
        )
        identity = {'format': _FORMAT, 'data': data, 'settings': settings.plain()}
        super().__init__(network.to(self.device), parameters, checkpoint, identity)

    @property
    def network(self) -> Any:
        """The best network so far: an average over steps, on the CPU."""
        network = copy.deepcopy(self._average).cpu()
        if self._best is not None:
            network.load_state_dict(self._best)
        return network.eval()

    def facts(self) -> dict[str, Any]:
        """Return how the training went: the loss and, where it was judged, the worth by epoch."""
        facts: dict[str, Any] = {'losses': [round(loss, 4) for loss in self.losses]}
        if self.figures:
            facts['worth'] = [round(figure, 4) for figure in self.figures]
            # The last of those that are as good as any.
            best = max(range(len(self.figures)), key=lambda k: (self.figures[k], k))
            facts['best_epoch'] = 1 + best
        return facts

    def _batches(self, epoch: int) -> Iterator[WindowBatch]:
        return self._source.epoch(epoch)

    def _loss_of(self, batch: WindowBatch) -> Any:
        with torch.autocast(self.device, torch.bfloat16, enabled=self._half):
            maps = self._learning(as_tensors(batch, self.device))
        return self._loss(maps.float(), batch)

    def _end_epoch(self) -> None:
        if self._validation is None or not self._judged:
            return
        fused, _ = judge(
            self._validation,
            self._judged,
            lambda batch: run_network(self._average, batch, self.device),
        )
        worth = fused.best().worth
        self.figures.append(worth if math.isfinite(worth) else 0.0)
        if self.figures[-1] >= max(self.figures):
            state = self._average.state_dict()
            self._best = {name: value.detach().cpu().clone() for name, value in state.items()}

    def _state(self) -> dict[str, Any]:
        return {**super()._state(), 'figures': self.figures, 'best': self._best}

    def _restore(self, content: dict[str, Any]) -> None:
        super()._restore(content)
        self._best, self.figures = content['best'], list(content['figures'])


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
