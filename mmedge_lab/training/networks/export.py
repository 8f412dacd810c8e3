"""Exports a fusion network for flight: what is done with each unit, and the head.

For each modality ``project_<modality>.onnx`` and ``change_<modality>_<lag>.onnx`` are the parts
of an aggregator that `unit_networks` describes; when they are combined, and which units are
compared, is decided in flight by the rules of `temporal_rules`. ``fuse.onnx`` takes what a
window is pooled to, ``camera_pooled`` and ``radar_pooled`` (1, W, 30, 40), the newest grids
``camera_newest`` and ``radar_newest`` (1, C, 30, 40), ``camera_facts`` and ``radar_facts``
(1, 3), see `NetworkAggregate`, and puts out ``maps`` (1, 54, 30, 40).

All of an encoding before its last rectification is linear in its parts: the unit's own channels,
those of the unit before, those of the unit after, and one change for each lag. The spatial
convolution is so applied to each part alone, once, whatever windows the parts meet in.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from mmedge_lab.training.network_export import (
    SMALLEST_STORED_HALF,
    greatest_difference,
    write_graph,
)
from mmedge_lab.training.networks.aggregator import Aggregator, NetworkAggregate
from mmedge_lab.training.networks.fusion_network import FusionBatch, FusionNetwork
from mmedge_ros.core.data_types import CAMERA, NS_PER_S, RADAR
from mmedge_ros.encoding.feature_grid import COLUMNS, ROWS
from mmedge_ros.windows.fusion_runtime import FusionNetworkRuntime
from mmedge_ros.windows.temporal_rules import LAGS
from mmedge_ros.windows.unit_networks import POOLING

# Sums in another order differ by less; a wrong graph by far more.
_LARGEST_DIFFERENCE = 1e-3
_WINDOWS = 4
_WINDOW = 0.5
_PERIODS = {CAMERA: 1 / 30, RADAR: 1 / 20}


_OTHERS = 2


class UnitProjection(nn.Module):  # type: ignore[misc]
    """Grid (1, C, H, V) to a unit (1, W, H, V), and what it adds to encodings.

    To its own (1, W, H, V), to that of the unit after it, and to that of the unit before it:
    (2, W, H, V); to its own it adds these as well where there is no such unit.
    """

    def __init__(self, aggregator: Aggregator) -> None:
        super().__init__()
        self.width = width = aggregator.width
        self.standardise = aggregator.standardise
        self.projection = aggregator.projection
        self.own = nn.Conv2d(width, width, 1)
        self.own_spatial = aggregator.spatial
        # Without biases, which are a unit's own.
        wide = _OTHERS * width
        self.others = nn.Conv2d(width, wide, 1, bias=False)
        self.others_spatial = nn.Conv2d(wide, wide, 3, padding=1, groups=wide, bias=False)
        onward, kept, back = (
            layer.weight
            for layer in (aggregator.from_previous, aggregator.from_own, aggregator.from_following)
        )
        zeros = [torch.zeros_like(part) for part in (onward, kept, back)]
        with torch.no_grad():
            if aggregator.shift:
                own = (zeros[0], kept, zeros[2])
                others = ((onward, zeros[1], zeros[2]), (zeros[0], zeros[1], back))
            else:
                own, others = (onward, kept, back), (tuple(zeros), tuple(zeros))
            # Channels of a unit lie in this order: onward, kept, back.
            self.own.weight.copy_(torch.cat(own, dim=1))
            self.own.bias.copy_(aggregator.from_own.bias)
            self.others.weight.copy_(torch.cat([torch.cat(part, dim=1) for part in others]))
            self.others_spatial.weight.copy_(aggregator.spatial.weight.repeat(_OTHERS, 1, 1, 1))

    def forward(self, grid: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        unit = functional.relu(self.standardise.then(self.projection, grid))
        own = self.own_spatial(self.own(unit))
        others = self.others_spatial(self.others(unit))
        return unit, own, others.reshape(_OTHERS, self.width, *grid.shape[2:])


class UnitChange(nn.Module):  # type: ignore[misc]
    """What a unit's change since an earlier one adds to its encoding, (1, W, H, V) all.

    :param lag: place of the lag in LAGS
    """

    def __init__(self, aggregator: Aggregator, lag: int) -> None:
        super().__init__()
        self.rise, self.fall = _change_layers(aggregator, lag)
        width = aggregator.width
        self.spatial = nn.Conv2d(width, width, 3, padding=1, groups=width, bias=False)
        with torch.no_grad():
            self.spatial.weight.copy_(aggregator.spatial.weight)

    def forward(self, unit: Tensor, earlier: Tensor) -> Tensor:
        change = unit - earlier
        risen, fallen = functional.relu(change), functional.relu(-change)
        encoded: Tensor = self.spatial(self.rise(risen) + self.fall(fallen))
        return encoded


def _change_layers(aggregator: Aggregator, lag: int) -> Sequence[nn.Conv2d]:
    """Return the layers of rises and falls; without differences they give zeros."""
    if aggregator.differences:
        layers = list(aggregator.from_changes)
        each = len(layers) // len(LAGS)
        return layers[each * lag : each * (lag + 1)]
    silent = [nn.Conv2d(aggregator.width, aggregator.width, 1, bias=False) for _ in range(2)]
    for layer in silent:
        nn.init.zeros_(layer.weight)
    return silent


class FusionExportCheck(NamedTuple):
    """Greatest differences between torch and ONNX Runtime over some random windows, as shares."""

    windows: int
    pooled: float
    maps: float


class _Fuse(nn.Module):  # type: ignore[misc]
    def __init__(self, network: FusionNetwork) -> None:
        super().__init__()
        self.head = network.head

    def forward(self, *inputs: Tensor) -> Tensor:
        half = len(NetworkAggregate._fields)
        maps: Tensor = self.head(
            NetworkAggregate(*inputs[:half]), NetworkAggregate(*inputs[half:])
        )
        return maps


def export_fusion(
    network: FusionNetwork, folder: Path, *, half: bool = True, seed: int = 0
) -> FusionExportCheck:
    """Write the graphs of FUSION_PARTS into a folder, and check them on random streams.

    :param network: trained; it stays as it is
    :param half: store weights as float16; arithmetic stays float32
    :raises TrainingError: if the graphs do not compute what the network does
    :raises OSError: if a file cannot be written
    """
    still = copy.deepcopy(network).float().cpu().eval()
    _settle_standardisation(still)
    if half:
        _round_to_float16(still)
    empty = []
    for modality, aggregator in ((CAMERA, still.camera), (RADAR, still.radar)):
        grid = torch.zeros(1, aggregator.channels, ROWS, COLUMNS)
        unit = torch.zeros(1, aggregator.width, ROWS, COLUMNS)
        empty += [unit, grid, torch.zeros(1, 3)]
        write_graph(
            UnitProjection(aggregator).eval(),
            {'grid': grid},
            ['unit', 'own', 'others'],
            folder / f'project_{modality}.onnx',
            {POOLING: _pooling_note(aggregator)},
            half=half,
        )
        for lag in range(len(LAGS)):
            write_graph(
                UnitChange(aggregator, lag).eval(),
                {'unit': unit, 'earlier': unit},
                ['change'],
                folder / f'change_{modality}_{lag + 1}.onnx',
                half=half,
            )
    names = [
        f'{modality}_{part}' for modality in (CAMERA, RADAR) for part in NetworkAggregate._fields
    ]
    inputs = dict(zip(names, empty, strict=True))
    write_graph(_Fuse(still).eval(), inputs, ['maps'], folder / 'fuse.onnx', half=half)
    return check_fusion_export(still, folder, seed)


def check_fusion_export(network: FusionNetwork, folder: Path, seed: int = 0) -> FusionExportCheck:
    """Compare a network with its graphs on random windows, as they are run in flight.

    :param network: with the weights that were exported
    :raises TrainingError: if they differ by more than rounding explains
    """
    runtime = FusionNetworkRuntime.from_folder(folder)
    rng = np.random.default_rng(seed)
    worst = dict.fromkeys(('pooled', 'maps'), 0.0)
    for _ in range(_WINDOWS):
        units = {modality: _random_units(runtime, modality, rng) for modality in _PERIODS}
        states = {name: steps.begin(0) for name, steps in runtime.aggregators.items()}
        for name, (grids, seconds) in units.items():
            steps = runtime.aggregators[name]
            for grid, before in zip(grids, seconds, strict=True):
                stamp_ns = -round(before * NS_PER_S)
                states[name] = steps.step(states[name], steps.unit(grid), stamp_ns)
        with torch.no_grad():
            batch = FusionBatch(*(x for pair in units.values() for x in _as_batch(*pair)))
            wanted = {
                CAMERA: network.camera(*batch[:3]).pooled[0].numpy(),
                RADAR: network.radar(*batch[3:]).pooled[0].numpy(),
            }
            maps = network(batch)[0].numpy()
        exported = runtime.finish(states)
        pairs = [('maps', maps, runtime.fuse(states))]
        pairs += [('pooled', pooled, exported[name].pooled) for name, pooled in wanted.items()]
        for what, right, made in pairs:
            apart = greatest_difference(right, made, _LARGEST_DIFFERENCE, 'fusion')
            worst[what] = max(worst[what], apart)
    return FusionExportCheck(_WINDOWS, worst['pooled'], worst['maps'])


def _pooling_note(aggregator: Aggregator) -> str:
    decays = functional.softplus(aggregator.decay.detach()).tolist()
    return json.dumps({'decays': decays, 'newest_only': not aggregator.aggregation})


def _settle_standardisation(network: FusionNetwork) -> None:
    """Put the aggregators' standardisation into their weights, which are what is stored."""
    for aggregator in (network.camera, network.radar):
        layer, standardise = aggregator.projection, aggregator.standardise
        with torch.no_grad():
            weight = layer.weight * standardise.scale
            layer.bias -= (weight * standardise.mean).sum(dim=(1, 2, 3))
            layer.weight.copy_(weight)
        channels = standardise.mean.numel()
        standardise.set_statistics(torch.zeros(channels), torch.ones(channels))


def _round_to_float16(network: nn.Module) -> None:
    """Round what will be stored as float16, so that the check compares like with like."""
    for tensor in (*network.parameters(), *network.buffers()):
        rounded = tensor.detach().half().float()
        if tensor.numel() >= SMALLEST_STORED_HALF and bool(rounded.isfinite().all()):
            tensor.data.copy_(rounded)


def _random_units(
    runtime: FusionNetworkRuntime, modality: str, rng: np.random.Generator
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return grids (N, C, H, V) and their seconds to the end (N,), oldest first, some lost."""
    places = np.arange(_WINDOW, 0.0, -_PERIODS[modality])
    seconds = places[rng.random(len(places)) < rng.uniform(0.2, 1.0)].astype(np.float32)
    shape = (len(seconds), *runtime.aggregators[modality].grid_shape)
    return rng.normal(0.0, 3.0, shape).astype(np.float32), seconds


def _as_batch(
    grids: NDArray[np.float32], seconds: NDArray[np.float32]
) -> tuple[Tensor, Tensor, Tensor]:
    return (
        torch.from_numpy(grids)[None],
        torch.from_numpy(seconds)[None],
        torch.ones(1, len(seconds)),
    )
