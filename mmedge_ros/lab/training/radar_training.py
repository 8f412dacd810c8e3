"""Trains the radar's networks to tell where people are in the radar's view, and how far.

The largest level learns first, together with the probe that reads its grid. The others learn to
be read by the same probe and to put out the same grid: levels may then be mixed in one window.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any, NamedTuple, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional

from mmedge_ros.encoding.radar_network import inputs_of
from mmedge_ros.lab.training import TrainingError
from mmedge_ros.lab.training.detector_settings import BFLOAT16
from mmedge_ros.lab.training.fusion_settings import LEVELS, FusionSettings
from mmedge_ros.lab.training.networks.radar_network import RadarNetwork, RadarProbe
from mmedge_ros.lab.training.radar_targets import RadarSample

_BATCH = 32
LEARNING_RATE, WEIGHT_DECAY = 2e-3, 1e-3
_RANGE_GAIN, _LIKENESS_GAIN = 0.5, 1.0
LARGEST_GRADIENT = 5.0
SEED = 20260  # features do not depend on a training's seed, so that trainings can share them
# Every so many-th sample only judges.
_HELD_OUT = 10

Progress = Callable[[float, str], None]


class RadarAccuracy(NamedTuple):
    """Of samples kept out: share of cells with people among those marked, and the reverse.

    ``range_error`` is the mean difference of ln(m) where people are.
    """

    precision: float
    recall: float
    range_error: float


@dataclass(frozen=True, eq=False)
class RadarSet:
    """Samples as arrays: both rasters, float16, and the targets of `RadarSample`."""

    view: NDArray[np.float16]
    birds_eye: NDArray[np.float16]
    people: NDArray[np.int8]
    log_range: NDArray[np.float32]

    def __len__(self) -> int:
        return len(self.people)

    def rows(self: Samples, chosen: NDArray[np.intp]) -> Samples:
        """Return some of the samples."""
        return replace(self, **{f.name: getattr(self, f.name)[chosen] for f in fields(self)})


Samples = TypeVar('Samples', bound=RadarSet)


class TrainedRadar(NamedTuple):
    """A network in evaluation mode and how well it does."""

    network: RadarNetwork
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
    samples: RadarSet, settings: FusionSettings, on_progress: Progress | None = None
) -> dict[str, TrainedRadar]:
    """Train the networks of all levels.

    :raises TrainingError: if the loss leaves all bounds
    """
    learned, judged = split(samples)
    torch.manual_seed(SEED)
    probe = RadarProbe()
    found: dict[str, TrainedRadar] = {}
    best: RadarNetwork | None = None
    for number, level in enumerate(reversed(LEVELS)):
        network = RadarNetwork(level)
        parameters = [*network.parameters(), *(probe.parameters() if best is None else ())]
        optimizer = torch.optim.AdamW(parameters, LEARNING_RATE, weight_decay=WEIGHT_DECAY)
        steps = settings.radar_epochs * -(-len(learned) // _BATCH)
        schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, LEARNING_RATE, max(steps, 2))
        for step, batch in enumerate(shuffled_batches(learned, settings.radar_epochs)):
            network.train()
            optimizer.zero_grad(set_to_none=True)
            with torch.autocast('cpu', torch.bfloat16, enabled=settings.precision == BFLOAT16):
                loss = _loss(network, probe, best, batch)
            if not bool(torch.isfinite(loss)):
                raise TrainingError(
                    f'the loss of the {level} radar network is {float(loss.detach())} at step '
                    f'{step}; look at the scans of the flights'
                )
            loss.backward()
            torch.nn.utils.clip_grad_norm_(parameters, LARGEST_GRADIENT)
            optimizer.step()
            schedule.step()
            if on_progress:
                share = (number + (step + 1) / steps) / len(LEVELS)
                on_progress(share, f'radar, {level}, step {step + 1} of {steps}')
        network.eval()
        best = best or network
        accuracy = judge_radar(partial(_grid, network), probe, judged)
        found[level] = TrainedRadar(network, accuracy)
    return {level: found[level] for level in LEVELS}


def _loss(
    network: RadarNetwork, probe: RadarProbe, best: RadarNetwork | None, batch: RadarSet
) -> Any:
    grid = _grid(network, batch).float()
    loss = read_loss(grid, probe, batch)
    if best is not None:
        with torch.no_grad():
            wanted = _grid(best, batch).float()
        loss = loss + _LIKENESS_GAIN * functional.mse_loss(grid, wanted) / wanted.var().clamp(
            min=1e-6
        )
    return loss


def read_loss(grid: Any, probe: RadarProbe, batch: RadarSet) -> Any:
    """Return how wrong a probe reads grids (B, 16, 30, 40) of a batch, a scalar tensor."""
    logits, ranges = (made.float() for made in probe(grid))
    people = torch.from_numpy(batch.people)[:, None]
    counts = (people >= 0).float()
    present = (people > 0).float()
    total = present.sum().clamp(min=1.0)
    seen = functional.binary_cross_entropy_with_logits(logits, present, counts, reduction='sum')
    truth = torch.from_numpy(batch.log_range)[:, None]
    known = torch.isfinite(truth)
    apart = (ranges - torch.where(known, truth, 0.0)).abs() * known
    return (seen + _RANGE_GAIN * apart.sum()) / total


def judge_radar(
    grid_of: Callable[[Samples], Any], probe: RadarProbe, samples: Samples
) -> RadarAccuracy:
    """Say how well a probe reads the grids that something makes of samples."""
    marked = right = present = 0
    errors = []
    for first in range(0, len(samples), _BATCH):
        batch = samples.rows(np.arange(first, min(first + _BATCH, len(samples))))
        with torch.no_grad():
            logits, ranges = (made[:, 0].numpy() for made in probe(grid_of(batch)))
        said = (logits > 0.0) & (batch.people >= 0)
        there = batch.people > 0
        marked, present = marked + int(said.sum()), present + int(there.sum())
        right += int((said & there).sum())
        gaps = np.abs(ranges - batch.log_range)
        errors.append(gaps[np.isfinite(gaps)])
    gaps = np.concatenate(errors) if errors else np.zeros(0)
    return RadarAccuracy(
        right / marked if marked else float('nan'),
        right / present if present else float('nan'),
        float(gaps.mean()) if len(gaps) else float('nan'),
    )


def split(samples: Samples) -> tuple[Samples, Samples]:
    """Return the samples to learn from and those that only judge."""
    places = np.arange(len(samples))
    held = places % _HELD_OUT == _HELD_OUT - 1
    return samples.rows(places[~held]), samples.rows(places[held])


def shuffled_batches(samples: Samples, epochs: int) -> Iterator[Samples]:
    """Yield all samples in another order in each epoch, the same for each network."""
    for epoch in range(epochs):
        order = np.random.default_rng((SEED, epoch)).permutation(len(samples))
        for first in range(0, len(order), _BATCH):
            yield samples.rows(order[first : first + _BATCH])


def _grid(network: RadarNetwork, batch: RadarSet) -> Any:
    view, birds_eye = (
        torch.from_numpy(raster.astype(np.float32)) for raster in (batch.view, batch.birds_eye)
    )
    return network(view, birds_eye)
