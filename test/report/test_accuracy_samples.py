"""NEES: in bounds for a tracker that knows its errors, out of them for one that does not."""

from __future__ import annotations

import numpy as np
import pytest

from mmedge_ros.report.accuracy_samples import (
    average_bounds,
    consistency_of,
    nees,
    thinned,
)

NS = 1_000_000_000


def test_bounds_are_those_of_the_chi_squared_distribution():
    # Tables: 2.5 % and 97.5 % quantiles for 4 and for 40 degrees of freedom.
    assert average_bounds(4, 1) == pytest.approx((0.484, 11.143), abs=1e-3)
    assert average_bounds(4, 10) == pytest.approx((2.443, 5.934), abs=1e-3)
    assert np.isnan(average_bounds(4, 0)).all()


def test_the_nees_of_known_errors():
    covariance = np.diag([4.0, 1.0])
    assert nees(np.array([[2.0, 1.0]]), covariance[None]) == pytest.approx([2.0])
    assert nees(np.array([[0.0, 0.0]]), covariance[None]) == pytest.approx([0.0])


@pytest.mark.parametrize(
    'covariance',
    [np.zeros((2, 2)), -np.eye(2), np.full((2, 2), np.nan), np.array([[1.0, 2.0], [2.0, 1.0]])],
)
def test_where_the_covariance_is_none_there_is_no_nees(covariance):
    assert np.isnan(nees(np.ones((1, 2)), covariance[None])).all()


def test_values_that_are_not_finite_are_no_samples_and_without_any_there_is_no_verdict():
    result = consistency_of(np.array([4.0, np.nan, np.inf]), 4)
    assert (result.samples, result.mean) == (1, 4.0)
    nothing = consistency_of(np.zeros(0), 4)
    assert nothing.in_bounds is None
    assert np.isnan(nothing.mean)


def test_of_each_track_one_sample_in_a_second_counts_whatever_their_order():
    stamps = [round(0.1 * n * NS) for n in range(25)] * 2
    numbers = [1] * 25 + [2] * 25
    chosen = thinned(stamps, numbers, 1.0)
    assert sorted((numbers[i], stamps[i] / NS) for i in chosen) == [
        *((1, 0.0), (1, 1.0), (1, 2.0)),
        *((2, 0.0), (2, 1.0), (2, 2.0)),
    ]
    assert thinned([3 * NS, 0, NS // 2], [1, 1, 1], 1.0).tolist() == [1, 0]
