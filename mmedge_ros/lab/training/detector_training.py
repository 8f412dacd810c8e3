"""Trains a detector on a set of pictures: repeatable, and resumable after any end."""

from __future__ import annotations

import os
import warnings
from pathlib import Path
from typing import Any

from mmedge_ros.encoding.ultralytics_network import import_libraries, new_network
from mmedge_ros.lab.training.batches import Batch, BatchSource
from mmedge_ros.lab.training.checkpoint import resume, save_checkpoint
from mmedge_ros.lab.training.detector_loss import DetectorLoss
from mmedge_ros.lab.training.detector_settings import (
    BFLOAT16,
    FLOAT32,
    SCALES,
    DetectorSettings,
)
from mmedge_ros.lab.training.gradient_descent import (
    DescentParameters,
    EpochProgress,
    GradientDescent,
    Progress,
)
from mmedge_ros.lab.training.picture_set import CLASSES, PictureSet

CHECKPOINT = 'checkpoint.pt'
_FORMAT = 1
_WARM_UP, _LARGEST_GRADIENT, _AVERAGED_STEPS = 100, 10.0, 300


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
        network = new_network(CLASSES, SCALES[settings.width]).to(self.device)
        self._half = settings.precision == BFLOAT16
        if self._half:
            network.to(memory_format=torch.channels_last)
        self._source = BatchSource(
            pictures,
            settings.size,
            settings.crop,
            min(settings.batch, len(pictures)),
            settings.seed,
            settings.augmentation,
        )
        self._descent = GradientDescent(
            network,
            DescentParameters(
                settings.learning_rate,
                settings.weight_decay,
                _WARM_UP,
                _LARGEST_GRADIENT,
                _AVERAGED_STEPS,
            ),
            settings.epochs * len(self._source),
        )
        self._loss = DetectorLoss(network, settings.crop, len(CLASSES))
        self.epoch = 0
        self.losses: list[float] = []
        if self._checkpoint.is_file():
            resume(self._checkpoint, self._identity(), self._restore)

    @property
    def network(self) -> Any:
        """The network so far: the average over the last steps."""
        return self._descent.average

    def run(self, on_progress: Progress | None = None) -> None:
        """Train to the end, with a checkpoint after each epoch.

        :raises TrainingError: if a picture cannot be read, or the loss grows without bound
        :raises OSError: if a checkpoint cannot be written; the one before is kept
        """
        settings, steps = self._settings, len(self._source)
        progress = EpochProgress(self.epoch, settings.epochs, steps, on_progress)
        for epoch in range(self.epoch, settings.epochs):
            mosaic = epoch < settings.epochs - settings.plain_epochs
            total = 0.0
            for place, batch in enumerate(self._source.epoch(epoch, mosaic)):
                total += self._step(batch, epoch * steps + place)
                progress.tell(epoch, place + 1, total / (place + 1))
            self.losses.append(total / steps)
            self.epoch = epoch + 1
            save_checkpoint(self._checkpoint, self._state())

    def _step(self, batch: Batch, step: int) -> float:
        torch = self._torch
        pictures = torch.from_numpy(batch.pictures).to(self.device).float() / 255.0
        if self._half:
            pictures = pictures.contiguous(memory_format=torch.channels_last)

        def loss() -> Any:
            with torch.autocast(self.device, torch.bfloat16, enabled=self._half):
                output = self._descent.network(pictures)
            return self._loss(_as_float32(output), batch)

        return self._descent.take(step, loss)

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
            **self._descent.state(),
        }

    def _restore(self, content: dict[str, Any]) -> None:
        self._descent.restore(content)
        self.epoch, self.losses = int(content['epoch']), list(content['losses'])


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
