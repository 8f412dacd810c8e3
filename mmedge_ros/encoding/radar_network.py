"""The networks of a bundle's radar levels: returns to feature grid and embedding."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mmedge_ros.core.data_types import RADAR, RETURN_FIELDS
from mmedge_ros.encoding import EncodingError
from mmedge_ros.encoding.bundle.model_bundle import load_bundle
from mmedge_ros.encoding.feature_grid import RADAR_GRID
from mmedge_ros.encoding.radar_raster import radar_rasters
from mmedge_ros.encoding.tapped_network import GridEmbedding, TappedNetwork, Tensors, as_grid

INPUTS = ('view', 'birds_eye')
OUTPUT = 'grid'


class RadarNetwork:
    """The network of one radar level; belongs to one thread.

    :param stages: its file, or files in their order
    :param embedding: network that makes the embedding of the grid
    :raises EncodingError: if a file cannot be opened, or is no network on radar rasters
    """

    def __init__(
        self,
        stages: Sequence[Path],
        embedding: Path | None = None,
        threads: int = 1,
        device: str = 'cpu',
    ) -> None:
        self._network = TappedNetwork(stages, threads, device)
        place = self._network.place
        if set(self._network.inputs) != set(INPUTS) or OUTPUT not in self._network.outputs:
            raise EncodingError(
                f'{place} takes {", ".join(self._network.inputs)} and puts out '
                f'{", ".join(self._network.outputs)}; a radar level takes {" and ".join(INPUTS)} '
                f'and puts out {OUTPUT}'
            )
        self._network.keep([OUTPUT])
        self._embedding = GridEmbedding(embedding, threads, device) if embedding else None
        shape = self.encode(np.zeros((0, len(RETURN_FIELDS)), np.float32))[0].shape
        if shape != RADAR_GRID:
            raise EncodingError(
                f'{place} puts out a grid of {list(shape)}; it must be {list(RADAR_GRID)}, use '
                'weights and manifest of one and the same bundle'
            )

    @property
    def tapped(self) -> TappedNetwork:
        """The network itself, for runs that stop on the way; see ``inputs_of``."""
        return self._network

    def encode(
        self, returns: NDArray[np.float32]
    ) -> tuple[NDArray[np.float16], NDArray[np.float32]]:
        """Return grid (16, 30, 40) and embedding (E,), empty without a network for it.

        :param returns: (N, 5), as ``UnitFeatures`` has them
        :raises EncodingError: if the network fails on them
        """
        outputs = self._network.run(inputs_of(returns))
        grid = as_grid(outputs[OUTPUT], self._network.place)
        if self._embedding is None:
            return grid, np.zeros(0, np.float32)
        return grid, self._embedding.of(grid)


def inputs_of(returns: NDArray[np.float32]) -> Tensors:
    """Return the inputs of a radar level for a scan's returns (N, 5)."""
    rasters = radar_rasters(returns)
    return {name: raster[None] for name, raster in zip(INPUTS, rasters, strict=True)}


def open_radar_network(
    path: Path, level: str = '', device: str = 'cpu', threads: int = 1
) -> RadarNetwork:
    """Open the radar network of a bundle's level, of the default one for ''.

    :raises EncodingError: if that is not possible; the message names the file and the remedy
    """
    bundle = load_bundle(path)
    return RadarNetwork(bundle.radar_stages(level), bundle.embedding(RADAR), threads, device)
