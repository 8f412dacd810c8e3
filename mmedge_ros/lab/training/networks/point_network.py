"""A rival of the radar's networks that takes the returns themselves instead of rasters of them.

Each return passes through layers of its own, together with what all of them have in common
(PointNet: Qi et al., arXiv 1612.00593); what they come to is laid down where each of them lies in
the radar's view and spread over the cells around.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from mmedge_ros.encoding.feature_grid import COLUMNS, RADAR_CHANNELS, ROWS

# Of a return: row and column in the view from -1 to 1, and what `return_values` says of it.
POINT_VALUES = 7
_WIDTH, _CANVAS = 48, 24
_SIDE = 5


class PointNetwork(nn.Module):  # type: ignore[misc]
    """Returns of a scan to a feature grid, as `RadarNetwork` makes one of rasters."""

    def __init__(self) -> None:
        super().__init__()
        self.own = nn.Sequential(
            nn.Linear(POINT_VALUES, _WIDTH), nn.ReLU(), nn.Linear(_WIDTH, _WIDTH), nn.ReLU()
        )
        self.joined = nn.Sequential(
            nn.Linear(2 * _WIDTH, _WIDTH), nn.ReLU(), nn.Linear(_WIDTH, _CANVAS), nn.ReLU()
        )
        # Convolutions do not know where they are; elevation is the row's number.
        self.place = nn.Parameter(torch.zeros(1, _CANVAS, ROWS, 1))
        self.first = nn.Conv2d(2 * _CANVAS, _CANVAS, _SIDE, padding=_SIDE // 2)
        self.second = nn.Conv2d(_CANVAS, _CANVAS, _SIDE, padding=_SIDE // 2)
        self.last = nn.Conv2d(_CANVAS, RADAR_CHANNELS, 1)

    def forward(self, points: Tensor, cells: Tensor) -> Tensor:
        """Return the grid (B, 16, 30, 40) of returns.

        :param points: (B, N, 7)
        :param cells: (B, N), the place of each in the 1200 cells of the view, row by row; -1
            where there is none
        """
        there = (cells >= 0).unsqueeze(2).to(points.dtype)
        own = self.own(points) * there
        common = own.amax(dim=1, keepdim=True).expand_as(own)
        made = self.joined(torch.cat((own, common), dim=2)) * there
        at = cells.clamp(min=0).unsqueeze(1).expand(-1, _CANVAS, -1)
        canvas = made.new_zeros(len(points), _CANVAS, ROWS * COLUMNS)
        # Nothing lies below zero, so that cells without returns stay empty.
        canvas = canvas.scatter_reduce(2, at, made.transpose(1, 2), 'amax')
        view = canvas.reshape(-1, _CANVAS, ROWS, COLUMNS)
        column = view.amax(dim=2, keepdim=True).expand_as(view)
        hidden = functional.relu(self.first(torch.cat((view, column), dim=1)) + self.place)
        hidden = functional.relu(hidden + self.second(hidden))
        grid: Tensor = self.last(hidden)
        return grid
