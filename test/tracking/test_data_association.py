"""Assignments and overlaps."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from mmedge_ros.core.data_types import Box
from mmedge_ros.tracking.data_association import assign, intersection_over_union

INFINITE = float('inf')


def test_the_cheapest_assignment_is_found_even_where_greed_fails() -> None:
    result = assign(np.array([[1.0, 2.0], [1.1, 9.0]]))
    assert result.pairs == [(0, 1), (1, 0)]
    assert result.rows == result.columns == []


def test_what_lies_outside_the_gate_stays_alone() -> None:
    cost = np.array([[0.5, INFINITE, INFINITE], [INFINITE, INFINITE, np.nan]])
    result = assign(cost)
    assert result.pairs == [(0, 0)]
    assert result.rows == [1]
    assert result.columns == [1, 2]


@pytest.mark.parametrize('shape', [(0, 0), (0, 3), (2, 0)])
def test_nothing_on_one_side_leaves_the_other_alone(shape: tuple[int, int]) -> None:
    result = assign(np.zeros(shape))
    assert result.pairs == []
    assert result.rows == list(range(shape[0]))
    assert result.columns == list(range(shape[1]))


def test_as_many_pairs_as_the_gates_allow_are_made() -> None:
    cost = np.array([[0.1, 100.0], [INFINITE, 0.1], [0.2, INFINITE]])
    assert len(assign(cost).pairs) == 2


@given(arrays(float, st.tuples(st.integers(1, 4), st.integers(1, 4)), elements=st.floats(0, 99)))
def test_no_permutation_is_cheaper(cost: np.ndarray) -> None:
    result = assign(cost)
    wide = cost if cost.shape[0] <= cost.shape[1] else cost.T
    best = min(
        sum(wide[row, column] for row, column in enumerate(columns))
        for columns in permutations(range(wide.shape[1]), wide.shape[0])
    )
    assert sum(cost[pair] for pair in result.pairs) == pytest.approx(best)


@given(
    arrays(
        float,
        st.tuples(st.integers(0, 5), st.integers(0, 5)),
        elements=st.floats(0, 99) | st.just(INFINITE) | st.just(np.nan),
    )
)
def test_every_row_and_column_appears_once_and_no_forbidden_pair(cost: np.ndarray) -> None:
    result = assign(cost)
    assert all(np.isfinite(cost[pair]) for pair in result.pairs)
    assert sorted([r for r, _ in result.pairs] + result.rows) == list(range(cost.shape[0]))
    assert sorted([c for _, c in result.pairs] + result.columns) == list(range(cost.shape[1]))


def test_overlaps_are_intersection_over_union() -> None:
    first = np.array([Box(0, 0, 10, 10), Box(0, 0, 0, 0)])
    second = np.array([Box(0, 0, 10, 10), Box(5, 0, 15, 10), Box(20, 20, 30, 30), Box(9, 9, 9, 9)])
    np.testing.assert_allclose(
        intersection_over_union(first, second), [[1, 1 / 3, 0, 0], [0, 0, 0, 0]]
    )


def test_a_box_turned_inside_out_overlaps_nothing() -> None:
    inside_out, sound = np.array([Box(10, 10, 0, 0)]), np.array([Box(0, 0, 10, 10)])
    assert intersection_over_union(inside_out, sound) == 0
    assert intersection_over_union(inside_out, inside_out) == 0


def test_touching_empty_and_infinite_boxes_overlap_nothing() -> None:
    one = np.array([[100.0, 100.0, 200.0, 300.0]])
    others = [[200.0, 100, 300, 300], [150, 150, 150, 150], [-np.inf, 0, np.inf, 1]]
    assert intersection_over_union(one, np.array(others)).max() == 0.0
