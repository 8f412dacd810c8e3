"""The feature grids that every level of an encoder puts out: one shape, one meaning.

A picture of any size is fitted onto a *canvas* of 640 x 480 px, aspect kept, centred. A grid
has 30 x 40 cells of 16 canvas px. A camera's grid is (64, 30, 40): 48 channels of *semantics*,
what the level's own detection head says, and 16 learned ones. A radar's is (16, 30, 40) in a
pinhole view along the sensor's x axis with the same opening as the canvas has columns and rows.

Semantics hold three *scales*, the strides of the detection head; each says for its cells 4 class
logits, clipped to +-10, then the distances l, t, r, b from the middle of the cell to the edges of
the box, in strides. Channel ``sub * 8 + k`` (0..31) is value k of the stride 8 cell in row
``sub // 2`` and column ``sub % 2`` of a grid cell; 32..39 are stride 16; 40..47 are stride 32,
repeated over the 2 x 2 grid cells that each of its cells covers.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mmedge_ros.encoding.letterbox import LetterboxPlacement, place

GRID_FORMAT = 1  # raise it when shape or meaning of a grid changes
GRID_CLASSES = ('person', 'cyclist', 'car', 'dog')
CANVAS = (640, 480)  # width and height, px
ROWS, COLUMNS = 30, 40
CELL = 16  # canvas px
STRIDES = (8, 16, 32)
VALUES = len(GRID_CLASSES) + 4  # per cell of a scale: logits, then l, t, r, b
SEMANTIC_CHANNELS = 6 * VALUES
LEARNED_CHANNELS = 16
CAMERA_CHANNELS = SEMANTIC_CHANNELS + LEARNED_CHANNELS
RADAR_CHANNELS = 16
EMBEDDING_SIZE = 32
LARGEST_LOGIT = 10.0
NOTHING = -LARGEST_LOGIT  # the logit where a level makes no prediction for a cell

CAMERA_GRID = (CAMERA_CHANNELS, ROWS, COLUMNS)
RADAR_GRID = (RADAR_CHANNELS, ROWS, COLUMNS)
# What fusion makes of grids: semantics, and a distance for each cell of each scale.
MAP_SHAPE = (SEMANTIC_CHANNELS + 6, ROWS, COLUMNS)

# Tangents of half the opening angles of the radar's view, to the sides and up or down.
VIEW_HALF_WIDTH, VIEW_HALF_HEIGHT = 0.8, 0.6

Floats = NDArray[np.floating]


class Scales(NamedTuple):
    """Semantics taken apart: (8, 60, 80) at stride 8, (8, 30, 40) at 16, (8, 15, 20) at 32."""

    fine: Floats
    middle: Floats
    coarse: Floats


def canvas_placement(width: int, height: int) -> LetterboxPlacement:
    """Return where a picture lies on the canvas: canvas = picture * scale + offset, px."""
    return place(width, height, CANVAS, centred=True)


def scale_shape(stride: int) -> tuple[int, int]:
    """Return rows and columns of the cells of a stride that cover the canvas."""
    return CANVAS[1] // stride, CANVAS[0] // stride


def cell_middles(stride: int) -> NDArray[np.float32]:
    """Return the middles (rows, columns, 2) of the cells of a stride: x, y in canvas px."""
    rows, columns = scale_shape(stride)
    y, x = np.mgrid[:rows, :columns]
    return ((np.stack((x, y), axis=-1) + 0.5) * stride).astype(np.float32)


def split_semantics(semantics: Floats) -> Scales:
    """Take the semantics (48 or more, 30, 40) of a grid apart by scale; further channels stay.

    The arrays have the type of ``semantics``.
    """
    fine = semantics[: 4 * VALUES].reshape(2, 2, VALUES, ROWS, COLUMNS)
    fine = fine.transpose(2, 3, 0, 4, 1).reshape(VALUES, 2 * ROWS, 2 * COLUMNS)
    coarse = semantics[5 * VALUES : 6 * VALUES, ::2, ::2]
    return Scales(fine, semantics[4 * VALUES : 5 * VALUES], coarse)


def empty_semantics() -> NDArray[np.float32]:
    """Return semantics (48, 30, 40) that say that nothing is there."""
    semantics = np.zeros((6, VALUES, ROWS, COLUMNS), np.float32)
    semantics[:, : len(GRID_CLASSES)] = NOTHING
    return semantics.reshape(SEMANTIC_CHANNELS, ROWS, COLUMNS)


def view_positions(points: Floats) -> NDArray[np.float64]:
    """Project points onto a radar's grid.

    :param points: (N, 3) m in the radar's frame, x forward, y left, z up; x above zero
    :return: (N, 2) row and column as fractions, [0, 30) and [0, 40) in the view: the cell is
        the whole part
    """
    x, y, z = np.asarray(points, np.float64).T
    row = ROWS / 2 * (1.0 - (z / x) / VIEW_HALF_HEIGHT)
    return np.stack((row, COLUMNS / 2 * (1.0 - (y / x) / VIEW_HALF_WIDTH)), axis=-1)


def view_directions() -> NDArray[np.float64]:
    """Return the directions (30, 40, 3) through the middles of a radar's cells; x is 1."""
    row, column = np.mgrid[:ROWS, :COLUMNS] + 0.5
    y = (1.0 - column / (COLUMNS / 2)) * VIEW_HALF_WIDTH
    z = (1.0 - row / (ROWS / 2)) * VIEW_HALF_HEIGHT
    return np.stack((np.ones_like(y), y, z), axis=-1)
