"""One window of one modality, unit by unit."""

from __future__ import annotations

import numpy as np
import pytest
from listing_aggregator import grid, listing

from mmedge_ros.aggregation.errors import AggregationError

END_NS = 1_000_000_000


def test_a_window_without_units_says_so() -> None:
    aggregator = listing()
    aggregate = aggregator.finish(aggregator.begin(END_NS))
    assert (aggregate.present, aggregate.age, aggregate.count) == (False, 0.0, 0)
    assert not aggregate.newest.any()


def test_units_are_placed_by_their_time_to_the_end_of_the_window() -> None:
    aggregator = listing()
    state = aggregator.begin(END_NS)
    for value, stamp_ns in ((1.0, 700_000_000), (2.0, 950_000_000)):
        state = aggregator.step(state, grid(value), stamp_ns)
    aggregate = aggregator.finish(state)
    np.testing.assert_allclose(aggregate.pooled, [[1.0, 0.3], [2.0, 0.05]], atol=1e-6)
    assert aggregate.present
    assert aggregate.count == 2
    assert aggregate.age == pytest.approx(0.05)
    assert (aggregate.newest == 2.0).all()


def test_a_state_is_passed_in_and_returned_and_never_changed() -> None:
    aggregator = listing()
    one = aggregator.step(aggregator.begin(END_NS), grid(1.0), END_NS)
    two = aggregator.step(one, grid(2.0), END_NS)
    other = aggregator.step(one, grid(3.0), END_NS)
    pooled = [aggregator.finish(state).pooled[:, 0].tolist() for state in (one, two, other)]
    assert pooled == [[1.0], [1.0, 2.0], [1.0, 3.0]]


def test_a_unit_older_than_the_one_before_is_refused() -> None:
    aggregator = listing()
    state = aggregator.step(aggregator.begin(END_NS), grid(1.0), 500)
    with pytest.raises(AggregationError, match='stamped 499 ns came after one of 500 ns'):
        aggregator.step(state, grid(2.0), 499)
    assert aggregator.step(state, grid(2.0), 500).count == 2


@pytest.mark.parametrize('shape', [(1, 2, 3), (2, 2), (2, 2, 2), (0, 0, 0)])
def test_a_grid_of_another_shape_is_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(AggregationError, match=r'takes \[1, 2, 2\]; encoder and fusion must be'):
        listing().checked(np.zeros(shape, np.float16))


@pytest.mark.parametrize('value', [np.nan, np.inf, -np.inf])
def test_a_grid_that_is_not_finite_is_refused(value: float) -> None:
    with pytest.raises(AggregationError, match='values that are not finite; this unit is not'):
        listing().checked(grid(value))
