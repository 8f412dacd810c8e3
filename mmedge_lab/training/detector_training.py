"""Trains a detector on a set of pictures, and opens those that were trained."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from mmedge_lab.training import TrainingError
from mmedge_lab.training.augmentation import Augmentation
from mmedge_lab.training.batches import Batch, BatchSource
from mmedge_lab.training.checkpoint import load_checkpoint, work_beside
from mmedge_lab.training.detector_loss import DetectorLoss
from mmedge_lab.training.epoch_training import (
    BFLOAT16,
    FLOAT32,
    EpochTraining,
    TrainingParameters,
    prepare_torch,
    usual_threads,
)
from mmedge_lab.training.picture_set import CLASSES, PictureSet
from mmedge_ros.encoding.bundle.weights import sha256_of
from mmedge_ros.encoding.ultralytics_network import new_network

CHECKPOINT = 'checkpoint.pt'
_FORMAT = 2
_WARM_UP, _LARGEST_GRADIENT, _AVERAGED_STEPS = 100, 10.0, 1000
# How long a training is matters only from where its learning rate begins to fall.
_LENGTH = ('epochs', 'plain_epochs')
_LOADERS = 12  # threads that feed a GPU
# Depth, width and greatest number of channels of a YOLO26, by width: 0.34 M parameters take
# 8 ms for a picture of 640 x 480 px on one core, as long as YOLOX-nano; 1.0 M take 15 ms.
# The wide one sees pictures in one size only, the narrow one also at two thirds of it.
_SMALLEST = {'narrow': 0.55, 'wide': 0.7}
SCALES = {'narrow': (0.33, 0.125, 512), 'wide': (0.5, 0.1875, 768)}


@dataclass(frozen=True)
class DetectorSettings:
    """Two trainings with equal settings on one machine give the same network.

    ``size`` is width and height of the detector's input. It is trained on parts of pictures of
    the size ``crop``: a third of the work, and nothing in them is smaller. About so many
    ``pictures`` are taken from flights. ``plain_epochs`` at the end do without mosaics, so that
    the last the network sees looks like what it will see, and the learning rate falls in them;
    until then a training can still be made longer. ``threads`` is part of it
    because sums depend on their order. ``precision`` is that of convolutions and what lies
    between them; weights, normalisation statistics and losses are float32 in any case.
    ``begun_with`` is the digest of the checkpoint whose network it begins with, if any.
    """

    level: str = 'small'
    width: str = 'narrow'
    size: tuple[int, int] = (640, 480)
    crop: tuple[int, int] = (320, 256)
    pictures: int = 3600
    epochs: int = 16
    plain_epochs: int = 5
    batch: int = 16
    seed: int = 0
    learning_rate: float = 2e-3
    weight_decay: float = 5e-4
    threads: int = 2
    precision: str = FLOAT32
    begun_with: str = ''
    augmentation: Augmentation = field(default_factory=Augmentation)

    def plain(self) -> dict[str, Any]:
        """Return plain values, as a checkpoint and a manifest hold them."""
        values = asdict(self)
        return {**values, 'size': list(self.size), 'crop': list(self.crop)}


def detector_settings(
    *,
    epochs: int,
    seed: int,
    pictures: int,
    threads: int,
    width: str = 'narrow',
    precision: str = FLOAT32,
    batch: int = DetectorSettings.batch,
) -> DetectorSettings:
    """Return settings that differ from the usual ones in what a user decides.

    :param threads: see `usual_threads`
    :param width: one of `SCALES`
    :param batch: pictures in a step; the learning rate grows with its square root
    """
    level = {'narrow': 'small', 'wide': 'large'}[width]
    usual = DetectorSettings()
    plain = max(1, round(usual.plain_epochs / usual.epochs * epochs))
    return replace(
        usual,
        level=level,
        width=width,
        seed=seed,
        pictures=pictures,
        epochs=epochs,
        plain_epochs=plain,
        batch=batch,
        learning_rate=usual.learning_rate * math.sqrt(batch / usual.batch),
        threads=usual_threads(threads),
        precision=precision,
        augmentation=Augmentation(smallest=_SMALLEST[width]),
    )


class DetectorTraining(EpochTraining):
    """The training of a detector.

    :param folder: where checkpoints are kept
    :param start: what ``settings.begun_with`` names: a trained network of the same width
    :raises TrainingError: if a checkpoint there is damaged or of another training
    """

    def __init__(
        self,
        pictures: PictureSet,
        settings: DetectorSettings,
        folder: Path,
        start: TrainedDetector | None = None,
    ) -> None:
        self._settings = settings
        self._torch = torch = prepare_torch(folder, settings.threads)
        self.device = 'cuda' if torch.cuda.is_available() else 'cpu'
        torch.manual_seed(settings.seed)
        network = new_network(CLASSES, SCALES[settings.width]).to(self.device)
        if start is not None:
            network.load_state_dict(start.network.state_dict())
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
            _LOADERS if self.device == 'cuda' else 1,
        )
        parameters = TrainingParameters(
            settings.learning_rate,
            settings.weight_decay,
            _WARM_UP,
            _LARGEST_GRADIENT,
            _AVERAGED_STEPS,
            settings.epochs,
            len(self._source),
            settings.epochs - settings.plain_epochs,
        )
        plain = settings.plain()
        self._length = {name: plain.pop(name) for name in _LENGTH}
        self._length['of_pictures'] = len(pictures)
        facts = {'pictures': pictures.digest, 'settings': plain}
        super().__init__(network, parameters, folder / CHECKPOINT, {'format': _FORMAT, **facts})
        self._loss = DetectorLoss(network, settings.crop, len(CLASSES))

    @property
    def network(self) -> Any:
        """The network so far: the average over the last steps."""
        return self._average

    def _state(self) -> dict[str, Any]:
        return {**super()._state(), 'length': self._length}

    def _restore(self, content: dict[str, Any]) -> None:
        super()._restore(content)
        lengths = [self._length, dict(content['length'])]
        falls = min(int(length['epochs']) - int(length['plain_epochs']) for length in lengths)
        if lengths[0] != lengths[1] and self.epoch > falls:
            raise TrainingError(
                f'this training has come to epoch {self.epoch} of {lengths[1]["epochs"]} with '
                f'{lengths[1]["of_pictures"]} pictures and can no longer have '
                f'{lengths[0]["epochs"]} with {lengths[0]["of_pictures"]}: its learning rate '
                f'falls from epoch {falls} on; go on with the same numbers'
            )

    def _batches(self, epoch: int) -> Iterator[Batch]:
        last_with_mosaics = self._settings.epochs - self._settings.plain_epochs
        return self._source.epoch(epoch, mosaic=epoch < last_with_mosaics)

    def _loss_of(self, batch: Batch) -> Any:
        torch = self._torch
        pictures = torch.from_numpy(batch.pictures).to(self.device).float() / 255.0
        if self._half:
            pictures = pictures.contiguous(memory_format=torch.channels_last)
        with torch.autocast(self.device, torch.bfloat16, enabled=self._half):
            output = self._learning(pictures)
        return self._loss(_as_float32(output), batch)


def _as_float32(output: Any) -> Any:
    """Return the tensors of a network's output, lists and all, as float32."""
    if isinstance(output, dict):
        return {name: _as_float32(value) for name, value in output.items()}
    if isinstance(output, list | tuple):
        return [_as_float32(value) for value in output]
    return output.float()


class TrainedDetector(NamedTuple):
    """A trained network in evaluation mode; ``digest`` is that of its checkpoint."""

    network: Any
    digest: str
    settings: dict[str, Any]
    epoch: int


def checkpoint_of(place: Path) -> Path:
    """Return the checkpoint of a detector.

    :param place: a checkpoint, the work folder of a training, or the bundle beside which it is
    :raises TrainingError: if there is none
    """
    places = (place / CHECKPOINT, work_beside(place.absolute()) / CHECKPOINT)
    matches = [place] if place.is_file() else [path for path in places if path.is_file()]
    if not matches:
        raise TrainingError(
            f'{place} holds no {CHECKPOINT}; name the work folder that `mmedge lab train detector '
            '--keep-work` leaves beside its bundle'
        )
    return matches[0]


def load_detector(place: Path, width: str) -> TrainedDetector:
    """Open the averaged network of a detector's training; torch must be prepared.

    :param place: see `checkpoint_of`
    :param width: narrow or wide: what it must be
    :raises TrainingError: if it is none, damaged, or of another width
    """
    path = checkpoint_of(place)
    content = load_checkpoint(path)
    settings = content.get('settings')
    if not isinstance(settings, dict) or 'average' not in content:
        raise TrainingError(
            f'{path} is no checkpoint of a detector; name one of `mmedge lab train detector`'
        )
    actual = str(settings.get('width'))[:20]
    if actual != width:
        raise TrainingError(
            f'{path} is a {actual!r} detector and was given as --{width}; train one with '
            f'`mmedge lab train detector --width {width} --keep-work`'
        )
    network = new_network(CLASSES, SCALES[width])
    try:
        network.load_state_dict(content['average'])
        epoch = int(content['epoch'])
    except (KeyError, RuntimeError, TypeError, ValueError) as err:
        raise TrainingError(
            f'{path} is damaged or of another version ({str(err)[:200]}); train it anew'
        ) from err
    settings = {**settings, **dict(content.get('length', {}))}
    return TrainedDetector(network.float().eval(), sha256_of(path), settings, epoch)
