"""Trains the fusion network on cached windows: repeatable, and resumable after any end."""

from __future__ import annotations

import copy
import math
from pathlib import Path
from typing import Any

import numpy as np
import torch

from mmedge_ros.data_types import CAMERA, RADAR
from mmedge_ros.lab.training import TrainingError
from mmedge_ros.lab.training.checkpoint import resume, save_checkpoint
from mmedge_ros.lab.training.detector_settings import BFLOAT16
from mmedge_ros.lab.training.feature_cache import SHAPES
from mmedge_ros.lab.training.fusion_loss import FusionLoss
from mmedge_ros.lab.training.fusion_settings import (
    AGGREGATION,
    DIFFERENCES,
    SHIFT,
    FusionSettings,
)
from mmedge_ros.lab.training.gradient_descent import (
    DescentParameters,
    EpochProgress,
    GradientDescent,
    Progress,
)
from mmedge_ros.lab.training.networks.fusion_network import (
    FusionBatch,
    FusionNetwork,
    FusionNetworkSettings,
)
from mmedge_ros.lab.training.window_batches import WindowBatch, WindowSource
from mmedge_ros.lab.training.window_judging import Maps, judge
from mmedge_ros.lab.training.window_set import Window, WindowSet

_FORMAT = 1
_WARM_UP, _LARGEST_GRADIENT, _AVERAGED_STEPS = 60, 5.0, 200
# Rows of each flight and level that means and deviations of the channels are taken from.
_STATISTICS_ROWS = 4


class FusionTraining:
    """One training, from its first step or from its last checkpoint on.

    :param windows: to learn from
    :param judged: windows of ``validation`` on which the network is judged after each epoch;
        the best one is kept. Without them that of the last epoch is.
    :param data: digest of the cache
    :param checkpoint: file that is written after each epoch
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
        self._settings, self._data = settings, data
        self._checkpoint = checkpoint
        self._validation, self._judged = validation, judged
        self._source = WindowSource(windows, settings)
        if not windows.ends or not len(self._source):
            raise TrainingError(
                'the flights hold not one window whose truth is known; look at them first'
            )
        self.device = 'cuda' if torch.cuda.is_available() else 'cpu'
        torch.manual_seed(settings.seed)
        network = FusionNetwork(network_settings(settings))
        network.set_statistics(*(channel_statistics(windows, k) for k in (CAMERA, RADAR)))
        self._descent = GradientDescent(
            network.to(self.device),
            DescentParameters(
                settings.learning_rate,
                settings.weight_decay,
                _WARM_UP,
                _LARGEST_GRADIENT,
                _AVERAGED_STEPS,
            ),
            settings.epochs * len(self._source),
        )
        self._best: dict[str, Any] | None = None
        self._loss = FusionLoss(self.device)
        self.epoch = 0
        self.losses: list[float] = []
        self.figures: list[float] = []
        if self._checkpoint.is_file():
            resume(self._checkpoint, self._identity(), self._restore)

    @property
    def network(self) -> Any:
        """The best network so far: an average over steps, on the CPU."""
        network = copy.deepcopy(self._descent.average).cpu()
        if self._best is not None:
            network.load_state_dict(self._best)
        return network.eval()

    def run(self, on_progress: Progress | None = None) -> None:
        """Train to the end, with a judgement and a checkpoint after each epoch.

        :raises TrainingError: if the loss grows without bound
        :raises OSError: if a checkpoint cannot be written; the one before is kept
        """
        epochs, steps = self._settings.epochs, len(self._source)
        progress = EpochProgress(self.epoch, epochs, steps, on_progress)
        for epoch in range(self.epoch, epochs):
            total = 0.0
            for place, batch in enumerate(self._source.epoch(epoch)):
                total += self._step(batch, epoch * steps + place)
                progress.tell(epoch, place + 1, total / (place + 1))
            self.losses.append(total / steps)
            self.epoch = epoch + 1
            self._keep_best()
            save_checkpoint(self._checkpoint, self._state())

    def facts(self) -> dict[str, Any]:
        """Return how the training went: the loss and, where it was judged, the worth by epoch."""
        facts: dict[str, Any] = {'losses': [round(loss, 4) for loss in self.losses]}
        if self.figures:
            facts['worth'] = [round(figure, 4) for figure in self.figures]
            facts['best_epoch'] = 1 + self._best_epoch
        return facts

    @property
    def _best_epoch(self) -> int:
        """The last of those that are as good as any."""
        return max(range(len(self.figures)), key=lambda k: (self.figures[k], k))

    def maps(self, batch: WindowBatch) -> Maps:
        """Return what the averaged network says of a batch."""
        return run_network(self._descent.average, batch, self.device)

    def _step(self, batch: WindowBatch, step: int) -> float:
        half = self._settings.precision == BFLOAT16

        def loss() -> Any:
            with torch.autocast(self.device, torch.bfloat16, enabled=half):
                maps = self._descent.network(as_tensors(batch, self.device))
            return self._loss(maps.float(), batch)

        return self._descent.take(step, loss)

    def _keep_best(self) -> None:
        if self._validation is None or not self._judged:
            return
        fused, _ = judge(self._validation, self._judged, self.maps)
        worth = fused.best().worth
        self.figures.append(worth if math.isfinite(worth) else 0.0)
        if self.figures[-1] >= max(self.figures):
            state = self._descent.average.state_dict()
            self._best = {name: value.detach().cpu().clone() for name, value in state.items()}

    def _identity(self) -> dict[str, Any]:
        return {'format': _FORMAT, 'data': self._data, 'settings': self._settings.plain()}

    def _state(self) -> dict[str, Any]:
        return {
            **self._identity(),
            'epoch': self.epoch,
            'losses': self.losses,
            'figures': self.figures,
            'best': self._best,
            **self._descent.state(),
        }

    def _restore(self, content: dict[str, Any]) -> None:
        self._descent.restore(content)
        self._best = content['best']
        self.epoch, self.losses = int(content['epoch']), list(content['losses'])
        self.figures = list(content['figures'])


def network_settings(settings: FusionSettings) -> FusionNetworkSettings:
    """Return what makes the network that a training is for."""
    return FusionNetworkSettings(
        shift=SHIFT not in settings.without,
        differences=DIFFERENCES not in settings.without,
        aggregation=AGGREGATION not in settings.without,
        whole_window=settings.whole_window,
        window=settings.window,
    )


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
