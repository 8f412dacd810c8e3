"""A network on returns beside those on rasters of them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from mmedge_ros.encoding.feature_grid import COLUMNS, ROWS
from mmedge_ros.lab.training import TrainingError
from mmedge_ros.lab.training.fusion_settings import FusionSettings
from mmedge_ros.lab.training.networks.point_network import POINT_VALUES, PointNetwork
from mmedge_ros.lab.training.point_rival import (
    MOST_POINTS,
    Rival,
    compare,
    point_set,
    points_of,
    table,
    train_points,
)
from mmedge_ros.lab.training.radar_targets import RadarSample
from mmedge_ros.lab.training.radar_training import RadarAccuracy

TINY = replace(FusionSettings(), radar_epochs=1)


def sample(seed: int) -> RadarSample:
    """Someone right where the returns are, 10 m away."""
    rng = np.random.default_rng(seed)
    y = rng.uniform(-4.0, 4.0)
    returns = np.array([[10.0, y, 0.0, 1.0, 20.0]] * 3, np.float32)
    people = np.zeros((ROWS, COLUMNS), np.int8)
    cells = points_of(returns)[1]
    row, column = divmod(int(cells[0]), COLUMNS)
    people[row - 1 : row + 2, column] = 1
    log_range = np.where(people > 0, np.log(10.0), np.nan).astype(np.float32)
    return RadarSample(returns, people, log_range)


def network() -> PointNetwork:
    torch.manual_seed(0)
    return PointNetwork().eval()


def grid_of(returns: np.ndarray) -> torch.Tensor:
    points, cells = points_of(returns)
    with torch.no_grad():
        return network()(torch.from_numpy(points)[None], torch.from_numpy(cells)[None])


SCAN = np.random.default_rng(0).uniform((5, -3, -1, -2, 10), (30, 3, 1, 2, 30), (20, 5))


def test_the_order_of_returns_does_not_matter() -> None:
    scan = SCAN.astype(np.float32)
    grid = grid_of(scan)
    assert grid.shape == (1, 16, ROWS, COLUMNS)
    torch.testing.assert_close(grid, grid_of(scan[::-1]))
    assert (grid - grid_of(scan[1:])).abs().max() > 1e-3


def test_a_scan_without_returns_has_a_grid() -> None:
    assert torch.isfinite(grid_of(np.zeros((0, 5), np.float32))).all()


@given(arrays.arrays(np.float32, st.tuples(st.integers(0, 200), st.just(5))))
@settings(max_examples=50, deadline=None)
def test_whatever_returns_hold_points_stay_finite_and_in_the_view(returns: np.ndarray) -> None:
    points, cells = points_of(returns)
    assert points.shape == (MOST_POINTS, POINT_VALUES)
    assert np.isfinite(points).all()
    assert ((cells >= -1) & (cells < ROWS * COLUMNS)).all()
    assert (points[cells < 0] == 0.0).all()


def test_it_learns_where_people_are() -> None:
    samples = point_set([sample(seed) for seed in range(40)])
    _, short = train_points(samples, TINY)
    _, long = train_points(samples, replace(TINY, radar_epochs=50))
    assert long.recall > 0.5
    assert long.precision > 0.5
    assert long.range_error < 0.5 * short.range_error


def test_all_networks_are_compared_on_the_same_scans() -> None:
    found = compare([sample(seed) for seed in range(12)], TINY, timed=3)
    assert list(found) == ['points', 'small', 'medium', 'large']
    assert all(rival.latency_ms > 0.0 for rival in found.values())
    assert found['points'].parameters < found['small'].parameters


def test_too_few_scans_are_told() -> None:
    with pytest.raises(TrainingError, match='not two radar scans'):
        point_set([sample(0)])


def test_the_table_has_a_row_for_each_network() -> None:
    text = table({'points': Rival(RadarAccuracy(0.5, 0.5, 0.1), 1000, 2.0)})
    assert text.splitlines()[-1] == '| points | 0.500 | 0.500 | 0.500 | 0.100 | 1000 | 2.00 |'
