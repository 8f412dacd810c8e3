"""Trains the radar's networks to tell where people are in the radar's view, and how far.

The largest level learns first, together with the probe that reads its grid. The others learn to
be read by the same probe and to put out the same grid: levels may then be mixed in one window.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional

from mmedge_ros.encoding.radar_network import inputs_of
from mmedge_ros.training.detector_settings import BFLOAT16
from mmedge_ros.training.errors import TrainingError
from mmedge_ros.training.fusion_settings import LEVELS, FusionSettings
from mmedge_ros.training.networks.radar_network import RadarNetwork, RadarProbe
from mmedge_ros.training.radar_targets import RadarSample

_BATCH = 32
_LEARNING_RATE, _WEIGHT_DECAY = 2e-3, 1e-3
_RANGE_GAIN, _LIKENESS_GAIN = 0.5, 1.0
_LARGEST_GRADIENT = 5.0
_SEED = 20260  # features do not depend on a training's seed, so that trainings can share them
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

    def rows(self, chosen: NDArray[np.intp]) -> RadarSet:
        """Return some of the samples."""
        return RadarSet(*(getattr(self, f.name)[chosen] for f in fields(self)))


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
    places = np.arange(len(samples))
    held = places % _HELD_OUT == _HELD_OUT - 1
    learned, judged = samples.rows(places[~held]), samples.rows(places[held])
    torch.manual_seed(_SEED)
    probe = RadarProbe()
    found: dict[str, TrainedRadar] = {}
    best: RadarNetwork | None = None
    for number, level in enumerate(reversed(LEVELS)):
        network = RadarNetwork(level)
        parameters = [*network.parameters(), *(probe.parameters() if best is None else ())]
        optimizer = torch.optim.AdamW(parameters, _LEARNING_RATE, weight_decay=_WEIGHT_DECAY)
        steps = settings.radar_epochs * -(-len(learned) // _BATCH)
        schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, _LEARNING_RATE, max(steps, 2))
        for step, batch in enumerate(_batches(learned, settings.radar_epochs)):
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
            torch.nn.utils.clip_grad_norm_(parameters, _LARGEST_GRADIENT)
            optimizer.step()
            schedule.step()
            if on_progress:
                share = (number + (step + 1) / steps) / len(LEVELS)
                on_progress(share, f'radar, {level}, step {step + 1} of {steps}')
        network.eval()
        best = best or network
        found[level] = TrainedRadar(network, _judged(network, probe, judged))
    return {level: found[level] for level in LEVELS}


def _loss(
    network: RadarNetwork, probe: RadarProbe, best: RadarNetwork | None, batch: RadarSet
) -> Any:
    rasters = _rasters(batch)
    grid = network(*rasters).float()
    logits, ranges = (made.float() for made in probe(grid))
    people = torch.from_numpy(batch.people)[:, None]
    counts = (people >= 0).float()
    present = (people > 0).float()
    total = present.sum().clamp(min=1.0)
    seen = functional.binary_cross_entropy_with_logits(logits, present, counts, reduction='sum')
    truth = torch.from_numpy(batch.log_range)[:, None]
    known = torch.isfinite(truth)
    apart = (ranges - torch.where(known, truth, 0.0)).abs() * known
    loss = (seen + _RANGE_GAIN * apart.sum()) / total
    if best is not None:
        with torch.no_grad():
            wanted = best(*rasters).float()
        loss = loss + _LIKENESS_GAIN * functional.mse_loss(grid, wanted) / wanted.var().clamp(
            min=1e-6
        )
    return loss


def _judged(network: RadarNetwork, probe: RadarProbe, samples: RadarSet) -> RadarAccuracy:
    marked = right = present = 0
    errors = []
    for first in range(0, len(samples), _BATCH):
        batch = samples.rows(np.arange(first, min(first + _BATCH, len(samples))))
        with torch.no_grad():
            logits, ranges = (made[:, 0].numpy() for made in probe(network(*_rasters(batch))))
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


def _batches(samples: RadarSet, epochs: int) -> Iterator[RadarSet]:
    for epoch in range(epochs):
        order = np.random.default_rng((_SEED, epoch)).permutation(len(samples))
        for first in range(0, len(order), _BATCH):
            yield samples.rows(order[first : first + _BATCH])


def _rasters(batch: RadarSet) -> tuple[Any, Any]:
    view, birds_eye = (
        torch.from_numpy(raster.astype(np.float32)) for raster in (batch.view, batch.birds_eye)
    )
    return view, birds_eye
