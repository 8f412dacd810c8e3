"""Where things lie on feature grids."""

from __future__ import annotations

import numpy as np
import pytest

from mmedge_lab.simulation.world import LABELS
from mmedge_ros.encoding.feature_grid import (
    COLUMNS,
    GRID_CLASSES,
    ROWS,
    canvas_placement,
    cell_middles,
    split_semantics,
    view_directions,
    view_positions,
)


def test_a_grid_holds_the_classes_of_the_simulator_in_its_order() -> None:
    assert GRID_CLASSES == LABELS


@pytest.mark.parametrize(
    ('size', 'offset', 'scale'),
    [((640, 480), (0, 0), 1.0), ((1280, 720), (0, 60), 0.5), ((480, 640), (140, 0), 0.75)],
)
def test_a_picture_is_centred_on_the_canvas(
    size: tuple[int, int], offset: tuple[int, int], scale: float
) -> None:
    placement = canvas_placement(*size)
    assert (placement.x_offset, placement.y_offset) == offset
    assert (placement.x_scale, placement.y_scale) == (scale, scale)


def test_each_scale_has_its_channels() -> None:
    semantics = np.random.default_rng(0).random((64, ROWS, COLUMNS), np.float32)
    scales = split_semantics(semantics)
    assert scales.fine.shape == (8, 60, 80)
    np.testing.assert_array_equal(scales.middle, semantics[32:40])
    np.testing.assert_array_equal(scales.coarse, semantics[40:48, ::2, ::2])


def test_the_fine_cells_of_a_grid_cell_come_row_by_row() -> None:
    semantics = np.zeros((64, ROWS, COLUMNS), np.float16)
    semantics[2 * 8 + 5, 4, 6] = 1.0  # value 5 of the cell below the first one
    fine = split_semantics(semantics).fine
    assert [index.tolist() for index in np.nonzero(fine)] == [[5], [9], [12]]
    assert fine.dtype == np.float16


@pytest.mark.parametrize('stride', [8, 16, 32])
def test_cells_of_every_stride_cover_the_canvas(stride: int) -> None:
    middles = cell_middles(stride)
    assert middles.shape == (480 // stride, 640 // stride, 2)
    np.testing.assert_allclose(middles[0, 0], stride / 2)
    np.testing.assert_allclose(middles.mean(axis=(0, 1)), (320, 240))


def test_the_radars_view_shows_left_and_up_where_a_picture_does() -> None:
    left_and_up = np.array([[10.0, 7.9, 5.9]])
    assert (view_positions(left_and_up).astype(int) == (0, 0)).all()
    np.testing.assert_allclose(view_positions(np.array([[5.0, 0.0, 0.0]])), [[15.0, 20.0]])


def test_directions_lead_to_the_middles_of_their_cells() -> None:
    rows, columns = np.mgrid[:ROWS, :COLUMNS] + 0.5
    found = view_positions(view_directions().reshape(-1, 3) * 7.0)
    np.testing.assert_allclose(found[:, 0], rows.ravel())
    np.testing.assert_allclose(found[:, 1], columns.ravel())
