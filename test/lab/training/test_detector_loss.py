"""Where the loss of a detector does not look."""

from __future__ import annotations

import numpy as np

from mmedge_lab.training.detector_training import cell_middles, cell_weights

SIZE = (96, 64)


def test_cells_are_those_of_the_head_in_its_order() -> None:
    grid = cell_middles(SIZE)
    assert len(grid) == 12 * 8 + 6 * 4 + 3 * 2
    np.testing.assert_allclose(grid[0], (4, 4, 8))
    np.testing.assert_allclose(grid[1], (12, 4, 8))
    np.testing.assert_allclose(grid[12], (4, 12, 8))
    np.testing.assert_allclose(grid[96], (8, 8, 16))


def test_only_cells_on_an_ignored_object_and_only_its_class_are_left_out() -> None:
    grid = cell_middles(SIZE)
    ignored = np.array([[1, 2, 20.0, 20.0, 44.0, 44.0]], np.float32)
    weights = cell_weights(ignored, 2, grid, 4)
    assert (weights[0] == 1.0).all()
    assert (weights[1][:, [0, 1, 3]] == 1.0).all()
    left_out = grid[weights[1, :, 2] == 0.0]
    assert len(left_out) > 9
    half = left_out[:, 2] / 2
    assert (left_out[:, 0] > 20.0 - half).all()
    assert (left_out[:, 0] < 44.0 + half).all()


def test_an_object_smaller_than_a_cell_still_has_one() -> None:
    grid = cell_middles(SIZE)
    ignored = np.array([[0, 0, 24.0, 24.0, 25.0, 26.0]], np.float32)
    weights = cell_weights(ignored, 1, grid, 1)
    for stride in (8, 16, 32):
        assert (weights[0, grid[:, 2] == stride, 0] == 0.0).any()
