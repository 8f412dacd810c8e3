"""The networks of the radar's levels: residual networks on rasters of a scan's returns.

They have the depths of ResNet-18, 34 and 50 (He et al., arXiv 1512.03385), but a tenth of their
width, and halve the resolution only once: a scan is a few dozen points. One branch sees the
radar's view, one the scene from above; the latter's features are pooled over range by
attention and spread over the rows of the view.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from mmedge_ros.encoding.feature_grid import RADAR_CHANNELS, ROWS
from mmedge_ros.encoding.radar_raster import RANGE_BINS, RASTER_CHANNELS

_USUAL_RANGE = 12.0  # m


class RadarShape(NamedTuple):
    """Blocks and widths of the four stages; bottleneck blocks put out twice their width."""

    blocks: tuple[int, int, int, int]
    widths: tuple[int, int, int, int]
    bottleneck: bool = False


RADAR_SHAPES = {
    'small': RadarShape((2, 2, 2, 2), (12, 20, 24, 32)),
    'medium': RadarShape((3, 4, 6, 3), (12, 24, 32, 40)),
    'large': RadarShape((3, 4, 6, 3), (16, 32, 48, 48), bottleneck=True),
}


class RadarUnitNetwork(nn.Module):  # type: ignore[misc]
    """Rasters of a scan to a feature grid.

    ``stages`` run one after another; each takes the tensors named in its ``reads`` and puts out
    that named in ``writes``.

    :param level: small, medium or large
    """

    def __init__(self, level: str) -> None:
        super().__init__()
        shape = RADAR_SHAPES[level]
        outer = [2 * width if shape.bottleneck else width for width in shape.widths]
        self.stages = nn.ModuleList(
            (
                _Sensed(shape, outer[0]),
                _Halved(shape, 1, outer[0], ('p1',), ('p2',)),
                _Halved(shape, 2, outer[1], ('p2',), ('p3',)),
                _Halved(shape, 3, outer[2], ('p1', 'p3'), ('grid',), full=outer[0]),
            )
        )

    def forward(self, view: Tensor, birds_eye: Tensor) -> Tensor:
        """Return the grid (B, 16, 30, 40) of rasters (B, 6, 30, 40) and (B, 6, 32, 40)."""
        tensors = {'view': view, 'birds_eye': birds_eye}
        for stage in self.stages:
            tensors[stage.writes[0]] = stage(*(tensors[name] for name in stage.reads))
        return tensors['grid']


class RadarProbe(nn.Module):  # type: ignore[misc]
    """Reads from a grid, cell by cell, where people are and how far; used in training only."""

    def __init__(self) -> None:
        super().__init__()
        self.read = nn.Conv2d(RADAR_CHANNELS, 2, 1)
        with torch.no_grad():
            self.read.bias.copy_(torch.tensor((-4.0, math.log(_USUAL_RANGE))))

    def forward(self, grid: Tensor) -> tuple[Tensor, Tensor]:
        """Return the logit that a person is there and ln(range / m), both (B, 1, 30, 40)."""
        occupancy, log_range = self.read(grid).split(1, dim=1)
        return occupancy, log_range


class _Sensed(nn.Module):  # type: ignore[misc]
    """Both branches in full resolution, and what they know together (B, C, 30, 40)."""

    reads = ('view', 'birds_eye')
    writes = ('p1',)

    def __init__(self, shape: RadarShape, outer: int) -> None:
        super().__init__()
        self.view = _Branch(shape, outer, ROWS)
        self.birds_eye = _Branch(shape, outer, RANGE_BINS)
        self.attention = nn.Conv2d(outer, 1, 1)
        self.join = _convolution(2 * outer, outer, 1)

    def forward(self, view: Tensor, birds_eye: Tensor) -> Tensor:
        seen, above = self.view(view), self.birds_eye(birds_eye)
        share = self.attention(above).softmax(dim=2)
        column = (above * share).sum(dim=2, keepdim=True).expand_as(seen)
        return functional.relu(self.join(torch.cat((seen, column), dim=1)))


class _Branch(nn.Module):  # type: ignore[misc]
    def __init__(self, shape: RadarShape, outer: int, rows: int) -> None:
        super().__init__()
        self.first = _convolution(RASTER_CHANNELS, outer, 3)
        # Convolutions do not know where they are; range and elevation are the row's number.
        self.place = nn.Parameter(torch.zeros(1, outer, rows, 1))
        self.blocks = _blocks(shape, 0, outer)

    def forward(self, raster: Tensor) -> Tensor:
        return self.blocks(functional.relu(self.first(raster) + self.place))


class _Halved(nn.Module):  # type: ignore[misc]
    """A stage in half resolution; with ``full`` it returns to the channels and cells of a grid.

    :param channels: of what it reads last
    """

    def __init__(
        self,
        shape: RadarShape,
        number: int,
        channels: int,
        reads: tuple[str, ...],
        writes: tuple[str],
        full: int = 0,
    ) -> None:
        super().__init__()
        self.reads, self.writes = reads, writes
        outer = shape.widths[number] * (2 if shape.bottleneck else 1)
        self.first = _convolution(channels, outer, 3, stride=2 if number == 1 else 1)
        self.blocks = _blocks(shape, number, outer)
        self.up = nn.Conv2d(outer, RADAR_CHANNELS, 1) if full else None
        self.beside = nn.Conv2d(full, RADAR_CHANNELS, 1, bias=False) if full else None

    def forward(self, *tensors: Tensor) -> Tensor:
        hidden = self.blocks(functional.relu(self.first(tensors[-1])))
        if self.up is None or self.beside is None:
            return hidden
        coarse = functional.interpolate(self.up(hidden), scale_factor=2.0, mode='nearest')
        return coarse + self.beside(tensors[0])


class _Block(nn.Module):  # type: ignore[misc]
    """A residual block; its last normalisation starts at zero, so that it begins as nothing."""

    def __init__(self, outer: int, width: int, bottleneck: bool) -> None:
        super().__init__()
        if bottleneck:
            layers = [_convolution(outer, width, 1), nn.ReLU(), _convolution(width, width, 3)]
            layers += [nn.ReLU(), _convolution(width, outer, 1)]
        else:
            layers = [_convolution(outer, width, 3), nn.ReLU(), _convolution(width, outer, 3)]
        nn.init.zeros_(layers[-1][1].weight)
        self.layers = nn.Sequential(*layers)

    def forward(self, hidden: Tensor) -> Tensor:
        return functional.relu(hidden + self.layers(hidden))


def _blocks(shape: RadarShape, number: int, outer: int) -> nn.Sequential:
    width = shape.widths[number]
    return nn.Sequential(
        *(_Block(outer, width, shape.bottleneck) for _ in range(shape.blocks[number]))
    )


def _convolution(channels: int, made: int, side: int, stride: int = 1) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(channels, made, side, stride, side // 2, bias=False), nn.BatchNorm2d(made)
    )
