"""Trains a detector on a set of pictures, and makes bundles of trained ones.

Decision fusion needs no more than that; `mmedge lab train fusion` builds on what they hold.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mmedge_lab.simulation.flight_folder import flights_in
from mmedge_lab.training import Report, TrainingError, part_of
from mmedge_lab.training.augmentation import Augmentation, Batch, BatchSource
from mmedge_lab.training.bundle_files import (
    LICENCE,
    data_facts,
    domain_of,
    export_facts,
    file_entry,
    new_bundle,
    require_free,
    software_facts,
    write_manifest,
)
from mmedge_lab.training.checkpoint import (
    load_checkpoint,
    save_checkpoint,
    work_beside,
    work_folder,
)
from mmedge_lab.training.detector_evaluation import accuracy_by_set
from mmedge_lab.training.epoch_training import (
    BFLOAT16,
    FLOAT32,
    EpochTraining,
    Task,
    TrainingParameters,
    prepare_torch,
    training_device,
)
from mmedge_lab.training.fusion_settings import CAMERA_LEVELS, NARROW, VALIDATION, WIDE
from mmedge_lab.training.network_export import export_detector
from mmedge_lab.training.picture_set import PictureSet, open_pictures
from mmedge_lab.training.picture_sources import CLASSES, SOURCES
from mmedge_lab.training.teacher import Taught, Teacher
from mmedge_ros.adaptation.bundle_configurations import manifest_of
from mmedge_ros.encoding import EncodingError
from mmedge_ros.encoding.bundle.weights import sha256_of
from mmedge_ros.encoding.detection_heads import STRIDES
from mmedge_ros.encoding.ultralytics_network import detection_loss, new_network

CHECKPOINT = 'checkpoint.pt'
_FORMAT = 3
_WARM_UP, _LARGEST_GRADIENT, _AVERAGED_STEPS = 100, 10.0, 1000
_PLAIN_SHARE = 5 / 16
_LOADERS = 12  # threads that feed a GPU
# Boxes are learned from another detector where it gives at least this score, and weigh so much.
_LEAST_TAUGHT, _TAUGHT_BOXES = 0.2, 4.0
# Depth, width and greatest number of channels of a YOLO26, by width: 0.34 M parameters take
# 8 ms for a picture of 640 x 480 px on one core, as long as YOLOX-nano; 1.0 M take 15 ms.
SCALES = {'narrow': (0.33, 0.125, 512), 'wide': (0.5, 0.1875, 768)}
_LEVELS = {'narrow': 'small', 'wide': 'large'}
# The wide one sees pictures in one size only, the narrow one also at two thirds of it.
_SMALLEST = {'narrow': 0.55, 'wide': 0.7}
# Share of the progress shown.
_TRAINED = 0.95
_CHECKED_PICTURES = 16
DEFAULT_LEVEL = 'medium'


@dataclass(frozen=True)
class DetectorSettings:
    """Two trainings with equal settings on one machine give the same network.

    ``width`` is one of `SCALES`, ``size`` width and height of the detector's input. It is trained
    on parts of pictures of the size ``crop``: a third of the work, and nothing in them is smaller.
    The ``learning_rate`` is that of a batch of 16 and grows with the square root of ``batch``.
    ``threads`` is part of it because sums depend on their order. ``precision`` is that of
    convolutions and what lies between them; weights, normalisation statistics and losses are
    float32 in any case. ``begun_with`` is the digest of the checkpoint whose network it begins
    with, ``reminded_by`` that of the network whose answers to simulated pictures are learned
    beside the labels (Li and Hoiem, ECCV 2016), and ``taught_by`` that of the one whose answers to
    photos are, each '' if none.
    """

    width: str = 'narrow'
    size: tuple[int, int] = (640, 480)
    crop: tuple[int, int] = (320, 256)
    epochs: int = 16
    batch: int = 16
    seed: int = 0
    learning_rate: float = 2e-3
    weight_decay: float = 5e-4
    threads: int = 2
    precision: str = FLOAT32
    begun_with: str = ''
    reminded_by: str = ''
    taught_by: str = ''

    @property
    def level(self) -> str:
        """The level that the detector becomes in a bundle."""
        return _LEVELS[self.width]

    @property
    def plain_epochs(self) -> int:
        """Epochs at the end without mosaics, in which the learning rate falls.

        So the last the network sees looks like what it will see.
        """
        return max(1, round(_PLAIN_SHARE * self.epochs))

    @property
    def augmentation(self) -> Augmentation:
        """How much pictures are changed."""
        return Augmentation(smallest=_SMALLEST[self.width])

    def plain(self) -> dict[str, Any]:
        """Return plain values, as a checkpoint and a manifest hold them."""
        values = {**asdict(self), 'augmentation': asdict(self.augmentation)}
        return {**values, 'size': list(self.size), 'crop': list(self.crop)}


def detector_training(
    pictures: PictureSet,
    settings: DetectorSettings,
    folder: Path,
    start: TrainedDetector | None = None,
    teacher: Teacher | None = None,
    reminder: TrainedDetector | None = None,
) -> EpochTraining:
    """Return the training of a detector.

    :param folder: where checkpoints are kept
    :param start: what ``settings.begun_with`` names: a trained network of the same width
    :param teacher: what ``settings.taught_by`` names
    :param reminder: what ``settings.reminded_by`` names, a network of the same width
    :raises TrainingError: if a checkpoint there is damaged or of another training
    """
    torch = prepare_torch(folder, settings.threads)
    device = training_device()
    torch.manual_seed(settings.seed)
    network = new_network(CLASSES, SCALES[settings.width]).to(device)
    if start is not None:
        network.load_state_dict(start.network.state_dict())
    is_half = settings.precision == BFLOAT16
    if is_half:
        network.to(memory_format=torch.channels_last)
    held = settings.epochs - settings.plain_epochs
    source = BatchSource(
        pictures,
        settings.size,
        settings.crop,
        min(settings.batch, len(pictures)),
        settings.seed,
        settings.augmentation,
        _LOADERS if device == 'cuda' else 1,
        teacher,
    )
    loss_of = DetectorLoss(network, len(CLASSES))
    earlier = None if reminder is None else reminder.network.to(device)

    def loss(batch: Batch) -> Any:
        shown = torch.from_numpy(batch.pictures).to(device).float() / 255.0
        if is_half:
            shown = shown.contiguous(memory_format=torch.channels_last)
        with torch.autocast(device, torch.bfloat16, enabled=is_half):
            output = network(shown)
            if earlier is not None and batch.simulated.any():
                batch = reminded(batch, earlier, shown)
        return loss_of(_as_float32(output), batch)

    return EpochTraining(
        Task(network, lambda epoch: source.epoch(epoch, mosaic=epoch < held), loss),
        TrainingParameters(
            settings.learning_rate * math.sqrt(settings.batch / DetectorSettings.batch),
            settings.weight_decay,
            _WARM_UP,
            _LARGEST_GRADIENT,
            _AVERAGED_STEPS,
            settings.epochs,
            len(source),
            held,
        ),
        folder / CHECKPOINT,
        {'format': _FORMAT, 'pictures': pictures.digest, 'settings': settings.plain()},
    )


def reminded(batch: Batch, before: Any, shown: Any) -> Batch:
    """Add what an earlier network sees in simulated pictures to what is taught."""
    import torch

    places = np.flatnonzero(batch.simulated)
    with torch.no_grad():
        answer = before(shown[torch.from_numpy(places).to(shown.device)])
    cells = answer[0].float().transpose(1, 2).cpu().numpy()
    middles, halves, scores = cells[..., :2], cells[..., 2:4] / 2, cells[..., 4:]
    taught = batch.taught or Taught.nothing(len(batch.pictures), cells.shape[1])
    taught.scores[places] = scores
    taught.boxes[places] = np.concatenate((middles - halves, middles + halves), axis=2)
    return batch._replace(taught=taught)


def _as_float32(output: Any) -> Any:
    """Return the tensors of a network's output, lists and all, as float32."""
    if isinstance(output, dict):
        return {name: _as_float32(value) for name, value in output.items()}
    if isinstance(output, list | tuple):
        return [_as_float32(value) for value in output]
    return output.float()


class DetectorLoss:
    """ultralytics' loss, in which cells on ignored objects are not taught to be background.

    :param network: made by ``new_network``
    """

    def __init__(self, network: Any, classes: int) -> None:
        self._classes = classes
        self._weights: Any = None
        self._taught: Any = None
        self._loss = detection_loss(network, self._class_loss)

    def __call__(self, output: Any, batch: Batch) -> Any:
        """Return the loss of a batch, a scalar tensor, per picture."""
        import torch

        device = output['scores'].device
        count, size = len(batch.pictures), batch.pictures.shape[:1:-1]
        weights = cell_weights(batch.ignored, count, cell_middles(size), self._classes)
        self._taught, of_boxes = None, 0.0
        if batch.taught is not None:
            weights[~np.isnan(batch.taught.scores)] = 1.0
            self._taught = torch.from_numpy(np.nan_to_num(batch.taught.scores)).to(device)
            of_boxes = _TAUGHT_BOXES * self._box_loss(output, batch.taught, size)
        self._weights = torch.from_numpy(weights).to(device)
        targets = {
            'batch_idx': torch.from_numpy(batch.objects[:, 0].copy()),
            'cls': torch.from_numpy(batch.objects[:, 1:2].copy()),
            'bboxes': torch.from_numpy(_shares(batch.objects[:, 2:], size)),
        }
        return self._loss(output, targets)[0].sum() / count + of_boxes

    def _box_loss(self, output: Any, taught: Taught, size: tuple[int, int]) -> Any:
        """Return how much boxes miss those that are taught with scores that count: 0 to 1."""
        import torch

        scores = np.nan_to_num(taught.scores).max(axis=2)
        rows = np.nonzero(scores > _LEAST_TAUGHT)
        cells = cell_middles(size)[rows[1]]
        weights, middles, strides, wanted = (
            torch.from_numpy(values).to(output['boxes'].device)
            for values in (scores[rows], cells[:, :2], cells[:, 2:], taught.boxes[rows])
        )
        # Distances from the middle of the cell to the four sides, in cells.
        sides = output['boxes'].transpose(1, 2)[rows] * strides
        low, high = middles - sides[:, :2], middles + sides[:, 2:]
        shared = (high.minimum(wanted[:, 2:]) - low.maximum(wanted[:, :2])).clamp(min=0).prod(1)
        areas = (high - low).prod(1) + (wanted[:, 2:] - wanted[:, :2]).prod(1)
        overlap = shared / (areas - shared).clamp(min=1.0)
        return ((1.0 - overlap) * weights).sum() / weights.sum().clamp(min=1.0)

    def _class_loss(self, logits: Any, targets: Any) -> Any:
        from torch.nn.functional import binary_cross_entropy_with_logits

        if self._taught is not None:
            targets = targets.maximum(self._taught.to(targets.dtype))
        loss = binary_cross_entropy_with_logits(logits, targets, reduction='none')
        # A cell that an object to find was assigned to learns it, whatever else is there.
        return loss * self._weights.maximum((targets > 0.0).to(loss.dtype))


def cell_weights(
    ignored: NDArray[np.float32], count: int, grid: NDArray[np.float32], classes: int
) -> NDArray[np.float32]:
    """Return 0 for cells and classes of ignored objects and 1 else: (count, cells, classes).

    :param ignored: rows of picture, class, x0, y0, x1, y1 in px
    :param grid: rows of x, y, stride of each cell, see `cell_middles`
    """
    weights = np.ones((count, len(grid), classes), np.float32)
    x, y, half = grid[:, 0], grid[:, 1], grid[:, 2] / 2
    for picture, label, x0, y0, x1, y1 in ignored.tolist():
        # Half a cell more, or the smallest objects would lie between the middles of cells.
        inside = (x > x0 - half) & (x < x1 + half) & (y > y0 - half) & (y < y1 + half)
        weights[int(picture), inside, int(label)] = 0.0
    return weights


def cell_middles(size: tuple[int, int]) -> NDArray[np.float32]:
    """Return rows of x, y, stride for all cells, in the order the head puts them out."""
    parts = []
    for stride in STRIDES:
        y, x = np.mgrid[: size[1] // stride, : size[0] // stride]
        middles = [(axis.ravel() + 0.5) * stride for axis in (x, y)]
        parts.append(np.stack((*middles, np.full(x.size, stride)), axis=1))
    return np.concatenate(parts).astype(np.float32)


def _shares(boxes: NDArray[np.float32], size: tuple[int, int]) -> NDArray[np.float32]:
    """Turn corners in px into centre and size as shares of the picture."""
    scale = np.array(size, np.float32)
    low, high = boxes[:, :2] / scale, boxes[:, 2:] / scale
    return np.concatenate(((low + high) / 2, high - low), axis=1)


class TrainedDetector(NamedTuple):
    """A trained network in evaluation mode; ``digest`` is that of its checkpoint."""

    network: Any
    digest: str
    settings: dict[str, Any]
    epoch: int


def starting_point(place: Path, width: str) -> Path:
    """Return the file of a trained detector that other trainings begin with.

    :param place: that file, or the bundle that holds it
    :raises TrainingError: if there is none
    """
    path = place if place.is_file() else place / f'{width}.pt'
    if not path.is_file():
        raise TrainingError(
            f'{place} holds no {path.name}; name a bundle of `mmedge lab train detector --width '
            f'{width}`'
        )
    return path


def save_starting_point(path: Path, network: Any, settings: Mapping[str, Any], epoch: int) -> None:
    """Write what later trainings need of a network, at half precision.

    :raises OSError: if it cannot be written
    """
    state = network.state_dict().items()
    halved = {n: v.half() if v.dtype.is_floating_point else v for n, v in state}
    save_checkpoint(path, {'settings': dict(settings), 'epoch': epoch, 'average': halved})


def load_detector(place: Path, width: str) -> TrainedDetector:
    """Open a trained detector; torch must be prepared.

    :param place: see `starting_point`
    :param width: narrow or wide: what it must be
    :raises TrainingError: if it is none, damaged, or of another width
    """
    path = starting_point(place, width)
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
            f'`mmedge lab train detector --width {width}`'
        )
    network = new_network(CLASSES, SCALES[width])
    try:
        network.load_state_dict(content['average'])
        epoch = int(content['epoch'])
    except (KeyError, RuntimeError, TypeError, ValueError) as err:
        raise TrainingError(
            f'{path} is damaged or of another version ({str(err)[:200]}); train it anew'
        ) from err
    return TrainedDetector(network.float().eval(), sha256_of(path), settings, epoch)


def train_detector(
    places: Sequence[Path],
    out: Path,
    report: Report,
    *,
    validation: Path | None = None,
    settings: DetectorSettings | None = None,
    begin_with: Path | None = None,
    remind: Path | None = None,
    teacher: Path | None = None,
    attribution: str = '',
) -> dict[str, Any]:
    """Train, export, check, judge, and put the bundle in its place.

    :param places: of the pictures, see `picture_sources`
    :param validation: set of flights that judges the result
    :param begin_with: bundle of a detector of the same width, or its starting point
    :param remind: another such bundle, whose answers to simulated pictures are learned too
    :param teacher: YOLOX network as ONNX, whose answers to real colour pictures are learned too
    :param attribution: what the licences of the pictures ask to be said
    :return: the figures by set
    :raises TrainingError: when it cannot be done; after a full disk the checkpoints are kept
    :raises BagError: if a flight cannot be read
    :raises EncodingError: if a library is missing
    """
    settings = settings or DetectorSettings()
    require_free(out)
    pictures, judged = open_pictures(*places), _judged(validation)
    with work_folder(work_beside(out)) as work:
        prepare_torch(work, settings.threads)
        start = None
        if begin_with:
            start = load_detector(begin_with, settings.width)
            settings = replace(settings, begun_with=start.digest)
        reminder = load_detector(remind, settings.width) if remind else None
        if reminder:
            settings = replace(settings, reminded_by=reminder.digest)
        taught = Teacher(teacher) if teacher else None
        if taught:
            settings = replace(settings, taught_by=taught.digest)
        training = detector_training(pictures, settings, work, start, taught, reminder)
        training.run(part_of(report, 0.0, _TRAINED))
        network = training.network
        trained = TrainedDetector(network, '', settings.plain(), settings.epochs)
        metrics = _write_levels(
            out,
            {settings.level: (network, settings.size)},
            pictures,
            judged,
            part_of(report, _TRAINED, 1.0),
            training_facts(pictures, settings),
            {settings.width: trained},
            attribution,
        )
    return metrics[settings.level]


def join_levels(
    places: Sequence[Path],
    narrow: Path,
    wide: Path,
    out: Path,
    report: Report,
    validation: Path | None = None,
    attribution: str = '',
) -> dict[str, dict[str, Any]]:
    """Export every level of two detectors, check it, judge it, and put the bundle in its place.

    :param places: of the pictures they were trained on: the export is checked on some of them
    :param narrow: bundle of `mmedge lab train detector`, or its starting point, as ``wide`` is
    :param validation: set of flights that judges the result
    :param attribution: what the licences of the pictures ask to be said
    :return: the figures by level and set
    :raises TrainingError: when it cannot be done
    :raises BagError: if a flight cannot be read
    :raises EncodingError: if a library is missing
    """
    require_free(out)
    pictures, judged = open_pictures(*places), _judged(validation)
    trained = {NARROW: narrow, WIDE: wide}
    with work_folder(work_beside(out)) as work:
        prepare_torch(work, 1)
        detectors = {width: load_detector(place, width) for width, place in trained.items()}
        return _write_levels(
            out,
            {
                level: (detectors[width].network, size)
                for level, (width, size) in CAMERA_LEVELS.items()
            },
            pictures,
            judged,
            report,
            {
                width: {**_facts(place, detectors[width]), 'sha256': detectors[width].digest}
                for width, place in trained.items()
            },
            detectors,
            attribution,
        )


def _judged(validation: Path | None) -> dict[str, Sequence[Path]]:
    return {} if validation is None else {VALIDATION: flights_in(validation)}


def _write_levels(
    out: Path,
    networks: Mapping[str, tuple[Any, tuple[int, int]]],
    pictures: PictureSet,
    judged: Mapping[str, Sequence[Path]],
    report: Report,
    training: Mapping[str, Any],
    detectors: Mapping[str, TrainedDetector],
    attribution: str,
) -> dict[str, dict[str, Any]]:
    """Export, check and judge networks with their input sizes; put a bundle of them in its place.

    :param training: the manifest's description of it
    :param detectors: by width what later trainings begin with
    :param attribution: what the licences of the pictures ask to be said
    :return: the figures by level and set
    """
    # Evenly from all of the set.
    step = max(1, len(pictures) // _CHECKED_PICTURES)
    chosen = range(0, len(pictures), step)[:_CHECKED_PICTURES]
    shown = [pictures.load(number).image for number in chosen]
    levels, exports, metrics = {}, {}, {}
    with new_bundle(out) as part:
        for width, of in detectors.items():
            save_starting_point(part / f'{width}.pt', of.network, of.settings, of.epoch)
        for place, (level, (network, size)) in enumerate(networks.items()):
            weights = part / f'{level}.onnx'
            rest = part_of(report, place / len(networks), (place + 1) / len(networks))
            rest(0.0, f'exporting {level}')
            exports[level] = export_facts(export_detector(network, weights, size, shown))
            levels[level] = {**file_entry(weights), 'input_size': list(size)}
            metrics[level] = accuracy_by_set(weights, judged, rest, f'judging {level}')
        content = {
            'camera': {
                'default': DEFAULT_LEVEL if DEFAULT_LEVEL in levels else next(iter(levels)),
                'levels': levels,
            },
            'labels': list(CLASSES),
            'domain': domain_of(pictures.made_from),
            'training': training,
            'export': exports,
            'metrics': metrics,
            'licence': LICENCE,
            **({'attribution': attribution} if attribution else {}),
        }
        if pictures.sources:
            (part / SOURCES).write_text(pictures.sources, encoding='utf-8')
        write_manifest(part, out.name, content)
    return metrics


def training_facts(pictures: PictureSet, settings: DetectorSettings) -> dict[str, Any]:
    """Return a manifest's description of the training."""
    return {
        'data': {
            **data_facts(pictures.made_from),
            'pictures': len(pictures),
            'objects': pictures.objects,
            'sha256': pictures.digest,
        },
        'settings': settings.plain(),
        'software': software_facts(training_device()),
    }


def _facts(place: Path, detector: TrainedDetector) -> dict[str, Any]:
    """Return the training's facts in a detector's own manifest, where there is one."""
    with suppress(EncodingError):
        if training := manifest_of(place).get('training'):
            return dict(training)
    return {'settings': detector.settings}
