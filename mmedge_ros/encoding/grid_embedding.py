"""Feature grids and embeddings as they leave an encoder: finite, in the types they travel in."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mmedge_ros.encoding import EncodingError
from mmedge_ros.encoding.feature_grid import EMBEDDING_SIZE
from mmedge_ros.encoding.tapped_network import TappedNetwork

_LARGEST_FLOAT16 = 65504.0


def as_grid(raw: NDArray[Any], place: str) -> NDArray[np.float16]:
    """Return a network's grid (1, C, H, W) as (C, H, W).

    :param place: names the file in messages
    :raises EncodingError: if it has another shape or values that are not finite
    """
    if raw.ndim != 4 or raw.shape[0] != 1:
        raise EncodingError(
            f'{place} puts out a grid of {list(raw.shape)}; '
            'it must be [1, channels, rows, columns]'
        )
    _require_finite('grid', raw, place)
    return np.asarray(np.clip(raw[0], -_LARGEST_FLOAT16, _LARGEST_FLOAT16), np.float16)


def as_embedding(raw: NDArray[Any], place: str) -> NDArray[np.float32]:
    """Return a network's embedding as (E,).

    :raises EncodingError: if it has values that are not finite
    """
    embedding = np.asarray(raw, np.float32).reshape(-1)
    _require_finite('embedding', embedding, place)
    return embedding


class GridEmbedding:
    """The network that makes embeddings of the grids of one modality; belongs to one thread.

    :raises EncodingError: if the file cannot be opened
    """

    def __init__(self, path: Path, threads: int = 1, device: str = 'cpu') -> None:
        self._network = TappedNetwork([path], threads, device)

    def of(self, grid: NDArray[np.float16]) -> NDArray[np.float32]:
        """Return the embedding (E,) of a grid (C, H, W).

        :raises EncodingError: if the network fails on it or puts out no finite numbers
        """
        # The grid as it travels, so that whoever gets it finds the same embedding.
        outputs = self._network.run(grid[None].astype(np.float32))
        embedding = as_embedding(outputs[self._network.outputs[0]], self._network.place)
        if len(embedding) != EMBEDDING_SIZE:
            raise EncodingError(
                f'{self._network.place} puts out an embedding of {len(embedding)} values; it must '
                f'have {EMBEDDING_SIZE}, use weights and manifest of one and the same bundle'
            )
        return embedding


def _require_finite(name: str, values: NDArray[Any], place: str) -> None:
    # Aggregation over time would carry one such value through all that follows.
    if not np.isfinite(values).all():
        raise EncodingError(
            f'{place} put out a {name} that is not finite; the unit is dropped. '
            'If it happens often, export the network in float32'
        )
