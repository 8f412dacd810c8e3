"""Which units of a window are compared, and how they are weighted."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mmedge_ros.windows.temporal_rules import (
    LAG_TOLERANCE,
    LAGS,
    NEIGHBOUR_TOLERANCE,
    Neighbours,
    neighbours,
    weights,
)


def neighbours_at(gaps: Sequence[float], seconds: float = 0.0) -> Neighbours:
    """Return the neighbours of a unit; gaps to those before it, in s, newest first."""
    recent = np.array([seconds + gap for gap in gaps], np.float32)
    return neighbours(recent, np.float32(seconds))


@pytest.mark.parametrize(('rate', 'lagged'), [(30, (2, 5)), (20, (1, 3)), (10, (0, 1)), (5, (0,))])
def test_lags_are_in_time_whatever_the_rate(rate: int, lagged: tuple[int, ...]) -> None:
    places = neighbours_at([(k + 1) / rate for k in range(8)]).lagged
    assert places == (lagged if rate > 5 else (None, 0))


@pytest.mark.parametrize(('gap', 'is_near'), [(0.0, True), (0.119, True), (0.121, False)])
def test_the_unit_before_is_a_neighbour_if_it_is_near_in_time(gap: float, is_near: bool) -> None:
    assert neighbours_at([gap]).is_near == is_near


@pytest.mark.parametrize(
    ('gap', 'lagged'),
    [
        (0.049, (None, None)),
        (0.051, (0, None)),
        (0.149, (0, None)),
        (0.151, (None, 0)),
        (0.249, (None, 0)),
        (0.251, (None, None)),
    ],
)
def test_a_unit_is_compared_with_one_that_is_about_a_lag_older(gap: float, lagged: tuple) -> None:
    assert neighbours_at([gap]).lagged == lagged


@given(st.lists(st.floats(0.0, 0.5), min_size=1, max_size=8), st.floats(0.0, 0.5))
def test_at_a_lag_the_nearest_is_taken(gaps: list[float], seconds: float) -> None:
    gaps = sorted(gaps)
    result = neighbours_at(gaps, seconds)
    for lag, place in zip(LAGS, result.lagged, strict=True):
        misses = [abs(gap - lag) for gap in gaps]
        if place is None:
            assert min(misses) >= LAG_TOLERANCE - 1e-6
        else:
            assert misses[place] <= min(*misses, LAG_TOLERANCE) + 1e-6
    if abs(gaps[0] - NEIGHBOUR_TOLERANCE) > 1e-6:
        assert result.is_near == (gaps[0] <= NEIGHBOUR_TOLERANCE)


def test_older_units_weigh_less_but_never_nothing() -> None:
    decays = np.array([0.0, 1.0, 30.0], np.float32)
    np.testing.assert_allclose(weights(decays, 0.1), np.exp([0.0, -0.1, -3.0]), rtol=1e-6)
    np.testing.assert_allclose(weights(decays, 9e9), np.exp([0.0, -10.0, -10.0]), rtol=1e-6)
    # A stamp after the window's end counts as its end.
    np.testing.assert_array_equal(weights(decays, -3.0), 1.0)
