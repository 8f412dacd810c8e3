"""Brings the channels of grids to one scale, and into the layout that is fast."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional


class Standardise(nn.Module):  # type: ignore[misc]
    """Shifts and scales channels by constants that are set once from data and never learned."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.register_buffer('mean', torch.zeros(1, channels, 1, 1))
        self.register_buffer('scale', torch.ones(1, channels, 1, 1))

    def set_statistics(self, mean: Tensor, deviation: Tensor) -> None:
        """Enter means and standard deviations (C,); a channel without spread is only shifted."""
        spread = torch.where(deviation > 1e-3, deviation, torch.ones_like(deviation))
        self.mean.copy_(mean.reshape(self.mean.shape))
        self.scale.copy_((1.0 / spread).reshape(self.scale.shape))

    def forward(self, grid: Tensor) -> Tensor:
        return (grid - self.mean) * self.scale

    def then(self, layer: nn.Conv2d, grid: Tensor) -> Tensor:
        """Apply a 1 x 1 convolution to the standardised grid, in one go."""
        weight = layer.weight * self.scale
        bias = layer.bias - (weight * self.mean).sum(dim=(1, 2, 3))
        return functional.conv2d(for_convolution(grid), weight, bias)


def for_convolution(grid: Tensor) -> Tensor:
    """Return a grid as convolutions are fastest with it: several times over when training."""
    device = grid.device.type
    mixed = torch.is_autocast_enabled(device)
    grid = grid.to(torch.get_autocast_dtype(device) if mixed else torch.float32)
    return grid.contiguous(memory_format=torch.channels_last)
