"""The states of open windows, whatever order and moment units come in."""

from __future__ import annotations

from collections import Counter, defaultdict
from random import Random
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mmedge_ros.core.data_types import CAMERA, RADAR, UnitKey
from mmedge_ros.windows import AggregationError
from mmedge_ros.windows.window_bank import WindowBank

SHAPE = (1, 2, 2)


class Listed(NamedTuple):
    """A window, and (value of the grid, seconds to its end) of each unit, in order."""

    end_ns: int
    units: tuple[tuple[float, float], ...] = ()

    @property
    def values(self) -> list[float]:
        return [value for value, _ in self.units]


class ListingAggregator:
    """Appends to lists; ``taken`` counts how often each entry was appended."""

    def __init__(self) -> None:
        self.taken: Counter[tuple[float, float]] = Counter()

    def begin(self, end_ns: int) -> Listed:
        return Listed(end_ns)

    def unit(self, grid: np.ndarray) -> float:
        if grid.shape != SHAPE:
            raise AggregationError(f'a grid of {list(grid.shape)} cannot be aggregated')
        return float(grid[0, 0, 0])

    def step(self, state: Listed, unit: float, stamp_ns: int) -> Listed:
        entry = unit, round((state.end_ns - stamp_ns) / 1e9, 6)
        self.taken[entry] += 1
        return Listed(state.end_ns, (*state.units, entry))


def grid(value: float) -> np.ndarray:
    return np.full(SHAPE, value, np.float16)


MS = 1_000_000
WINDOW_MS, STRIDE_MS = 500, 100


class Came(NamedTuple):
    """A unit; times in ms. Its value is unique and stands for its features."""

    value: float
    modality: str
    stamp: int
    available: int


def bank() -> WindowBank:
    return WindowBank({CAMERA: ListingAggregator(), RADAR: ListingAggregator()})


def ends_of(unit: Came, window_ms: int = WINDOW_MS, stride_ms: int = STRIDE_MS) -> range:
    """Ends in ms of the windows that contain the arrival of a unit."""
    first = -(-unit.available // stride_ms) * stride_ms
    return range(first, unit.available + window_ms, stride_ms)


def enter(one: WindowBank, unit: Came, *grid_of_windows: int) -> tuple[int, ...]:
    key = UnitKey(unit.modality, round(unit.value), unit.stamp * MS)
    ends_ns = [end * MS for end in ends_of(unit, *grid_of_windows)]
    return tuple(end // MS for end in one.add(key, grid(unit.value), ends_ns))


def values(states, modality: str = CAMERA) -> list[float]:
    return states[modality].values


def test_the_window_that_ends_first_is_stepped_first() -> None:
    aggregator = ListingAggregator()
    one = WindowBank({CAMERA: aggregator})
    enter(one, Came(1.0, CAMERA, 100, 100))
    enter(one, Came(2.0, CAMERA, 150, 150))
    while one.work_ahead():
        pass
    ends = [
        round(stamp + seconds * 1e3)
        for stamp, seconds in (
            ({1.0: 100, 2.0: 150}[value], seconds) for value, seconds in aggregator.taken
        )
    ]
    assert ends == sorted(ends)
    assert set(aggregator.taken.values()) == {1}
    assert not one.waiting


def test_a_closed_window_is_gone_and_so_are_those_before() -> None:
    one = bank()
    enter(one, Came(1.0, CAMERA, 250, 250))
    one.close(500 * MS)
    assert [end // MS for end in one.open_ends_ns] == [600, 700]
    with pytest.raises(AggregationError, match='ends at 400000000 ns is closed'):
        one.close(400 * MS)


def test_a_unit_older_than_those_stepped_is_put_in_its_place() -> None:
    one = bank()
    for value, stamp in ((1.0, 210), (3.0, 230), (4.0, 240)):
        enter(one, Came(value, CAMERA, stamp, 250))
    while one.work_ahead():
        pass
    enter(one, Came(2.0, CAMERA, 220, 280))
    assert values(one.state(300 * MS)) == [1.0, 2.0, 3.0, 4.0]


def test_a_late_unit_costs_the_steps_after_it_and_none_of_the_other_modality() -> None:
    one = bank()
    for i in range(6):
        enter(one, Came(float(i), CAMERA, 200 + 10 * i, 260))
        enter(one, Came(10.0 + i, RADAR, 200 + 10 * i, 260))
    one.state(300 * MS)
    before = one.steps.copy()
    enter(one, Came(7.0, CAMERA, 245, 280))
    one.state(300 * MS)
    assert one.steps - before == {CAMERA: 2}


def test_a_unit_that_comes_twice_is_taken_once_and_counted() -> None:
    one = bank()
    for value in (1.0, 2.0, 1.0):
        enter(one, Came(value, CAMERA, 250, 260))
    assert enter(one, Came(2.0, CAMERA, 250, 260)) == ()
    # Of another sensor it is another one.
    assert enter(one, Came(2.0, RADAR, 250, 260)) != ()
    assert values(one.close(300 * MS)) == [1.0, 2.0]
    assert one.refused == {'a camera unit that came twice': 2}


def test_a_flood_of_units_does_not_fill_the_memory() -> None:
    one = bank()
    for i in range(1000):
        enter(one, Came(float(i), CAMERA, 250, 250), 200, 100)
    assert one.refused == {'a camera unit beyond the 400 that a window holds': 600}
    assert one.waiting == 2 * 400
    assert len(one.close(300 * MS)[CAMERA].units) == 400


def test_units_from_the_future_find_no_room() -> None:
    one = bank()
    for i in range(100):
        enter(one, Came(float(i), CAMERA, 10_000 * i, 10_000 * i))
    assert len(one.open_ends_ns) == 60
    assert one.refused == {
        'a camera unit far ahead of the open windows: there are 60 already': 100 - 60 // 5
    }
    one.close(10**9 * MS)
    assert enter(one, Came(1.0, CAMERA, 10**9 + 50, 10**9 + 50)) != ()


def test_an_unusable_grid_enters_no_window() -> None:
    one = bank()
    with pytest.raises(AggregationError, match='cannot be aggregated'):
        one.add(UnitKey(CAMERA, 0, 250 * MS), np.zeros((3, 3, 3), np.float16), [300 * MS])
    with pytest.raises(AggregationError, match="'sonar' are not aggregated; these are: camera"):
        one.add(UnitKey('sonar', 0, 250 * MS), grid(1.0), [300 * MS])
    assert not one.open_ends_ns


units = st.lists(
    st.tuples(st.sampled_from([CAMERA, RADAR]), st.integers(0, 900), st.integers(0, 300)),
    max_size=16,
)


@settings(deadline=None, max_examples=60)
@given(units, st.integers(0, 2**32), st.sampled_from([(500, 100), (300, 200), (100, 250)]))
def test_a_window_holds_its_units_by_stamp_whatever_way_they_came(
    drawn: list[tuple[str, int, int]], seed: int, grid_of_windows: tuple[int, int]
) -> None:
    window, stride = grid_of_windows
    random = Random(seed)
    came = [Came(float(i), m, stamp, stamp + delay) for i, (m, stamp, delay) in enumerate(drawn)]
    one = bank()
    closed_ms, present = None, defaultdict(list)
    waiting = random.sample(came, len(came))
    for end in range(0, 1500 + stride, stride):
        # Some of what was sensed by now is encoded before this window closes, in any order.
        ready = [unit for unit in waiting if unit.available <= end]
        for unit in ready[: random.randint(0, len(ready))]:
            waiting.remove(unit)
            enter(one, unit, window, stride)
            for _ in range(random.randint(0, 3)):
                one.work_ahead()
            for member in ends_of(unit, window, stride):
                if closed_ms is None or member > closed_ms:
                    present[member, unit.modality].append(unit)
        states = one.close(end * MS)
        closed_ms = end
        for modality in (CAMERA, RADAR):
            expected = sorted(present[end, modality], key=lambda unit: (unit.stamp, unit.value))
            assert values(states, modality) == [unit.value for unit in expected]
    assert not one.refused


@settings(deadline=None, max_examples=50)
@given(st.lists(st.integers(0, 900), min_size=1, max_size=20, unique=True))
def test_in_order_a_unit_is_stepped_once_for_each_window_and_no_more(stamps: list[int]) -> None:
    aggregator = ListingAggregator()
    one = WindowBank({CAMERA: aggregator})
    entered: Counter[float] = Counter()
    for value, stamp in enumerate(sorted(stamps)):
        while one.open_ends_ns and one.open_ends_ns[0] < stamp * MS:
            one.close(one.open_ends_ns[0])
        entered[float(value)] += len(enter(one, Came(float(value), CAMERA, stamp, stamp)))
        one.work_ahead()
    for end_ns in one.open_ends_ns:
        one.close(end_ns)
    taken: Counter[float] = Counter()
    for (value, _), times in aggregator.taken.items():
        assert times == 1
        taken[value] += times
    assert taken == entered
    assert set(entered.values()) == {5}
