"""Trains the recogniser on crops of random scenes, and puts it into a copy of a bundle."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from mmedge_lab.simulation.appearance import COLOURS
from mmedge_lab.simulation.flight_folder import SIMULATOR_VERSION
from mmedge_lab.simulation.world import LABELS
from mmedge_lab.training import Report, part_of
from mmedge_lab.training.bundle_files import enter_section, file_entry, new_bundle, require_free
from mmedge_lab.training.checkpoint import work_beside, work_folder
from mmedge_lab.training.crop_set import (
    ATTRIBUTES,
    CLASSES,
    CROP_MARGIN,
    UNKNOWN,
    CropSet,
    fitted_on,
    judged,
    label_of,
    learned,
    write_crops,
)
from mmedge_lab.training.epoch_training import (
    BFLOAT16,
    FLOAT32,
    EpochTraining,
    Task,
    TrainingParameters,
    made_ahead,
)
from mmedge_lab.training.network_export import greatest_difference, write_stages
from mmedge_lab.training.networks.recogniser_network import SIZE, RecogniserNetwork
from mmedge_lab.training.semantic_centres import fit_exits, fit_semantic_centres
from mmedge_ros.core.data_types import FloatArray
from mmedge_ros.core.plain_values import plain_values
from mmedge_ros.encoding.classifier_description import ATTRIBUTES as ATTRIBUTE_OUTPUT
from mmedge_ros.encoding.classifier_description import FORMAT, LOGITS, SECTION
from mmedge_ros.encoding.crops import CropForm
from mmedge_ros.encoding.semantic_memory import SemanticCentres, centres_as_bytes
from mmedge_ros.encoding.tapped_classifier import TappedClassifier

CHECKPOINT = 'checkpoint.pt'
# With room around the box: detectors leave wheels out.
FORM = CropForm(SIZE, margin=0.2)
_WARM_UP, _LARGEST_GRADIENT, _AVERAGED_STEPS = 100, 5.0, 400
# How far (share of the box) detected boxes lie off true ones, and how light and noise vary.
_SHIFT, _STRETCH = 0.07, 0.1
_GAIN, _TINT, _NOISE = 0.25, 0.06, 0.02
# How much each tap counts, and what an attribute counts beside the class.
_TAP_WEIGHTS = (0.5, 0.6, 0.8, 1.0)
_ATTRIBUTE_WEIGHT = 0.3
_SMOOTHING = 0.05
# Frequent classes are seen more often than rare ones, by this power of how much more there are.
_FREQUENCY_POWER = 0.3
# A wrong label is worse than a wrong colour.
_LABEL_WEIGHT = 1.0
MEMORY_FILE = 'recogniser.npz'
_BATCH = 256
# Objects that centres are the mean of, of each class at most.
_CENTRE_OBJECTS = 800
_ERROR = 0.01
_CROPS_SHARE, _TRAINED_SHARE = 0.4, 0.95
_LARGEST_DIFFERENCE = 0.05


@dataclass(frozen=True)
class RecogniserSettings:
    """Two trainings with equal settings on one machine give the same network."""

    scenes: int = 860
    epochs: int = 16
    batch: int = 128
    seed: int = 0
    learning_rate: float = 3e-3
    weight_decay: float = 0.02
    threads: int = 1
    precision: str = FLOAT32

    def plain(self) -> dict[str, Any]:
        """Return plain values, as a checkpoint and a manifest hold them."""
        return asdict(self)


class CropBatch(NamedTuple):
    """Inputs (N, 3, 48, 32) and facts (N, F)."""

    inputs: Tensor
    facts: Tensor


def recogniser_training(
    crops: CropSet, settings: RecogniserSettings, folder: Path
) -> EpochTraining:
    """Return the training of a recogniser.

    :param folder: where checkpoints are kept
    :raises TrainingError: if a checkpoint there is damaged or of another training
    """
    torch.manual_seed(settings.seed)
    network = RecogniserNetwork(len(CLASSES), attribute_logits())
    shares = _shares(crops.facts[:, 0])
    steps = max(len(crops.crops) // settings.batch, 1)

    def batches(epoch: int) -> Iterator[CropBatch]:
        random = np.random.default_rng((settings.seed, epoch))
        chosen = random.choice(len(shares), (steps, settings.batch), p=shares)

        def made(place: int) -> CropBatch:
            random = np.random.default_rng((settings.seed, epoch, place))
            facts = torch.from_numpy(crops.facts[chosen[place]].astype(np.int64))
            return CropBatch(varied_inputs(crops.crops[chosen[place]], random), facts)

        return made_ahead(made, steps)

    def loss(batch: CropBatch) -> Tensor:
        with torch.autocast('cpu', torch.bfloat16, enabled=settings.precision == BFLOAT16):
            outputs = network(batch.inputs)
        losses = [
            weight * _loss(values.float(), batch.facts)
            for weight, values in zip(_TAP_WEIGHTS, outputs, strict=True)
        ]
        return torch.stack(losses).sum()

    return EpochTraining(
        Task(network, batches, loss),
        TrainingParameters(
            settings.learning_rate,
            settings.weight_decay,
            _WARM_UP,
            _LARGEST_GRADIENT,
            _AVERAGED_STEPS,
            settings.epochs,
            steps,
        ),
        folder / CHECKPOINT,
        {'settings': settings.plain(), 'crops': len(crops.crops)},
    )


def attribute_logits() -> int:
    """Return how many logits describe the attributes."""
    return sum(len(values) for values in ATTRIBUTES.values())


def varied_inputs(crops: NDArray[np.uint8], random: np.random.Generator) -> Tensor:
    """Return crops (N, 72, 48, 3) as inputs, shifted, stretched, mirrored, in another light."""
    count = len(crops)
    scale, shift = _nominal(), random.uniform(-_SHIFT, _SHIFT, (count, 2)) * 2.0 * _of_box()
    theta = np.zeros((count, 2, 3), np.float32)
    theta[:, 0, 0] = scale * random.uniform(1 - _STRETCH, 1 + _STRETCH, count)
    theta[:, 0, 0] *= random.choice((-1.0, 1.0), count)
    theta[:, 1, 1] = scale * random.uniform(1 - _STRETCH, 1 + _STRETCH, count)
    theta[:, :, 2] = shift
    values = _sampled(crops, torch.from_numpy(theta))
    gain = random.uniform(1 - _GAIN, 1 + _GAIN, (count, 1, 1, 1))
    tint = random.uniform(1 - _TINT, 1 + _TINT, (count, 3, 1, 1))
    values = values * torch.from_numpy((gain * tint).astype(np.float32))
    noise = random.standard_normal(values.shape, np.float32)
    noise *= random.uniform(0.0, _NOISE, (count, 1, 1, 1)).astype(np.float32)
    return _normalised((values + torch.from_numpy(noise)).clamp(0.0, 1.0))


def plain_inputs(crops: NDArray[np.uint8]) -> Tensor:
    """Return crops (N, 72, 48, 3) as inputs, about as `crops.crop_input` makes them in flight."""
    theta = np.zeros((len(crops), 2, 3), np.float32)
    theta[:, 0, 0] = theta[:, 1, 1] = _nominal()
    return _normalised(_sampled(crops, torch.from_numpy(theta)))


def _of_box() -> float:
    """Return the share of a kept crop that is the box itself."""
    return 1.0 / (1.0 + 2.0 * CROP_MARGIN)


def _nominal() -> float:
    """Return the share of a kept crop that is the input."""
    return (1.0 + 2.0 * FORM.margin) * _of_box()


def _sampled(crops: NDArray[np.uint8], theta: Tensor) -> Tensor:
    planes = np.ascontiguousarray(crops[:, :, :, ::-1].transpose(0, 3, 1, 2))
    images = torch.from_numpy(planes).float() / 255.0
    grid = functional.affine_grid(theta, [len(crops), 3, SIZE[1], SIZE[0]], align_corners=False)
    return functional.grid_sample(images, grid, padding_mode='border', align_corners=False)


def _normalised(values: Tensor) -> Tensor:
    mean = torch.tensor(FORM.mean)[None, :, None, None]
    deviation = torch.tensor(FORM.deviation)[None, :, None, None]
    return (values - mean) / deviation


def _loss(values: Tensor, facts: Tensor) -> Tensor:
    """Return the loss of the logits (N, classes + attributes) of one tap."""
    classes = values[:, : len(CLASSES)]
    loss = functional.cross_entropy(classes, facts[:, 0], label_smoothing=_SMOOTHING)
    # Classes are listed label by label, each with all colours.
    of_label = classes.reshape(len(values), len(LABELS), -1).logsumexp(dim=2)
    labels = torch.div(facts[:, 0], len(COLOURS), rounding_mode='floor')
    loss = loss + _LABEL_WEIGHT * functional.cross_entropy(of_label, labels)
    begin = len(CLASSES)
    for number, names in enumerate(ATTRIBUTES.values(), start=1):
        part = values[:, begin : begin + len(names)]
        begin += len(names)
        known = (facts[:, number] != UNKNOWN).sum().clamp(min=1)
        wrong = functional.cross_entropy(
            part, facts[:, number], ignore_index=UNKNOWN, reduction='sum'
        )
        loss = loss + _ATTRIBUTE_WEIGHT * wrong / known
    return loss


def _shares(kinds: NDArray[np.int8]) -> NDArray[np.float64]:
    counts = np.bincount(kinds, minlength=len(CLASSES)).astype(float)
    weights = np.power(np.maximum(counts, 1.0), _FREQUENCY_POWER - 1.0)[kinds]
    shares: NDArray[np.float64] = weights / math.fsum(weights)
    return shares


class Outputs(NamedTuple):
    """What a network makes of crops: a vector (N, D_l) and logits (N, J + A) of each tap."""

    vectors: list[FloatArray]
    logits: list[FloatArray]

    @property
    def whole(self) -> NDArray[np.intp]:
        """The class that the end of the network says."""
        said: NDArray[np.intp] = self.logits[-1][:, : len(CLASSES)].argmax(axis=1)
        return said


def run_recogniser(
    bundle: Path, out: Path, crops: Path, settings: RecogniserSettings, jobs: int, report: Report
) -> dict[str, Any]:
    """Train a recogniser, fit its semantic memory, and write both into a copy of a bundle.

    :param crops: folder that keeps the crops of the scenes
    :param jobs: processes to use; 0 for one per processor
    :return: its figures on scenes that it did not learn from
    :raises TrainingError: if it cannot be done
    :raises EncodingError: if the bundle cannot be used
    """
    require_free(out)
    seen = write_crops(crops, settings.scenes, jobs, part_of(report, 0.0, _CROPS_SHARE))
    with work_folder(work_beside(out)) as folder:
        training = recogniser_training(learned(seen), settings, folder)
        training.run(part_of(report, _CROPS_SHARE, _TRAINED_SHARE))
        figures = write_recogniser(training.network, seen, settings, bundle, out)
    report(1.0, 'written')
    return figures


def write_recogniser(
    network: RecogniserNetwork,
    crops: CropSet,
    settings: RecogniserSettings,
    bundle: Path,
    out: Path,
) -> dict[str, Any]:
    """Fit the semantic memory of a trained network, and write both into a copy of a bundle."""
    centres, exits = fit_memory(network, crops)
    figures = accuracy(network, judged(crops))
    with new_bundle(out, bundle) as part:
        for old in part.glob('recogniser*'):
            old.unlink()
        stages = export_recogniser(network, part)
        check_export(network, stages, judged(crops))
        (part / MEMORY_FILE).write_bytes(centres_as_bytes(centres))
        section = {
            'format': FORMAT,
            'classes': list(CLASSES),
            'labels': list(LABELS),
            'input': FORM._asdict(),
            'stages': [file_entry(path) for path in stages],
            'memory': file_entry(part / MEMORY_FILE),
            'exits': list(exits),
            'attributes': {name: list(values) for name, values in ATTRIBUTES.items()},
            'training': {
                'scenes': settings.scenes,
                'simulator': SIMULATOR_VERSION,
                'crops': len(learned(crops).crops),
                'settings': settings.plain(),
            },
            'accuracy': figures,
        }
        enter_section(part, SECTION, plain_values(section, 4))
    return figures


def outputs_of(network: RecogniserNetwork, crops: CropSet) -> Outputs:
    """Return what a network makes of crops."""
    vectors: list[list[FloatArray]] = []
    with torch.no_grad():
        for begin in range(0, len(crops.crops), _BATCH):
            inputs = plain_inputs(crops.crops[begin : begin + _BATCH])
            vectors.append([v.numpy().astype(float) for v in network.vectors(inputs)])
        joined = [np.concatenate(tap) for tap in zip(*vectors, strict=True)]
        logits = [
            head(torch.from_numpy(vector).float()).numpy().astype(float)
            for head, vector in zip(network.heads, joined, strict=True)
        ]
    return Outputs(joined, logits)


def fit_memory(
    network: RecogniserNetwork, crops: CropSet
) -> tuple[SemanticCentres, tuple[float, ...]]:
    """Fit when a network may be left: centres on what it learned from, thresholds on others.

    :return: the semantic memory, and the odds from which on the head of each tap is believed
    """
    known = _of_each_class(learned(crops))
    others = fitted_on(crops)
    centres, held = outputs_of(network, known), outputs_of(network, others)
    memory = fit_semantic_centres(
        centres.vectors[:-1],
        known.facts[:, 0].tolist(),
        held.vectors[:-1],
        others.facts[:, 0].tolist(),
        _ERROR,
        whole=held.whole.tolist(),
        # No car is brown and no dog is blue, green, red or yellow.
        classes=len(CLASSES),
    )
    heads = [logits[:, : len(CLASSES)] for logits in held.logits[:-1]]
    return memory, fit_exits(heads, held.whole, others.facts[:, 0], _ERROR)


def accuracy(network: RecogniserNetwork, crops: CropSet) -> dict[str, Any]:
    """Return the accuracy at each tap, and of the attributes at the end."""
    outputs = outputs_of(network, crops)
    truth = crops.facts[:, 0].astype(int)
    labels = np.array([label_of(name) for name in CLASSES])
    exits = []
    for logits in outputs.logits:
        said = logits[:, : len(CLASSES)].argmax(axis=1)
        exits.append(
            {
                'class': float(np.mean(said == truth)),
                'label': float(np.mean(labels[said] == labels[truth])),
            }
        )
    return {'crops': len(truth), 'exits': exits, 'attributes': _attributes(outputs, crops)}


def _attributes(outputs: Outputs, crops: CropSet) -> dict[str, float]:
    shares, begin = {}, len(CLASSES)
    for number, (name, values) in enumerate(ATTRIBUTES.items(), start=1):
        said = outputs.logits[-1][:, begin : begin + len(values)].argmax(axis=1)
        begin += len(values)
        truth = crops.facts[:, number]
        known = truth != UNKNOWN
        shares[name] = float(np.mean(said[known] == truth[known]))
    return shares


def export_recogniser(network: RecogniserNetwork, folder: Path) -> list[Path]:
    """Write ``recogniser_1.onnx`` and so on, in the order in which they run.

    :raises OSError: if a file cannot be written
    """
    whole = copy.deepcopy(network).float().eval()
    crop = plain_inputs(np.zeros((1, 72, 48, 3), np.uint8))
    return write_stages(whole.stages(), {'features_0': crop}, folder / 'recogniser')


def check_export(network: RecogniserNetwork, stages: Sequence[Path], crops: CropSet) -> None:
    """Compare the files with the network.

    :raises TrainingError: if their logits differ by more than rounding explains
    """
    some = crops.rows(np.arange(0, len(crops.crops), max(len(crops.crops) // 50, 1)))
    classifier = TappedClassifier(CLASSES, stages)
    wanted = outputs_of(network, some).logits[-1]
    for crop, logits in zip(some.crops, wanted, strict=True):
        inputs = plain_inputs(crop[None]).numpy()
        found = classifier.network.run(inputs)
        made = np.concatenate((found[LOGITS][0], found[ATTRIBUTE_OUTPUT][0]))
        greatest_difference(logits, made, _LARGEST_DIFFERENCE, 'recogniser')


def _of_each_class(crops: CropSet) -> CropSet:
    kinds = crops.facts[:, 0]
    chosen = [np.flatnonzero(kinds == kind)[:_CENTRE_OBJECTS] for kind in range(len(CLASSES))]
    return crops.rows(np.concatenate(chosen))


def describe(figures: Mapping[str, Any]) -> str:
    """Return what was measured, in a sentence."""
    last, first = figures['exits'][-1], figures['exits'][0]
    return (
        f'on {figures["crops"]} crops of other scenes: label {last["label"]:.3f}, label and '
        f'colour {last["class"]:.3f} (at the first tap {first["class"]:.3f})'
    )
