"""Makes a short vector of a feature grid, so that the grids of two sensors can be compared."""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn import functional

from mmedge_ros.encoding.feature_grid import COLUMNS, EMBEDDING_SIZE, ROWS
from mmedge_ros.lab.training.networks.standardise import Standardise

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
