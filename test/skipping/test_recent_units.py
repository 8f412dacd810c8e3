"""The units of a window."""

from __future__ import annotations

import numpy as np
import pytest
from hand_made_units import at, features, unit
from hypothesis import given
from hypothesis import strategies as st

from mmedge_ros.data_types import CAMERA, NS_PER_S, RADAR
from mmedge_ros.skipping.recent_units import (
    RecentUnits,
    SeenUnit,
    age,
    embedded,
    flicker,
    fraction,
)

WINDOW_NS = NS_PER_S // 2


def remembered(*received: tuple[str, float]) -> RecentUnits:
    """Units of modalities, received then (ms), in the order in which they are taken in."""
    units = RecentUnits(WINDOW_NS)
    for number, (modality, ms) in enumerate(received):
        units.add(features(unit(ms, modality, number)), number)
    return units


def cameras(*strong: int) -> list[SeenUnit]:
    """Units 33 ms from each other, the newest first."""
    return [
        SeenUnit(CAMERA, at(-33.0 * n), at(-33.0 * n + 5.0), 0, np.zeros(0, np.float32), result, 0)
        for n, result in enumerate(strong)
    ]


@given(
    st.lists(st.tuples(st.sampled_from([CAMERA, RADAR]), st.integers(0, 1400)), max_size=30),
    st.integers(-100, 2000),
)
def test_a_window_has_its_own_units_in_whatever_order_they_came(received: list, end: int) -> None:
    units = remembered(*received)
    own, other = units.received(at(end), CAMERA)
    inside = [
        (modality, number)
        for number, (modality, ms) in enumerate(received)
        if end - 500 < ms <= end
    ]
    assert [u.strong for u in own] == [n for m, n in inside[::-1] if m == CAMERA]
    assert [u.strong for u in other] == [n for m, n in inside[::-1] if m == RADAR]


def test_units_are_forgotten_a_second_after_their_window() -> None:
    units = remembered((CAMERA, 0.0), (CAMERA, 1499.0))
    assert len(units.received(at(0.0), CAMERA)[0]) == 1
    units = remembered((CAMERA, 0.0), (CAMERA, 1500.0))
    assert units.received(at(0.0), CAMERA) == ([], [])


def test_the_age_is_that_of_the_newest() -> None:
    assert age(cameras(1, 1, 1), at(50.0)) == pytest.approx(0.05)
    assert age(cameras(1)[::-1], at(-20.0)) == 0.0
    assert age([], at(0.0)) == age(cameras(1), at(60_000.0)) == 5.0


def test_the_fraction_goes_by_the_distance_of_the_units() -> None:
    assert (fraction([], WINDOW_NS), fraction(cameras(1), WINDOW_NS)) == (0.0, 1.0)
    assert fraction(cameras(1, 1, 1), WINDOW_NS) == pytest.approx(3 * 33.0 / 500.0)
    assert fraction(cameras(*[1] * 30), WINDOW_NS) == 1.0


@given(st.lists(st.integers(0, 50), max_size=9))
def test_flicker_is_the_deviation_of_the_last_six(counts: list[int]) -> None:
    expected = float(np.std(counts[:6])) if counts else 0.0
    assert flicker(cameras(*counts)) == pytest.approx(expected, abs=1e-12)


def test_embeddings_that_are_zero_or_do_not_fit_say_nothing() -> None:
    def of(*values: float) -> list[SeenUnit]:
        (one,) = cameras(1)
        one.embedding = np.array(values, np.float32)
        return [one]

    assert embedded(of(1.0, 0.0), []) == (0.0,) * 4
    assert embedded(of(1.0, 0.0), of(1.0, 1.0)) == pytest.approx(
        (1.0, 0.5**0.5, 0.0, 0.0), abs=1e-6
    )
    assert embedded(of(1.0, 0.0), of(0.0, 0.0)) == (1.0, 0.0, 0.0, 1.0)
    assert embedded(of(1.0, 0.0), of(1.0))[:2] == (1.0, 0.0)
