"""A table over all configurations from a few numbers: one per choice of each modality.

Latencies of a pipeline nearly factorise: what one modality adds hardly depends on what the
other does. 9 numbers for each of two modalities then stand for 81 configurations.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mmedge_ros.configuration.configuration_grid import ConfigurationGrid

FloatArray = NDArray[np.float64]


class FactorKnowledge(NamedTuple):
    """A table rebuilt from ``numbers`` of its cells, and how well that went.

    ``r2`` is the share of the latencies' variance it explains, ``error`` the standard
    deviation of log(real / rebuilt).
    """

    table: FloatArray
    numbers: int
    r2: float
    error: float


def modality_shape(grid: ConfigurationGrid) -> tuple[int, ...]:
    """Return how many choices each modality has.

    Two neighbouring axes are one modality's rate and level; where they cannot be paired, each
    axis stands for itself.
    """
    shape = grid.shape
    if len(shape) % 2 or len(shape) < 4:
        return shape
    return tuple(a * b for a, b in zip(shape[::2], shape[1::2], strict=True))


def measured_factors(table: FloatArray, grid: ConfigurationGrid) -> FactorKnowledge:
    """Rebuild a table from the configurations that differ from the first in one modality.

    :param table: (size,) latencies, s
    """
    shape = modality_shape(grid)
    logs = np.log(table).reshape(shape)
    origin = (0,) * len(shape)
    rebuilt = np.full(shape, logs[origin])
    for modality in range(len(shape)):
        line = np.moveaxis(logs, modality, 0).reshape(shape[modality], -1)[:, 0]
        form = [1] * len(shape)
        form[modality] = -1
        rebuilt = rebuilt + (line - logs[origin]).reshape(form)
    return _judged(table, np.exp(rebuilt).ravel(), sum(shape))


def fitted_factors(table: FloatArray, grid: ConfigurationGrid) -> FactorKnowledge:
    """Rebuild a table from the factors that fit all of it best; what such numbers can reach."""
    shape = modality_shape(grid)
    cells = table.reshape(shape)
    rebuilt = np.full(shape, cells.mean())
    for modality in range(len(shape)):
        others = tuple(other for other in range(len(shape)) if other != modality)
        rebuilt = rebuilt + (cells.mean(axis=others, keepdims=True) - cells.mean())
    smallest = 0.1 * float(table.min())
    return _judged(table, np.maximum(rebuilt, smallest).ravel(), sum(shape))


def _judged(table: FloatArray, rebuilt: FloatArray, numbers: int) -> FactorKnowledge:
    spread = float(np.square(table - table.mean()).sum())
    missed = float(np.square(table - rebuilt).sum())
    r2 = 1.0 - missed / spread if spread > 0.0 else 1.0
    error = float(np.std(np.log(table / rebuilt)))
    return FactorKnowledge(rebuilt, numbers, r2, error)
