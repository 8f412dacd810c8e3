"""Trains a detector on a set of pictures: repeatable, and resumable after any end."""

from __future__ import annotations

import copy
import math
import os
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mmedge_ros.encoding.ultralytics_network import import_libraries, new_network
from mmedge_ros.training.batches import Batch, BatchSource
from mmedge_ros.training.checkpoint import load_checkpoint, save_checkpoint
from mmedge_ros.training.detector_loss import DetectorLoss
from mmedge_ros.training.detector_settings import (
    BFLOAT16,
    FLOAT32,
    SCALES,
    DetectorSettings,
)
from mmedge_ros.training.errors import TrainingError
from mmedge_ros.training.picture_set import CLASSES, PictureSet

CHECKPOINT = 'checkpoint.pt'
_FORMAT = 1
_WARM_UP = 100  # steps
_LAST_RATE = 0.02  # share of the learning rate left at the end
_LARGEST_GRADIENT = 10.0
# The averaged network follows the last so many steps, fewer at the beginning.
_AVERAGED_STEPS = 300

Progress = Callable[[float, str], None]


def prepare_torch(folder: Path, threads: int) -> Any:
    """Import torch so that it repeats itself, and ultralytics so that it stays in a folder.

    :raises EncodingError: if a library is missing
    """
    # Read when the libraries are imported or first used.
    os.environ['OMP_NUM_THREADS'] = str(threads)
    # Threads that spin while they wait for each other make a shared machine 20 times slower.
    os.environ.setdefault('OMP_WAIT_POLICY', 'PASSIVE')
    os.environ['CUBLAS_WORKSPACE_CONFIG'] = ':4096:8'
    torch, _, _ = import_libraries(
        folder,
        'a training needs torch and ultralytics (licensed AGPL-3.0)',
        './mmedge train installs them beside this package',
    )
    torch.set_num_threads(threads)
    torch.set_flush_denormal(True)
    # Some operators on a GPU have no repeatable form: they warn, and are used all the same.
    torch.use_deterministic_algorithms(True, warn_only=torch.cuda.is_available())
    warnings.filterwarnings('ignore', message='.*deterministic', category=UserWarning)
    return torch


class DetectorTraining:
    """One training, from its first step or from its last checkpoint on.

    :param folder: where checkpoints are kept
    :raises TrainingError: if a checkpoint there is damaged or of another training
    """

    def __init__(self, pictures: PictureSet, settings: DetectorSettings, folder: Path) -> None:
        self._settings = settings
        self._pictures = pictures
        self._checkpoint = folder / CHECKPOINT
        self._torch = torch = prepare_torch(folder, settings.threads)
        self.device = 'cuda' if torch.cuda.is_available() else 'cpu'
        torch.manual_seed(settings.seed)
        self._network = new_network(CLASSES, SCALES[settings.width]).to(self.device)
        self._half = settings.precision == BFLOAT16
        if self._half:
            self._network.to(memory_format=torch.channels_last)
        self._average = copy.deepcopy(self._network).eval()
        self._optimizer = _optimizer(torch, self._network, settings)
        self._source = BatchSource(
            pictures,
            settings.size,
            settings.crop,
            min(settings.batch, len(pictures)),
            settings.seed,
            settings.augmentation,
        )
        self._loss = DetectorLoss(self._network, settings.crop, len(CLASSES))
        self.epoch = 0
        self.losses: list[float] = []
        if self._checkpoint.is_file():
            self._resume()

    @property
    def network(self) -> Any:
        """The network so far: the average over the last steps."""
        return self._average

    def run(self, on_progress: Progress | None = None) -> None:
        """Train to the end, with a checkpoint after each epoch.

        :raises TrainingError: if a picture cannot be read, or the loss grows without bound
        :raises OSError: if a checkpoint cannot be written; the one before is kept
        """
        settings, begun, first = self._settings, time.monotonic(), self.epoch
        for epoch in range(first, settings.epochs):
            mosaic = epoch < settings.epochs - settings.plain_epochs
            total = 0.0
            for place, batch in enumerate(self._source.epoch(epoch, mosaic)):
                total += self._step(batch, epoch * len(self._source) + place)
                if on_progress:
                    done = epoch + (place + 1) / len(self._source)
                    elapsed = time.monotonic() - begun
                    left = elapsed * (settings.epochs - done) / (done - first)
                    words = f'epoch {epoch + 1} of {settings.epochs}, loss '
                    words += f'{total / (place + 1):.2f}, {_duration(left)} left'
                    on_progress(done / settings.epochs, words)
            self.losses.append(total / len(self._source))
            self.epoch = epoch + 1
            save_checkpoint(self._checkpoint, self._state())

    def _step(self, batch: Batch, step: int) -> float:
        torch = self._torch
        pictures = torch.from_numpy(batch.pictures).to(self.device).float() / 255.0
        if self._half:
            pictures = pictures.contiguous(memory_format=torch.channels_last)
        for group in self._optimizer.param_groups:
            group['lr'] = self._settings.learning_rate * self._rate(step)
        self._network.train()
        self._optimizer.zero_grad(set_to_none=True)
        with torch.autocast(self.device, torch.bfloat16, enabled=self._half):
            output = self._network(pictures)
        loss = self._loss(_as_float32(output), batch)
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
        with self._torch.no_grad():
            for name, value in self._average.state_dict().items():
                if value.dtype.is_floating_point:
                    value.lerp_(trained[name], weight)
                else:
                    value.copy_(trained[name])

    def _identity(self) -> dict[str, Any]:
        return {
            'format': _FORMAT,
            'pictures': self._pictures.digest,
            'settings': self._settings.plain(),
        }

    def _state(self) -> dict[str, Any]:
        return {
            **self._identity(),
            'epoch': self.epoch,
            'losses': self.losses,
            'network': self._network.state_dict(),
            'average': self._average.state_dict(),
            'optimizer': self._optimizer.state_dict(),
            'generator': self._torch.get_rng_state(),
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
            self._optimizer.load_state_dict(content['optimizer'])
            self._torch.set_rng_state(content['generator'])
            self.epoch, self.losses = int(content['epoch']), list(content['losses'])
        except (KeyError, RuntimeError, TypeError, ValueError) as err:
            raise TrainingError(
                f'{self._checkpoint} is damaged ({str(err)[:200]}); remove it to begin anew'
            ) from err


def fastest_precision() -> str:
    """Return bfloat16 where the processor or GPU multiplies such matrices natively."""
    try:
        import torch
    except ImportError:
        return FLOAT32  # the training itself says what is missing
    if torch.cuda.is_available():
        return BFLOAT16 if torch.cuda.is_bf16_supported(including_emulation=False) else FLOAT32
    native = getattr(torch.cpu, '_is_amx_tile_supported', None)
    return BFLOAT16 if native is not None and native() else FLOAT32


def _as_float32(output: Any) -> Any:
    """Return the tensors of a network's output, lists and all, as float32."""
    if isinstance(output, dict):
        return {name: _as_float32(value) for name, value in output.items()}
    if isinstance(output, list | tuple):
        return [_as_float32(value) for value in output]
    return output.float()


def _optimizer(torch: Any, network: Any, settings: DetectorSettings) -> Any:
    """AdamW; biases and normalisations are not pulled towards zero."""
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
