"""Feature grids and fusion maps with boxes where a test wants them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from mmedge_ros.core.data_types import Box
from mmedge_ros.encoding.feature_grid import (
    CAMERA_GRID,
    CELL,
    COLUMNS,
    GRID_CLASSES,
    ROWS,
    canvas_placement,
    empty_semantics,
)

# First channel of the values of a stride, and of its ln(distance) behind the semantics.
_FIRST = {8: 0, 16: 32, 32: 40}
_DISTANCE = {8: 48, 16: 52, 32: 53}


class Cell(NamedTuple):
    """A box in pixels of the picture, told by one cell of a stride."""

    box: Box
    stride: int = 16
    label: str = 'person'
    score: float = 0.9
    distance: float = 5.0


def maps_with(cells: Sequence[Cell], size: tuple[int, int]) -> np.ndarray:
    """Maps (54, 30, 40) float32 that hold these boxes and nothing else."""
    maps = np.concatenate([empty_semantics(), np.zeros((6, ROWS, COLUMNS), np.float32)])
    for cell in cells:
        edges = _on_canvas(cell.box, size)
        row, column = written(cell.box, cell.stride, size)
        middle_x, middle_y = (column + 0.5) * cell.stride, (row + 0.5) * cell.stride
        distances = np.array(
            [middle_x - edges.x0, middle_y - edges.y0, edges.x1 - middle_x, edges.y1 - middle_y]
        )
        values = np.full(8, -10.0)
        values[GRID_CLASSES.index(cell.label)] = math.log(cell.score / (1.0 - cell.score))
        values[4:] = distances / cell.stride
        first, far = _FIRST[cell.stride], _DISTANCE[cell.stride]
        if cell.stride == 8:
            sub = (row % 2) * 2 + column % 2
            first, far = sub * 8, far + sub
            where = (slice(row // 2, row // 2 + 1), slice(column // 2, column // 2 + 1))
        elif cell.stride == 16:
            where = (slice(row, row + 1), slice(column, column + 1))
        else:
            where = (slice(2 * row, 2 * row + 2), slice(2 * column, 2 * column + 2))
        maps[(slice(first, first + 8), *where)] = values[:, None, None]
        maps[(far, *where)] = math.log(cell.distance)
    return maps


def camera_grid_with(cells: Sequence[Cell], size: tuple[int, int] = (640, 480)) -> np.ndarray:
    """A camera's grid (64, 30, 40) float16 whose semantics hold these boxes."""
    grid = np.zeros(CAMERA_GRID, np.float16)
    grid[:48] = maps_with(cells, size)[:48]
    return grid


def written(box: Box, stride: int, size: tuple[int, int]) -> tuple[int, int]:
    """Row and column of the cell that a box's middle lies in."""
    edges = _on_canvas(box, size)
    rows, columns = ROWS * CELL // stride, COLUMNS * CELL // stride
    column = min(int((edges.x0 + edges.x1) / 2 / stride), columns - 1)
    return min(int((edges.y0 + edges.y1) / 2 / stride), rows - 1), column


def _on_canvas(box: Box, size: tuple[int, int]) -> Box:
    p = canvas_placement(*size)
    return Box(
        box.x0 * p.x_scale + p.x_offset,
        box.y0 * p.y_scale + p.y_offset,
        box.x1 * p.x_scale + p.x_offset,
        box.y1 * p.y_scale + p.y_offset,
    )
