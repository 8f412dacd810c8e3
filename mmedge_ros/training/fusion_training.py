"""Trains the fusion network on cached windows: repeatable, and resumable after any end."""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from mmedge_ros.data_types import CAMERA, RADAR
from mmedge_ros.training.checkpoint import load_checkpoint, save_checkpoint
from mmedge_ros.training.detector_settings import BFLOAT16
from mmedge_ros.training.errors import TrainingError
from mmedge_ros.training.feature_cache import SHAPES
from mmedge_ros.training.fusion_loss import FusionLoss
from mmedge_ros.training.fusion_settings import (
    AGGREGATION,
    DIFFERENCES,
    SHIFT,
    FusionSettings,
)
from mmedge_ros.training.networks.fusion_network import (
    FusionBatch,
    FusionNetwork,
    FusionNetworkSettings,
)
from mmedge_ros.training.window_batches import WindowBatch, WindowSource
from mmedge_ros.training.window_judging import Maps, judge
from mmedge_ros.training.window_set import Window, WindowSet

_FORMAT = 1
_WARM_UP = 60  # steps
_LAST_RATE = 0.02  # share of the learning rate left at the end
_LARGEST_GRADIENT = 5.0
# The averaged network follows the last so many steps, fewer at the beginning.
_AVERAGED_STEPS = 200
# Rows of each flight and level that means and deviations of the channels are taken from.
_STATISTICS_ROWS = 4

Progress = Callable[[float, str], None]


class FusionTraining:
    """One training, from its first step or from its last checkpoint on.

    :param windows: to learn from
    :param judged: windows of ``validation`` on which the network is judged after each epoch;
        the best one is kept. Without them that of the last epoch is.
    :param data: digest of the cache
    :param checkpoint: file that is written after each epoch
    :raises TrainingError: if there are no windows, or a checkpoint is damaged or of another
        training
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
        self._network = FusionNetwork(network_settings(settings))
        self._network.set_statistics(*(channel_statistics(windows, k) for k in (CAMERA, RADAR)))
        self._network.to(self.device)
        self._average = copy.deepcopy(self._network).eval()
        self._best: dict[str, Any] | None = None
        self._optimizer = _optimizer(self._network, settings)
        self._loss = FusionLoss(self.device)
        self.epoch = 0
        self.losses: list[float] = []
        self.figures: list[float] = []
        if self._checkpoint.is_file():
            self._resume()

    @property
    def network(self) -> Any:
        """The best network so far: an average over steps, on the CPU."""
        network = copy.deepcopy(self._average).cpu()
        if self._best is not None:
            network.load_state_dict(self._best)
        return network.eval()

    def run(self, on_progress: Progress | None = None) -> None:
        """Train to the end, with a judgement and a checkpoint after each epoch.

        :raises TrainingError: if the loss grows without bound
        :raises OSError: if a checkpoint cannot be written; the one before is kept
        """
        settings, begun, first = self._settings, time.monotonic(), self.epoch
        for epoch in range(first, settings.epochs):
            total = 0.0
            for place, batch in enumerate(self._source.epoch(epoch)):
                total += self._step(batch, epoch * len(self._source) + place)
                if on_progress:
                    done = epoch + (place + 1) / len(self._source)
                    left = (time.monotonic() - begun) * (settings.epochs - done) / (done - first)
                    words = f'epoch {epoch + 1} of {settings.epochs}, loss '
                    words += f'{total / (place + 1):.3f}, {_duration(left)} left'
                    on_progress(done / settings.epochs, words)
            self.losses.append(total / len(self._source))
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
        return run_network(self._average, batch, self.device)

    def _step(self, batch: WindowBatch, step: int) -> float:
        for group in self._optimizer.param_groups:
            group['lr'] = self._settings.learning_rate * self._rate(step)
        self._network.train()
        self._optimizer.zero_grad(set_to_none=True)
        half = self._settings.precision == BFLOAT16
        with torch.autocast(self.device, torch.bfloat16, enabled=half):
            maps = self._network(as_tensors(batch, self.device))
        loss = self._loss(maps.float(), batch)
        value = float(loss.detach())
        if not math.isfinite(value):
            raise TrainingError(
                f'the loss is {value} at step {step}: the training has left all bounds; begin '
                'anew with another seed'
            )
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self._network.parameters(), _LARGEST_GRADIENT)
        self._optimizer.step()
        self._follow(step)
        return value

    def _rate(self, step: int) -> float:
        """Return the share of the learning rate: a short rise, then half a cosine down."""
        total = self._settings.epochs * len(self._source)
        rise = min(_WARM_UP, max(total // 10, 1))
        if step < rise:
            return (step + 1) / rise
        share = (step - rise) / max(total - rise, 1)
        return _LAST_RATE + (1.0 - _LAST_RATE) * 0.5 * (1.0 + math.cos(math.pi * share))

    def _follow(self, step: int) -> None:
        """Move the averaged network towards the trained one."""
        weight = 1.0 / min(2.0 + 0.1 * step, _AVERAGED_STEPS)
        trained = self._network.state_dict()
        with torch.no_grad():
            for name, value in self._average.state_dict().items():
                if value.dtype.is_floating_point:
                    value.lerp_(trained[name], weight)
                else:
                    value.copy_(trained[name])

    def _keep_best(self) -> None:
        if self._validation is None or not self._judged:
            return
        fused, _ = judge(self._validation, self._judged, self.maps)
        worth = fused.best().worth
        self.figures.append(worth if math.isfinite(worth) else 0.0)
        if self.figures[-1] >= max(self.figures):
            state = self._average.state_dict()
            self._best = {name: value.detach().cpu().clone() for name, value in state.items()}

    def _identity(self) -> dict[str, Any]:
        return {'format': _FORMAT, 'data': self._data, 'settings': self._settings.plain()}

    def _state(self) -> dict[str, Any]:
        return {
            **self._identity(),
            'epoch': self.epoch,
            'losses': self.losses,
            'figures': self.figures,
            'network': self._network.state_dict(),
            'average': self._average.state_dict(),
            'best': self._best,
            'optimizer': self._optimizer.state_dict(),
            'generator': torch.get_rng_state(),
        }

    def _resume(self) -> None:
        content = load_checkpoint(self._checkpoint)
        for name, wanted in self._identity().items():
            if content.get(name) != wanted:
                raise TrainingError(
                    f'{self._checkpoint} belongs to a training with other {name}: '
                    f'{_difference(content.get(name), wanted)}; go on as it was begun, or remove '
                    f'{self._checkpoint.parent} to begin anew'
                )
        try:
            self._network.load_state_dict(content['network'])
            self._average.load_state_dict(content['average'])
            self._best = content['best']
            self._optimizer.load_state_dict(content['optimizer'])
            torch.set_rng_state(content['generator'])
            self.epoch, self.losses = int(content['epoch']), list(content['losses'])
            self.figures = list(content['figures'])
        except (KeyError, RuntimeError, TypeError, ValueError) as err:
            raise TrainingError(
                f'{self._checkpoint} is damaged ({str(err)[:200]}); remove it to begin anew'
            ) from err


def network_settings(settings: FusionSettings) -> FusionNetworkSettings:
    """Return the switches of the network that a training is for."""
    return FusionNetworkSettings(
        shift=SHIFT not in settings.without,
        differences=DIFFERENCES not in settings.without,
        aggregation=AGGREGATION not in settings.without,
        whole_window=settings.whole_window,
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


def _optimizer(network: Any, settings: FusionSettings) -> Any:
    """AdamW; biases and decays are not pulled towards zero."""
    weights = [p for p in network.parameters() if p.ndim > 1]
    others = [p for p in network.parameters() if p.ndim <= 1]
    groups = [
        {'params': weights, 'weight_decay': settings.weight_decay},
        {'params': others, 'weight_decay': 0.0},
    ]
    return torch.optim.AdamW(groups, lr=settings.learning_rate, betas=(0.9, 0.999))


def _difference(found: Any, wanted: Any) -> str:
    if isinstance(found, dict) and isinstance(wanted, dict):
        other = [key for key in wanted if found.get(key) != wanted[key]]
        return ', '.join(f'{key} {found.get(key)!r}, not {wanted[key]!r}' for key in other[:4])
    return f'{str(found)[:20]}, not {str(wanted)[:20]}'


def _duration(seconds: float) -> str:
    return f'{seconds:.0f} s' if seconds < 90 else f'{seconds / 60:.0f} min'
