"""Heads in closed form, and the gate that keeps a healed group or not."""

from __future__ import annotations

import numpy as np
import pytest

from mmedge_lab.rivals.reminisce.heads import (
    HealingData,
    Suite,
    groups_of,
    heal,
    pivoted,
    ridge,
)

RNG = np.random.default_rng(1)


def missing_at_first(number: int) -> HealingData:
    """The first of two exits lacks what its tap says in its last two values; the end has it."""
    tap = RNG.normal(size=(number, 4)).astype(np.float32)
    lacking = tap @ np.array([[0, 0], [0, 0], [1, 0], [0, 1]], np.float32)
    end = np.concatenate([tap[:, :2], lacking], axis=1)
    first = np.concatenate([tap[:, :2], 0.0 * lacking], axis=1)
    return HealingData([tap], [first, end])


def near(wanted: np.ndarray):
    """How close vectors are to what is wanted, 1 of the same."""
    return lambda vectors: 1.0 - float(np.abs(vectors - wanted).mean())


def test_a_ridge_finds_the_map_and_its_rank_is_bounded() -> None:
    vectors = RNG.normal(size=(500, 6)).astype(np.float32)
    truth = RNG.normal(size=(6, 5))
    wanted = vectors @ truth + 2.0
    assert np.abs(ridge(vectors, wanted)(vectors) - wanted).mean() < 0.1
    low = ridge(vectors, wanted, 2)
    assert np.linalg.matrix_rank(low.weights) == 2
    assert np.abs(low(vectors) - wanted).mean() > 0.1


def test_a_group_is_kept_that_heals_its_exit_and_spares_the_last() -> None:
    data, held = missing_at_first(400), missing_at_first(100)
    # The last exit is judged as found whatever it says.
    hits = iter([0.5, 0.9, 0.8, 0.895])
    suite = heal(data, held, [[1]], 2, lambda _vectors: next(hits))
    assert [tried.is_kept for tried in suite.tried] == [True]
    healed = suite.healed(held.taps, held.vectors)
    assert np.abs(healed[0] - held.vectors[-1]).mean() < 0.1
    # What is added is carried on.
    assert np.abs(healed[1] - held.vectors[1]).mean() > 0.1


@pytest.mark.parametrize(
    ('hits', 'why'),
    [([0.5, 0.9, 0.8, 0.88], 'the last exit loses'), ([0.5, 0.9, 0.5, 0.95], 'nothing is gained')],
)
def test_a_group_is_refused_where(hits: list[float], why: str) -> None:
    data, judged = missing_at_first(400), iter(hits)
    suite = heal(data, data, [[1]], 2, lambda _vectors: next(judged))
    assert not suite.adapters, why
    assert not suite.tried[0].is_kept
    assert np.array_equal(suite.healed(data.taps, data.vectors)[0], data.vectors[0])


def test_the_gate_measures_the_last_exit_with_what_is_carried_on() -> None:
    data = missing_at_first(400)
    suite = heal(data, data, [[1]], 2, near(data.vectors[-1]))
    (tried,) = suite.tried
    assert tried.gained > 0.3
    assert tried.lost > 0.3
    assert not tried.is_kept


def test_a_deeper_group_learns_what_is_left_by_the_shallower_one() -> None:
    tap = RNG.normal(size=(300, 3)).astype(np.float32)
    end = tap.copy()
    data = HealingData([tap, tap], [0.0 * tap, end - 1.0, end])
    hits = iter([0.1, 0.2, 0.3, *[0.9] * 3, *[0.95] * 3])
    suite = heal(data, data, [[1], [2]], 3, lambda _vectors: next(hits))
    assert set(suite.adapters) == {1, 2}
    assert np.abs(suite.healed(data.taps, data.vectors)[1] - end).mean() < 0.1
    only_first = Suite({1: suite.adapters[1]}).healed(data.taps, data.vectors)
    assert np.abs(only_first[1] - end).mean() > 0.3


def test_exits_are_grouped_by_step_and_at_the_pivot() -> None:
    assert groups_of([1, 2, 3], 1) == [[1], [2], [3]]
    assert groups_of([1, 2, 3], 2) == [[1, 2], [3]]
    assert pivoted([1, 2, 3], np.array([2, 2, 1, 3])) == [[1, 2], [3]]
    assert pivoted([1, 2, 3], np.array([3, 3, 1])) == [[1, 2, 3]]
