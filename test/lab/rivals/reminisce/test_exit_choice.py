"""Which exit suffices, what predicts it, and the controls of both."""

from __future__ import annotations

import numpy as np
import pytest

from mmedge_lab.rivals.reminisce.exit_choice import (
    dealt,
    first_sufficient,
    fit_predictor,
    nearest_fixed,
    sure_exits,
)
from mmedge_lab.rivals.reminisce.galleries import FIRST, OBJECTS

RNG = np.random.default_rng(0)


def tapped(number: int) -> tuple[np.ndarray, np.ndarray]:
    """Taps whose first value says which exit suffices."""
    wanted = RNG.integers(1, 4, number)
    taps = RNG.normal(0.0, 0.3, (number, 5))
    taps[:, 0] += wanted
    return taps.astype(np.float32), wanted


def test_the_first_exit_that_retrieves_as_well_as_the_end_suffices() -> None:
    fits = np.zeros((1, 100), bool)
    fits[0, :3] = True
    scores = [np.tile(np.arange(100.0), (1, 1)) for _ in range(3)]
    # Item 0 is rated above all at once, item 1 from the second exit on, item 2 at the end only.
    scores[0][0, :3] = 200.0, 0.0, 0.0
    scores[1][0, :3] = 200.0, 200.0, 0.0
    scores[2][0, :3] = 200.0, 200.0, 200.0
    assert first_sufficient(scores, fits)[:3].tolist() == [1, 2, 3]


def test_a_place_among_the_first_ten_suffices_though_the_end_is_better() -> None:
    fits = np.zeros((1, 1001), bool)
    fits[0, 0] = True
    among = int(1000 * FIRST / OBJECTS)
    scores = [np.tile(np.arange(1001.0), (1, 1)) for _ in range(2)]
    scores[1][0, 0] = 2000.0
    scores[0][0, 0] = 1000.5 - among
    assert first_sufficient(scores, fits)[0] == 1
    scores[0][0, 0] = 1000.5 - among - 1
    assert first_sufficient(scores, fits)[0] == 2


def test_a_predictor_that_knows_something_beats_its_exits_dealt_to_others() -> None:
    taps, wanted = tapped(600)
    held, of_held = tapped(300)
    predictor = fit_predictor(taps, wanted, held, of_held, 3)
    judged, truth = tapped(300)
    said = predictor.exits(judged)
    enough, by_chance = np.mean(said >= truth), np.mean(dealt(said, 1) >= truth)
    assert enough > 0.85
    assert enough > by_chance + 0.1


def test_a_predictor_of_noise_does_not_beat_its_exits_dealt_to_others() -> None:
    taps, wanted = tapped(600)
    wanted = RNG.permutation(wanted)
    predictor = fit_predictor(taps, wanted, taps, wanted, 3)
    judged, truth = tapped(2000)
    truth = RNG.permutation(truth)
    said = predictor.exits(judged)
    assert np.mean(said >= truth) == pytest.approx(np.mean(dealt(said, 1) >= truth), abs=0.05)


def test_dealt_exits_are_the_same_ones_for_other_items() -> None:
    exits = np.arange(50) % 4 + 1
    other = dealt(exits, 3)
    assert np.bincount(other).tolist() == np.bincount(exits).tolist()
    assert (other != exits).any()


def test_items_leave_at_the_first_head_that_is_sure() -> None:
    sure, doubtful = [8.0, 0.0, 0.0], [0.1, 0.0, 0.0]
    logits = [np.array(rows, np.float32) for rows in (
        [sure, doubtful, doubtful], [doubtful, sure, doubtful], [doubtful, doubtful, doubtful],
    )]  # fmt: skip
    assert sure_exits(logits, 3, (5.0, 5.0)).tolist() == [1, 2, 3]
    assert sure_exits(logits, 3, (1e9, 5.0)).tolist() == [3, 2, 3]


def test_the_fixed_exit_of_the_nearest_cost_is_the_control() -> None:
    costs = np.array([1.0, 2.0, 6.0])
    assert nearest_fixed(np.array([1, 1, 1, 3]), costs) == 2
    assert nearest_fixed(np.array([3, 3, 3, 1]), costs) == 3
