"""The head of feature fusion: a correction to what the camera's own head says, and ranges."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

from mmedge_ros.encoding.feature_grid import GRID_CLASSES, NOTHING, SEMANTIC_CHANNELS, VALUES
from mmedge_ros.lab.training.networks.aggregator import WIDTH
from mmedge_ros.lab.training.networks.aggregator_state import Aggregate
from mmedge_ros.lab.training.networks.standardise import Standardise, for_convolution

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
    begins at zero: untrained, the head says what the detector says.
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

    def forward(self, camera: Aggregate, radar: Aggregate) -> Tensor:
        # Facts double as masks: what was never seen must not look like a measured zero.
        seen, heard = (facts[:, :1, None, None] for facts in (camera.facts, radar.facts))
        size = camera.pooled.shape[2:]
        facts = torch.cat((camera.facts, radar.facts), dim=1)[:, :, None, None]
        inputs = (
            camera.pooled * seen,
            self.camera(camera.newest) * seen,
            radar.pooled * heard,
            self.radar(radar.newest) * heard,
            facts.expand(-1, -1, *size),
        )
        hidden = functional.relu(self.stem(for_convolution(torch.cat(inputs, dim=1))))
        learned = self.last(self.blocks(hidden)).float()
        semantics = torch.where(
            seen > 0, camera.newest[:, :SEMANTIC_CHANNELS].float(), self.nothing
        )
        base = torch.cat((semantics, self.ranges.expand(semantics.shape[0], -1, *size)), dim=1)
        return base + learned
