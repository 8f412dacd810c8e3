"""Takes an aggregator apart into what depends on one unit, and what depends on two.

All of an encoding before its last rectification is linear in its parts: the unit's own channels,
those of the unit before, those of the unit after, and one change for each lag. The spatial
convolution is so applied to each part alone, once, whatever windows the parts meet in. See
`aggregation.unit_networks` for what is done with them.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

from mmedge_ros.aggregation.temporal_rules import LAGS
from mmedge_ros.lab.training.networks.aggregator import Aggregator

OTHERS = 2


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
        wide = OTHERS * width
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
            self.others_spatial.weight.copy_(aggregator.spatial.weight.repeat(OTHERS, 1, 1, 1))

    def forward(self, grid: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        unit = functional.relu(self.standardise.then(self.projection, grid))
        own = self.own_spatial(self.own(unit))
        others = self.others_spatial(self.others(unit))
        return unit, own, others.reshape(OTHERS, self.width, *grid.shape[2:])


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
        found: Tensor = self.spatial(self.rise(risen) + self.fall(fallen))
        return found


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
