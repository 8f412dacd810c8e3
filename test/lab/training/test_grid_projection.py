"""Cells of a level's input carried to cells of the canvas."""

from __future__ import annotations

import numpy as np
import pytest

from mmedge_lab.training.grid_projection import carry, resampling
from mmedge_ros.encoding.feature_grid import CANVAS, cell_middles
from mmedge_ros.encoding.letterbox import Canvas

SMALL = (416, 320)


def input_middles(size: tuple[int, int], stride: int) -> np.ndarray:
    y, x = np.mgrid[: size[1] // stride, : size[0] // stride]
    return (np.stack((x, y), axis=-1).reshape(-1, 2) + 0.5) * stride


@pytest.mark.parametrize('stride', [8, 16, 32])
def test_every_cell_of_a_smaller_input_finds_the_nearest_one_of_the_canvas(stride: int) -> None:
    how = carry(SMALL, stride)
    sources = how.source[how.known]
    cells = (SMALL[0] // stride) * (SMALL[1] // stride)
    assert sorted(sources) == list(range(cells))
    canvas = Canvas.in_input(CANVAS, SMALL)
    middles = (input_middles(SMALL, stride) - canvas.middle) / canvas.scale + (320, 240)
    own = cell_middles(stride).reshape(-1, 2)
    for cell in np.flatnonzero(how.known):
        distances = np.abs(own - middles[how.source[cell]]).max(axis=1)
        assert distances[cell] <= distances.min() + 1e-6


@pytest.mark.parametrize('stride', [8, 32])
def test_a_box_stays_where_it_is_on_the_canvas(stride: int) -> None:
    how = carry(SMALL, stride)
    canvas = Canvas.in_input(CANVAS, SMALL)
    box = np.array([200.0, 150.0, 260.0, 290.0])  # on the input
    middles = input_middles(SMALL, stride)
    sides = np.concatenate((middles - box[:2], box[2:] - middles), axis=1) / stride
    moved = sides[how.source] * how.scale + how.offset.T
    own = cell_middles(stride).reshape(-1, 2)
    corners = np.concatenate((own - moved[:, :2] * stride, own + moved[:, 2:] * stride), axis=1)
    expected = (box - canvas.middle * 2) / canvas.scale + (320, 240, 320, 240)
    np.testing.assert_allclose(
        corners[how.known], np.tile(expected, (how.known.sum(), 1)), atol=1e-3
    )


def test_resampling_puts_a_slope_where_it_belongs() -> None:
    down, across = resampling(SMALL)
    columns = (np.arange(26) + 0.5) * 16 / 0.65  # canvas px of the middles of the input's cells
    result = (down @ np.tile(columns, (20, 1)) @ across)[0]
    np.testing.assert_allclose(result[1:-1], (np.arange(40) + 0.5)[1:-1] * 16, atol=1e-3)
