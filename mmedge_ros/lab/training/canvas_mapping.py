"""From a camera level's own cells to those of the canvas (feature_grid).

What a network says in cells of its input is carried to cells of the canvas, so that all levels
say it in the same place and the same units.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mmedge_ros.encoding.feature_grid import (
    CANVAS,
    CELL,
    COLUMNS,
    LEARNED_CHANNELS,
    ROWS,
    cell_middles,
    scale_shape,
)
from mmedge_ros.encoding.letterbox import Canvas


class GridProjection(NamedTuple):
    """A 1x1 convolution to the learned channels: weight (16, C) and bias (16,), float32."""

    weight: NDArray[np.float32]
    bias: NDArray[np.float32]

    @classmethod
    def empty(cls, channels: int) -> GridProjection:
        """Return the projection that puts out zeros, for networks not yet fitted."""
        return cls(
            np.zeros((LEARNED_CHANNELS, channels), np.float32),
            np.zeros(LEARNED_CHANNELS, np.float32),
        )


class Carried(NamedTuple):
    """How the predictions of one stride go from the input's cells to the canvas's.

    ``source`` (cells of the canvas,) is the input's cell, ``known`` whether there is one;
    ``offset`` (4, cells) and ``scale`` make l, t, r, b of the canvas's cell, in strides, from
    those of the input's.
    """

    source: NDArray[np.int64]
    known: NDArray[np.bool_]
    offset: NDArray[np.float32]
    scale: float


def carry(input_size: tuple[int, int], stride: int) -> Carried:
    """Give each cell of the input to the cell of the canvas whose middle is nearest to its own."""
    canvas = Canvas.in_input(CANVAS, input_size)
    columns, rows = (side // stride for side in input_size)
    y, x = np.mgrid[:rows, :columns]
    middles = (np.stack((x, y), axis=-1).reshape(-1, 2) + 0.5) * stride
    middles = (middles - np.array(canvas.middle)) / canvas.scale + np.array(CANVAS) / 2
    shape = scale_shape(stride)
    cells = np.clip(np.floor(middles / stride).astype(np.int64), 0, np.array(shape)[::-1] - 1)
    number = cells[:, 1] * shape[1] + cells[:, 0]
    source = np.full(shape[0] * shape[1], -1, np.int64)
    source[number[::-1]] = np.arange(len(number))[::-1]  # where two meet, the first stays
    known = source >= 0
    source = np.maximum(source, 0)
    own = cell_middles(stride).reshape(-1, 2)
    moved = ((own - middles[source]) / stride).T
    offset = np.concatenate((moved, -moved)).astype(np.float32) * known
    return Carried(source, known, offset, 1.0 / canvas.scale)


def resampling(input_size: tuple[int, int]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return matrices (30, h) and (w, 40) that resample features at stride 16 onto the grid.

    Linear between the middles of cells, and constant beyond the outermost.
    """
    canvas = Canvas.in_input(CANVAS, input_size)
    matrices = []
    for axis, cells in ((1, ROWS), (0, COLUMNS)):
        count = input_size[axis] // CELL
        middles = (np.arange(cells) + 0.5) * CELL
        on_input = (middles - CANVAS[axis] / 2) * canvas.scale + canvas.middle[axis]
        place = np.clip(on_input / CELL - 0.5, 0.0, count - 1.0)
        below = np.minimum(np.floor(place).astype(int), max(count - 2, 0))
        matrix = np.zeros((cells, count), np.float32)
        matrix[np.arange(cells), below] = 1.0 - (place - below)
        if count > 1:
            matrix[np.arange(cells), below + 1] += (place - below).astype(np.float32)
        matrices.append(matrix)
    return matrices[0], matrices[1].T
