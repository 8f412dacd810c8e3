"""A joint projection: what camera and radar see at one moment gets similar vectors.

Learned by separating true pairs from all others in a batch, both ways (contrastive learning,
van den Oord et al., arXiv 1807.03748); levels are drawn at random: one projection serves all.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from mmedge_lab.training import Report, TrainingError
from mmedge_lab.training.epoch_training import EpochTraining, Task, TrainingParameters
from mmedge_lab.training.feature_cache import SCAN, SCAN_STEP, CachedFlight
from mmedge_lab.training.networks.aggregator import Standardise
from mmedge_ros.core.data_types import CAMERA, NS_PER_S, RADAR
from mmedge_ros.encoding.feature_grid import (
    CAMERA_CHANNELS,
    COLUMNS,
    EMBEDDING_SIZE,
    RADAR_CHANNELS,
    ROWS,
)

_BATCH = 96
_LEARNING_RATE, _WEIGHT_DECAY = 2e-3, 0.02
_WARM_UP, _LARGEST_GRADIENT = 40, 10.0
# The picture nearest a scan must be this near (s) for both to show one moment.
_SAME_MOMENT = 0.04
# Pairs of one flight this far apart (s) are not true.
_OTHER_MOMENT = 1.0
_FIRST_SHARPNESS, _GREATEST_SHARPNESS = 10.0, 50.0
_JUDGED = 600
_SEED = 20261  # trainings with other seeds share the embedding
_STATISTICS = 200
# Channels of the network's layers, and the share dropped before the last one.
_WIDTH, _LAST = 24, 8
_DROPPED = 0.2


class GridEmbeddingNetwork(nn.Module):  # type: ignore[misc]
    """Grids (B, C, 30, 40) to unit vectors (B, 32); where in the grid something is counts."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.standardise = Standardise(channels)
        self.projection = nn.Conv2d(channels, _WIDTH, 1)
        self.first = nn.Conv2d(_WIDTH, _WIDTH, 3, stride=2, padding=1)
        self.second = nn.Conv2d(_WIDTH, _LAST, 3, stride=2, padding=1)
        cells = -(-ROWS // 4) * -(-COLUMNS // 4)
        self.dropout = nn.Dropout(_DROPPED)
        self.last = nn.Linear(_LAST * cells, EMBEDDING_SIZE)

    def forward(self, grid: Tensor) -> Tensor:
        """Return the embedding of each grid."""
        hidden = functional.relu(self.projection(self.standardise(grid)))
        hidden = functional.relu(self.second(functional.relu(self.first(hidden))))
        vector = self.last(self.dropout(hidden.flatten(1)))
        return vector / vector.square().sum(dim=1, keepdim=True).clamp(min=1e-12).sqrt()


class JointEmbedding(nn.Module):  # type: ignore[misc]
    """Two networks, one per modality: how alike pictures and scans are, (B, B)."""

    def __init__(self) -> None:
        super().__init__()
        self.camera = GridEmbeddingNetwork(CAMERA_CHANNELS)
        self.radar = GridEmbeddingNetwork(RADAR_CHANNELS)
        self.sharpness = nn.Parameter(torch.tensor(_FIRST_SHARPNESS))

    def forward(self, pictures: Tensor, scans: Tensor) -> Tensor:
        scale = self.sharpness.clamp(1.0, _GREATEST_SHARPNESS)
        return scale * self.camera(pictures) @ self.radar(scans).T


class MomentPair(NamedTuple):
    """A picture and a scan of one moment, by their places: flight, picture, row of SCAN."""

    flight: int
    camera: int
    scan: int
    stamp_ns: int


class SharedSpace(NamedTuple):
    """Separation of true pairs from shuffled ones: the area under the ROC curve."""

    pairs: int
    auc_other_flight: float
    auc_other_moment: float


def train_embedding(
    flights: Sequence[CachedFlight], steps: int, report: Report | None = None
) -> JointEmbedding:
    """Learn the joint projection.

    :raises TrainingError: if there are not two moments with units of both sensors
    """
    pairs = moment_pairs(flights)
    if len(pairs) < 2:
        raise TrainingError(
            'the flights hold no moments seen by camera and radar alike; embeddings need both'
        )
    torch.manual_seed(_SEED)
    rng = np.random.default_rng(_SEED)
    joint = JointEmbedding()
    shown = [pairs[k] for k in rng.permutation(len(pairs))[:_STATISTICS].tolist()]
    for network, grids in zip(
        (joint.camera, joint.radar), _read(flights, shown, rng), strict=True
    ):
        network.standardise.set_statistics(grids.mean((0, 2, 3)), grids.std((0, 2, 3)))
    size = min(_BATCH, len(pairs))

    def batches(_: int) -> Iterator[list[MomentPair]]:
        for _ in range(steps):
            yield [pairs[k] for k in rng.choice(len(pairs), size, replace=False).tolist()]

    def loss(chosen: list[MomentPair]) -> Tensor:
        likeness = joint(*_read(flights, chosen, rng))
        # Moments close to each other look the same to both: they are not separated.
        likeness = likeness.masked_fill(torch.from_numpy(_too_close(chosen)), -1e4)
        own = torch.arange(size)
        return functional.cross_entropy(likeness, own) + functional.cross_entropy(likeness.T, own)

    EpochTraining(
        Task(joint, batches, loss),
        TrainingParameters(
            learning_rate=_LEARNING_RATE,
            weight_decay=_WEIGHT_DECAY,
            warm_up=_WARM_UP,
            largest_gradient=_LARGEST_GRADIENT,
            averaged=1,
            epochs=1,
            steps=steps,
        ),
    ).run(report)
    joint.eval()
    return joint


def judge_embedding(
    joint: JointEmbedding, flights: Sequence[CachedFlight], seed: int = 0
) -> SharedSpace:
    """Return how well true pairs are separated from those of another flight or moment."""
    pairs = moment_pairs(flights)
    pairs = pairs[:: max(1, len(pairs) // _JUDGED)]
    if not pairs:
        return SharedSpace(0, np.nan, np.nan)
    rng, networks = np.random.default_rng(seed), (joint.camera, joint.radar)
    vectors: list[list[NDArray[np.float32]]] = [[], []]
    for first in range(0, len(pairs), _BATCH):
        grids = _read(flights, pairs[first : first + _BATCH], rng)
        with torch.no_grad():
            for made, network, grid in zip(vectors, networks, grids, strict=True):
                made.append(network(grid).numpy())
    likeness = np.concatenate(vectors[0]) @ np.concatenate(vectors[1]).T
    flight = np.array([pair.flight for pair in pairs])
    stamps = np.array([pair.stamp_ns for pair in pairs], np.int64)
    apart = np.abs(stamps[:, None] - stamps[None]) > _OTHER_MOMENT * NS_PER_S
    same = flight[:, None] == flight[None]
    true = np.diag(likeness)
    return SharedSpace(len(pairs), _auc(true, likeness[~same]), _auc(true, likeness[same & apart]))


def moment_pairs(flights: Sequence[CachedFlight]) -> list[MomentPair]:
    """Return all scans kept for comparison, each with the picture nearest to it."""
    pairs = []
    for number, flight in enumerate(flights):
        camera, radar = flight.units[CAMERA], flight.units[RADAR]
        pictures = np.flatnonzero(camera.usable)
        if not flight.levels(SCAN) or not len(pictures):
            continue
        for row, place in enumerate(range(0, len(radar.stamps_ns), SCAN_STEP)):
            stamp_ns = int(radar.stamps_ns[place])
            gaps = np.abs(camera.stamps_ns[pictures] - stamp_ns)
            nearest = int(gaps.argmin())
            if radar.usable[place] and gaps[nearest] <= _SAME_MOMENT * NS_PER_S:
                pairs.append(MomentPair(number, int(pictures[nearest]), row, stamp_ns))
    return pairs


def _read(
    flights: Sequence[CachedFlight], pairs: Sequence[MomentPair], rng: np.random.Generator
) -> tuple[Any, Any]:
    grids: tuple[list[Any], list[Any]] = ([], [])
    for pair in pairs:
        flight = flights[pair.flight]
        for made, kind, row in zip(grids, (CAMERA, SCAN), (pair.camera, pair.scan), strict=True):
            levels = flight.levels(kind)
            level = levels[int(rng.integers(len(levels)))]
            made.append(flight.grids[kind, level][row])
    pictures, scans = (torch.from_numpy(np.stack(made).astype(np.float32)) for made in grids)
    return pictures, scans


def _too_close(pairs: Sequence[MomentPair]) -> NDArray[np.bool_]:
    flight = np.array([pair.flight for pair in pairs])
    stamps = np.array([pair.stamp_ns for pair in pairs], np.int64)
    close = np.abs(stamps[:, None] - stamps[None]) <= _OTHER_MOMENT * NS_PER_S
    close &= flight[:, None] == flight[None]
    np.fill_diagonal(close, False)
    return np.asarray(close, np.bool_)


def _auc(true: NDArray[np.float32], false: NDArray[np.float32]) -> float:
    """Return the probability that a true pair is more alike than a false one."""
    if not len(true) or not len(false):
        return float('nan')
    order = np.sort(false)
    below, up_to = (np.searchsorted(order, true, side) for side in ('left', 'right'))
    return float(np.mean((below + up_to) / 2) / len(false))
