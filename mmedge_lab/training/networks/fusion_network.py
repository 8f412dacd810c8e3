"""Feature fusion as one network: two aggregators, and a head.

The head corrects the output of the camera's own head, and adds ranges.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from mmedge_lab.training.fusion_settings import PARTS
from mmedge_lab.training.networks.aggregator import (
    WIDTH,
    Aggregator,
    NetworkAggregate,
    Standardise,
    for_convolution,
)
from mmedge_ros.encoding.feature_grid import (
    CAMERA_CHANNELS,
    GRID_CLASSES,
    NOTHING,
    SEMANTIC_CHANNELS,
    VALUES,
)
from mmedge_ros.tracking.radar_grid import RADAR_INPUT

RADAR_CHANNELS = RADAR_INPUT[0]


# One for each cell of a scale that lies in a grid cell.
RANGES = SEMANTIC_CHANNELS // VALUES
MAPS = SEMANTIC_CHANNELS + RANGES
# Where most people are met, in m; training moves it.
_FIRST_RANGE = 15.0
_HIDDEN = 48
# Seven cells around each cell decide with it; the middle block looks farther.
_DILATIONS = (1, 2, 1)
_FACTS = 3


def nothing_seen() -> Tensor:
    """Return the semantics (48,) of a cell in which there is nothing."""
    kind = torch.arange(SEMANTIC_CHANNELS) % VALUES
    return torch.where(kind < len(GRID_CLASSES), NOTHING, 0.0)


class ResidualBlock(nn.Module):  # type: ignore[misc]
    """Adds to its input what it sees around each cell."""

    def __init__(self, width: int, dilation: int) -> None:
        super().__init__()
        self.around = nn.Conv2d(width, width, 3, padding=dilation, dilation=dilation)
        self.mix = nn.Conv2d(width, width, 1)

    def forward(self, x: Tensor) -> Tensor:
        return functional.relu(x + self.mix(functional.relu(self.around(x))))


class FusionHead(nn.Module):  # type: ignore[misc]
    """Turns the aggregates of camera and radar into maps (B, 54, H, V).

    Channels 0..47 are laid out as the semantics of a camera grid: those of the newest camera
    unit (or `nothing_seen`) plus a learned correction. Channels 48..53 are the logarithms of
    ranges in m: of the four cells of stride 8, of stride 16, of stride 32. The last layer
    begins at zero: untrained, the head puts out what the detector does.
    """

    def __init__(self, camera_channels: int, radar_channels: int, width: int = WIDTH) -> None:
        super().__init__()
        inputs = camera_channels + radar_channels + 2 * (width + _FACTS)
        self.camera = Standardise(camera_channels)
        self.radar = Standardise(radar_channels)
        self.stem = nn.Conv2d(inputs, _HIDDEN, 1)
        self.blocks = nn.Sequential(*(ResidualBlock(_HIDDEN, d) for d in _DILATIONS))
        self.last = nn.Conv2d(_HIDDEN, MAPS, 1)
        nn.init.zeros_(self.last.weight)
        nn.init.zeros_(self.last.bias)
        self.register_buffer('nothing', nothing_seen().reshape(1, -1, 1, 1), persistent=False)
        ranges = torch.full((1, RANGES, 1, 1), math.log(_FIRST_RANGE))
        self.register_buffer('ranges', ranges, persistent=False)

    def forward(self, camera: NetworkAggregate, radar: NetworkAggregate) -> Tensor:
        # Facts double as masks: a sensor without units must not look like a measured zero.
        seen, scanned = (facts[:, :1, None, None] for facts in (camera.facts, radar.facts))
        size = camera.pooled.shape[2:]
        facts = torch.cat((camera.facts, radar.facts), dim=1)[:, :, None, None]
        inputs = (
            camera.pooled * seen,
            self.camera(camera.newest) * seen,
            radar.pooled * scanned,
            self.radar(radar.newest) * scanned,
            facts.expand(-1, -1, *size),
        )
        hidden = functional.relu(self.stem(for_convolution(torch.cat(inputs, dim=1))))
        learned = self.last(self.blocks(hidden)).float()
        semantics = torch.where(
            seen > 0, camera.newest[:, :SEMANTIC_CHANNELS].float(), self.nothing
        )
        base = torch.cat((semantics, self.ranges.expand(semantics.shape[0], -1, *size)), dim=1)
        return base + learned


class FusionBatch(NamedTuple):
    """Windows to be fused: B of them, with room for N camera and M radar units each.

    ``camera`` (B, N, 64, 30, 40) and ``radar`` (B, M, 20, 30, 40) are grids in any order, float
    of any size; ``*_seconds`` (B, N) and (B, M) from a unit's stamp to the window's end in s;
    ``*_valid`` 0 where there is no unit (missing, late or skipped). N and M may be 0.
    """

    camera: Tensor
    camera_seconds: Tensor
    camera_valid: Tensor
    radar: Tensor
    radar_seconds: Tensor
    radar_valid: Tensor


class FusionNetwork(nn.Module):  # type: ignore[misc]
    """Grids of a window's units to maps (B, 54, 30, 40); see `FusionHead` for their channels.

    :param without: parts of the aggregation that are left out, see `FusionSettings`
    """

    def __init__(self, without: Collection[str] = ()) -> None:
        super().__init__()
        switches = {part: part not in without for part in PARTS}
        self.camera = Aggregator(CAMERA_CHANNELS, **switches)
        self.radar = Aggregator(RADAR_CHANNELS, **switches)
        self.head = FusionHead(CAMERA_CHANNELS, RADAR_CHANNELS)

    def set_statistics(self, camera: tuple[Tensor, Tensor], radar: tuple[Tensor, Tensor]) -> None:
        """Enter mean and standard deviation per channel, (64,) and (20,), before training."""
        for mean_and_deviation, encoder, standardise in (
            (camera, self.camera, self.head.camera),
            (radar, self.radar, self.head.radar),
        ):
            encoder.standardise.set_statistics(*mean_and_deviation)
            standardise.set_statistics(*mean_and_deviation)

    def forward(self, batch: FusionBatch) -> Tensor:
        camera = self.camera(batch.camera, batch.camera_seconds, batch.camera_valid)
        radar = self.radar(batch.radar, batch.radar_seconds, batch.radar_valid)
        maps: Tensor = self.head(camera, radar)
        return maps
