"""Trains the radar's networks to locate people in its view, and exports them.

The largest level learns first, together with the probe that reads its grid. The others learn to
be read by the same probe and to put out the same grid: levels may then be mixed in one window.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn
from torch.nn import functional

from mmedge_lab.training import Report, TrainingError, part_of
from mmedge_lab.training.epoch_training import (
    BFLOAT16,
    EpochTraining,
    Task,
    TrainingParameters,
)
from mmedge_lab.training.fusion_settings import LEVELS, FusionSettings
from mmedge_lab.training.network_export import greatest_difference, write_stages
from mmedge_lab.training.networks.radar_network import RadarProbe, RadarUnitNetwork
from mmedge_lab.training.radar_targets import RadarSample
from mmedge_ros.encoding.radar_network import inputs_of
from mmedge_ros.encoding.tapped_network import TappedNetwork

_BATCH = 32
_LEARNING_RATE, _WEIGHT_DECAY = 2e-3, 1e-3
_RANGE_GAIN, _LIKENESS_GAIN = 0.5, 1.0
_WARM_UP, _LARGEST_GRADIENT = 50, 5.0
_SEED = 20260  # features do not depend on a training's seed, so that trainings can share them
# Every so many-th sample is held out for the evaluation.
_HELD_OUT = 10
# Weights are stored as float16, of which that is the rounding of many layers.
_LARGEST_DIFFERENCE = 0.02


class RadarAccuracy(NamedTuple):
    """Of held-out samples: share of cells with people among those marked, and the reverse.

    ``range_error`` is the mean difference of ln(m) where people are.
    """

    precision: float
    recall: float
    range_error: float


class RadarSet(NamedTuple):
    """Samples as arrays: both rasters, float16, and the targets of `RadarSample`."""

    view: NDArray[np.float16]
    birds_eye: NDArray[np.float16]
    people: NDArray[np.int8]
    log_range: NDArray[np.float32]

    def rows(self, chosen: NDArray[np.intp]) -> RadarSet:
        """Return some of the samples."""
        rasters = self.view[chosen], self.birds_eye[chosen]
        return RadarSet(*rasters, self.people[chosen], self.log_range[chosen])


class TrainedRadar(NamedTuple):
    """A network in evaluation mode and its accuracy."""

    network: RadarUnitNetwork
    accuracy: RadarAccuracy


def radar_set(samples: Sequence[RadarSample]) -> RadarSet:
    """Rasterise samples.

    :raises TrainingError: if there are too few
    """
    if len(samples) < 2:
        raise TrainingError(
            'the flights hold not two radar scans whose truth is known; fusion needs both sensors'
        )
    rasters = [tuple(r[0] for r in inputs_of(s.returns).values()) for s in samples]
    view, birds_eye = (
        np.stack(column).astype(np.float16) for column in zip(*rasters, strict=True)
    )
    return RadarSet(
        view,
        birds_eye,
        np.stack([s.people for s in samples]),
        np.stack([s.log_range for s in samples]),
    )


def train_radar(
    samples: RadarSet, settings: FusionSettings, report: Report
) -> dict[str, TrainedRadar]:
    """Train the networks of all levels.

    :raises TrainingError: if the loss diverges
    """
    places = np.arange(len(samples.people))
    held = places % _HELD_OUT == _HELD_OUT - 1
    learned, unseen = samples.rows(places[~held]), samples.rows(places[held])
    steps = -(-len(learned.people) // _BATCH)
    torch.manual_seed(_SEED)
    probe = RadarProbe()
    trained: dict[str, TrainedRadar] = {}
    best: RadarUnitNetwork | None = None
    for number, level in enumerate(reversed(LEVELS)):
        network = RadarUnitNetwork(level)
        # The probe learns with the first network alone.
        learning = nn.ModuleList((network, probe) if best is None else (network,))

        def loss(batch: RadarSet, of: RadarUnitNetwork = network, like: Any = best) -> Any:
            with torch.autocast('cpu', torch.bfloat16, enabled=settings.precision == BFLOAT16):
                return _loss(of, probe, like, batch)

        training = EpochTraining(
            Task(learning, partial(_shuffled_batches, learned), loss),
            TrainingParameters(
                learning_rate=_LEARNING_RATE,
                weight_decay=_WEIGHT_DECAY,
                warm_up=_WARM_UP,
                largest_gradient=_LARGEST_GRADIENT,
                averaged=1,
                epochs=settings.radar_epochs,
                steps=steps,
            ),
        )
        training.run(part_of(report, number / len(LEVELS), (number + 1) / len(LEVELS)))
        network.eval()
        best = best or network
        trained[level] = TrainedRadar(network, _accuracy(network, probe, unseen))
    return {level: trained[level] for level in LEVELS}


def _loss(
    network: RadarUnitNetwork, probe: RadarProbe, best: RadarUnitNetwork | None, batch: RadarSet
) -> Any:
    grid = _grid(network, batch).float()
    logits, ranges = (read.float() for read in probe(grid))
    people = torch.from_numpy(batch.people)[:, None]
    counts, present = (people >= 0).float(), (people > 0).float()
    seen = functional.binary_cross_entropy_with_logits(logits, present, counts, reduction='sum')
    truth = torch.from_numpy(batch.log_range)[:, None]
    known = torch.isfinite(truth)
    apart = (ranges - torch.where(known, truth, 0.0)).abs() * known
    loss = (seen + _RANGE_GAIN * apart.sum()) / present.sum().clamp(min=1.0)
    if best is not None:
        with torch.no_grad():
            wanted = _grid(best, batch).float()
        loss = loss + _LIKENESS_GAIN * functional.mse_loss(grid, wanted) / wanted.var().clamp(
            min=1e-6
        )
    return loss


def _accuracy(network: RadarUnitNetwork, probe: RadarProbe, samples: RadarSet) -> RadarAccuracy:
    """Return how well the probe reads the grids that a network makes of samples."""
    marked = right = present = 0
    errors = [np.zeros(0, np.float32)]
    count = len(samples.people)
    for first in range(0, count, _BATCH):
        batch = samples.rows(np.arange(first, min(first + _BATCH, count)))
        with torch.no_grad():
            logits, ranges = (read[:, 0].numpy() for read in probe(_grid(network, batch)))
        positive = (logits > 0.0) & (batch.people >= 0)
        true = batch.people > 0
        marked, present = marked + int(positive.sum()), present + int(true.sum())
        right += int((positive & true).sum())
        gaps = np.abs(ranges - batch.log_range)
        errors.append(gaps[np.isfinite(gaps)])
    gaps = np.concatenate(errors)
    return RadarAccuracy(
        right / marked if marked else float('nan'),
        right / present if present else float('nan'),
        float(gaps.mean()) if len(gaps) else float('nan'),
    )


def _shuffled_batches(samples: RadarSet, epoch: int) -> Iterator[RadarSet]:
    """Yield all samples in another order in each epoch, the same for each network."""
    order = np.random.default_rng((_SEED, epoch)).permutation(len(samples.people))
    for first in range(0, len(order), _BATCH):
        yield samples.rows(order[first : first + _BATCH])


def _grid(network: RadarUnitNetwork, batch: RadarSet) -> Any:
    rasters = batch.view, batch.birds_eye
    return network(*(torch.from_numpy(raster.astype(np.float32)) for raster in rasters))


def export_radar_level(
    network: RadarUnitNetwork, folder: Path, level: str, scans: Sequence[NDArray[np.float32]]
) -> tuple[list[Path], float]:
    """Write ``radar_<level>_1.onnx`` and so on, in the order in which they run.

    :param network: trained; it stays as it is
    :param scans: returns (N, 5) of some scans, to check the files on
    :return: the files, and the greatest difference as a share of the greatest value
    :raises TrainingError: if the files do not put out what the network does
    :raises OSError: if a file cannot be written
    """
    network = copy.deepcopy(network).float().cpu().eval()
    empty = _tensors(np.zeros((0, 5), np.float32))
    paths = write_stages(network.stages, empty, folder / f'radar_{level}')
    tapped, worst = TappedNetwork(paths), 0.0
    for returns in scans:
        with torch.no_grad():
            wanted = network(*_tensors(returns).values()).numpy()
        made = tapped.run(inputs_of(returns))['grid']
        worst = max(worst, greatest_difference(wanted, made, _LARGEST_DIFFERENCE, 'radar network'))
    return paths, worst


def _tensors(returns: NDArray[np.float32]) -> dict[str, Any]:
    rasters = inputs_of(returns).items()
    return {name: torch.from_numpy(np.ascontiguousarray(raster)) for name, raster in rasters}
