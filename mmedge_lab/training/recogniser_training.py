"""Trains the recogniser on crops; see `RecogniserNetwork` for what it is."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from mmedge_lab.simulation.appearance import COLOURS
from mmedge_lab.simulation.world import LABELS
from mmedge_lab.training.crop_set import CROP_MARGIN, CropSet
from mmedge_lab.training.epoch_training import (
    BFLOAT16,
    FLOAT32,
    EpochTraining,
    Task,
    TrainingParameters,
    made_ahead,
)
from mmedge_lab.training.networks.recogniser_network import SIZE, RecogniserNetwork
from mmedge_lab.training.recogniser_labels import ATTRIBUTES, CLASSES, UNKNOWN
from mmedge_ros.encoding.crops import CropForm

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
