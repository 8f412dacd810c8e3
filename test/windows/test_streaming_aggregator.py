"""One window of one modality, unit by unit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mmedge_ros.core.data_types import CAMERA, UnitKey
from mmedge_ros.windows import AggregationError
from mmedge_ros.windows.streaming_aggregator import StreamingAggregator, WindowState
from mmedge_ros.windows.unit_networks import Pooling, Projection
from mmedge_ros.windows.window_bank import WindowBank

SHAPE = (1, 2, 2)
WIDTH = 2
DECAYS = (0.0, 2.0)


class HandMadeNetworks:
    """``projected`` counts by value, ``compared`` by lag, value and earlier value."""

    place = 'hand-made'
    grid_shape = SHAPE

    def __init__(self, newest_only: bool = False) -> None:
        self.pooling = Pooling(np.array(DECAYS, np.float32), newest_only)
        self.projected: Counter[float] = Counter()
        self.compared: Counter[tuple[int, float, float]] = Counter()

    def project(self, grid: np.ndarray) -> Projection:
        value = float(grid[0, 0, 0])
        self.projected[value] += 1
        cells = np.full((WIDTH, *SHAPE[1:]), value, np.float32)
        return Projection(cells[None], cells, 10 * cells, 100 * cells)

    def change(self, lag: int, features: np.ndarray, earlier: np.ndarray) -> np.ndarray:
        self.compared[lag, float(features[0, 0, 0, 0]), float(earlier[0, 0, 0, 0])] += 1
        made: np.ndarray = 1000 * 10**lag * np.abs(features - earlier)[0]
        return made


def grid(value: float) -> np.ndarray:
    return np.full(SHAPE, value, np.float16)


MS = 1_000_000
END = 1000


def aggregator(newest_only: bool = False) -> StreamingAggregator:
    return StreamingAggregator(HandMadeNetworks(newest_only))


def taken(
    one: StreamingAggregator, units: Sequence[tuple[float, int]], end: int = END
) -> WindowState:
    """Return the state of a window that was given units of these values and stamps in ms."""
    state = one.begin(end * MS)
    for value, stamp in units:
        state = one.step(state, one.unit(grid(value)), stamp * MS)
    return state


def pooled(
    one: StreamingAggregator, units: Sequence[tuple[float, int]], end: int = END
) -> list[float]:
    return one.finish(taken(one, units, end)).pooled[:, 0, 0].tolist()


def weighted(encodings: Sequence[float], stamps: Sequence[int], end: int = END) -> list[float]:
    """Return the mean of encodings, weighted by the time to the window's end."""
    means = []
    for decay in DECAYS:
        share = np.exp([-decay * (end - stamp) / 1e3 for stamp in stamps])
        means.append(float(np.dot(share, encodings) / share.sum()))
    return means


def test_neighbours_give_each_other_their_channels() -> None:
    expected = [1.0 + 10.0 + 200.0, 2.0 + 10.0 + 300.0, 3.0 + 20.0 + 300.0]
    stamps = [960, 980, 1000]
    result = pooled(aggregator(), [(1.0, 960), (2.0, 980), (3.0, 1000)])
    assert result == pytest.approx(weighted(expected, stamps), rel=1e-6)


def test_changes_are_seen_at_both_lags() -> None:
    stamps = [800, 900, 1000]
    result = pooled(aggregator(), [(1.0, 800), (2.0, 900), (4.0, 1000)])
    expected = [
        1.0 + 10.0 + 200.0,
        2.0 + 10.0 + 400.0 + 1000.0,
        4.0 + 20.0 + 400.0 + 2000.0 + 30000.0,
    ]
    assert result == pytest.approx(weighted(expected, stamps), rel=1e-6)


def test_the_newest_alone_counts_where_that_was_trained() -> None:
    one = aggregator(newest_only=True)
    units = [(1.0, 940), (2.0, 980)]
    assert pooled(one, units) == [222.0, 222.0]
    assert one.finish(taken(one, units)).count == 1


def test_a_state_is_passed_in_and_returned_and_never_changed() -> None:
    one = aggregator()
    first = taken(one, [(1.0, 900)])
    before = one.finish(first).pooled.copy()
    second = one.step(first, one.unit(grid(2.0)), 950 * MS)
    other = one.step(first, one.unit(grid(3.0)), 950 * MS)
    assert np.array_equal(one.finish(first).pooled, before)
    assert [state.count for state in (first, second, other)] == [1, 2, 2]
    for state, value in ((second, 2.0), (other, 3.0)):
        alone = pooled(aggregator(), [(1.0, 900), (value, 950)])
        assert one.finish(state).pooled[:, 0, 0].tolist() == alone


def test_a_unit_older_than_the_one_before_is_refused() -> None:
    one = aggregator()
    state = taken(one, [(1.0, 500)])
    with pytest.raises(AggregationError, match='stamped 499000000 ns came after one of 500000000'):
        one.step(state, one.unit(grid(2.0)), 499 * MS)
    assert one.step(state, one.unit(grid(2.0)), 500 * MS).count == 2


@pytest.mark.parametrize('shape', [(1, 2, 3), (2, 2), (2, 2, 2), (0, 0, 0)])
def test_a_grid_of_another_shape_is_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(AggregationError, match=r'takes \[1, 2, 2\]; encoder and fusion must be'):
        aggregator().unit(np.zeros(shape, np.float16))


@pytest.mark.parametrize('value', [np.nan, np.inf, -np.inf])
def test_a_grid_that_is_not_finite_is_refused(value: float) -> None:
    with pytest.raises(AggregationError, match='values that are not finite; this unit is not'):
        aggregator().unit(grid(value))


# ------------------------------------------------------------------------- what windows share


@pytest.mark.parametrize('period', [33, 50])
def test_a_unit_is_projected_once_and_compared_once_with_each_other(period: int) -> None:
    networks = HandMadeNetworks()
    bank = WindowBank({CAMERA: StreamingAggregator(networks)})
    for number in range(60):
        stamp = number * period
        while bank.open_ends_ns and bank.open_ends_ns[0] < stamp * MS:
            bank.close(bank.open_ends_ns[0])
        first = -(-stamp // 100) * 100
        ends = [end * MS for end in range(first, first + 500, 100)]
        bank.add(UnitKey(CAMERA, number, stamp * MS), grid(number), ends)
        while bank.work_ahead():
            pass
    assert set(networks.projected.values()) == {1}
    assert len(networks.projected) == 60
    assert set(networks.compared.values()) == {1}
    # Two in full, and one or two more where a window begins shortly before.
    assert len(networks.compared) <= 4 * 60


def test_what_is_computed_of_a_flood_does_not_fill_the_memory() -> None:
    networks = HandMadeNetworks()
    one = StreamingAggregator(networks)
    units = [one.unit(grid(value)) for value in range(200)]
    states = []
    for _ in range(2):
        state = one.begin(END * MS)
        for number, unit in enumerate(units):
            state = one.step(state, unit, (500 + number) * MS)
        states.append(one.finish(state).pooled)
        assert sum(unit.projection is not None for unit in units) <= 64
        assert all(len(unit.pending) <= 6 and len(unit.changes) <= 6 for unit in units)
    # What was forgotten is computed again, and is the same.
    assert np.array_equal(*states)
    assert set(networks.projected.values()) == {2}


@settings(deadline=None, max_examples=60)
@given(st.lists(st.integers(0, 500), max_size=14), st.integers(0, 2**32))
def test_sharing_changes_nothing_whatever_way_units_came(stamps: list[int], seed: int) -> None:
    random = Random(seed)
    came = [(float(number), stamp) for number, stamp in enumerate(stamps)]
    shared = aggregator()
    bank = WindowBank({CAMERA: shared})
    ends = (500, 600, 700)
    for value, stamp in random.sample(came, len(came)):
        key = UnitKey(CAMERA, round(value), stamp * MS)
        bank.add(key, grid(value), [end * MS for end in ends if stamp > end - 500])
        for _ in range(random.randint(0, 4)):
            bank.work_ahead()
        if random.random() < 0.3:
            bank.state_until(random.choice(ends) * MS, random.choice(stamps) * MS)
    for end in ends:
        result = shared.finish(bank.close(end * MS)[CAMERA])
        members = sorted((stamp, value) for value, stamp in came if stamp > end - 500)
        alone = aggregator()
        expected = alone.finish(taken(alone, [(v, s) for s, v in members], end))
        assert np.array_equal(result.pooled, expected.pooled)
        assert (result.count, result.age) == (expected.count, expected.age)
