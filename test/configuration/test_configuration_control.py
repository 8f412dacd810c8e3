from __future__ import annotations

import numpy as np
import pytest
from scipy.special import ndtri

from mmedge_ros.configuration.configuration_control import (
    Chosen,
    ConfigurationControl,
    ControlParameters,
)
from mmedge_ros.configuration.configuration_grid import Axis, ConfigurationGrid
from mmedge_ros.configuration.predicted_latency import PredictedLatency

GRID = ConfigurationGrid([Axis('a', ('1', '2', '3'))])
ACCURACY = [0.7, 0.8, 0.9]


def predicted(medians: list[float], spread: float = 0.05) -> PredictedLatency:
    return PredictedLatency(np.log(medians), spread)


def test_the_most_accurate_that_certainly_keeps_the_limit_is_chosen() -> None:
    control = ConfigurationControl(GRID)
    chosen = control.decide(predicted([0.02, 0.04, 0.049]), ACCURACY, 0.05, 0.0, may_probe=False)
    assert (chosen.index, chosen.feasible, chosen.certainty) == (1, True, 0.95)
    assert 0.04 < chosen.latency < 0.05


def test_ignorance_needs_room_below_the_limit() -> None:
    spread = np.array([0.05, 0.05, 0.8])
    unsure = PredictedLatency(np.log([0.02, 0.03, 0.03]), spread)
    chosen = ConfigurationControl(GRID).decide(unsure, ACCURACY, 0.05, 0.0, may_probe=False)
    assert chosen.index == 1


def test_when_nothing_is_certain_the_most_certain_is_chosen_and_flagged() -> None:
    chosen = ConfigurationControl(GRID).decide(
        predicted([0.048, 0.06, 0.07], 0.2), ACCURACY, 0.05, 0.0, may_probe=False
    )
    assert (chosen.index, chosen.feasible) == (0, False)
    assert 0.5 < chosen.certainty < 0.65


def test_when_nothing_is_possible_the_smallest_violation_is_chosen_and_flagged() -> None:
    chosen = ConfigurationControl(GRID).decide(
        predicted([0.2, 0.3, 0.1]), ACCURACY, 0.05, 0.0, may_probe=False
    )
    assert (chosen.index, chosen.feasible) == (2, False)
    assert chosen.choice.violation > 0.0


def test_a_try_is_marked_and_does_not_become_the_configuration_in_use() -> None:
    control = ConfigurationControl(GRID)
    spread = np.array([0.05, 0.05, 0.6])
    unsure = PredictedLatency(np.log([0.02, 0.03, 0.035]), spread)
    accuracy = [0.5, 0.6, 0.9]
    assert not control.decide(unsure, accuracy, 0.05, 0.0).probe
    chosen = control.decide(unsure, accuracy, 0.05, 5.0)
    assert (chosen.index, chosen.probe, chosen.choice.index) == (2, True, 1)


def test_a_failed_try_is_not_repeated_at_once() -> None:
    control = ConfigurationControl(GRID)
    spread = np.array([0.05, 0.05, 0.6])
    unsure = PredictedLatency(np.log([0.02, 0.03, 0.035]), spread)
    control.decide(unsure, [0.5, 0.6, 0.9], 0.05, 0.0)
    assert control.decide(unsure, [0.5, 0.6, 0.9], 0.05, 5.0).probe
    control.learned(late=True, step=None)
    assert not control.decide(unsure, [0.5, 0.6, 0.9], 0.05, 5.1).probe


def test_what_the_caps_forbid_is_neither_chosen_nor_tried() -> None:
    control = ConfigurationControl(GRID)
    allowed = np.array([True, False, False])
    for now in (0.0, 50.0):
        chosen = control.decide(predicted([0.02, 0.02, 0.02]), ACCURACY, 0.05, now, allowed)
        assert (chosen.index, chosen.probe) == (0, False)


@pytest.mark.parametrize('now', [float('nan'), -1e18, 1e18])
@pytest.mark.parametrize('accuracy', [[], [np.nan] * 3, None])
def test_there_is_always_a_choice(now: float, accuracy: object) -> None:
    control = ConfigurationControl(GRID)
    nothing = PredictedLatency(np.full(3, np.nan), np.nan)
    chosen = control.decide(nothing, accuracy, float('nan'), now)  # type: ignore[arg-type]
    assert chosen.index == 0
    assert not chosen.feasible


def test_where_no_choice_is_certain_the_one_that_asks_least_of_about_equals_is_taken() -> None:
    medians = np.log([0.061, 0.060, 0.062])
    load = np.array([0.3, 1.0, 2.0])
    for limit in (0.06, 0.01):  # half a chance, and none at all
        chosen = ConfigurationControl(GRID).decide(
            PredictedLatency(medians, 0.2, load), ACCURACY, limit, 0.0, may_probe=False
        )
        assert (chosen.index, chosen.feasible) == (0, False)
    certain = ConfigurationControl(GRID).decide(
        PredictedLatency(medians, 0.02, load), ACCURACY, 0.1, 0.0, may_probe=False
    )
    assert certain.index == 2


def daring(
    chances: list[float], accuracy: list[float] | None = None, allowed: list[bool] | None = None
) -> Chosen:
    """What is chosen by one who dares 0.9 for 0.015 of accuracy, and asks for 0.95 else."""
    control = ConfigurationControl(GRID, ControlParameters(dared=0.9))
    likely = PredictedLatency(np.log(0.05) - 0.1 * ndtri(chances), 0.1)
    mask = None if allowed is None else np.array(allowed)
    return control.decide(likely, accuracy or ACCURACY, 0.05, 0.0, mask, may_probe=False)


def test_less_certainty_is_enough_where_more_would_cost_accuracy() -> None:
    chosen = daring([0.999, 0.99, 0.92])
    assert (chosen.index, chosen.feasible, chosen.certainty) == (2, True, 0.9)
    assert chosen.latency < 0.05


def test_nothing_is_dared_for_next_to_nothing() -> None:
    chosen = daring([0.999, 0.99, 0.92], [0.7, 0.8, 0.814])
    assert (chosen.index, chosen.feasible, chosen.certainty) == (1, True, 0.95)
    chosen = daring([0.999, 0.99, 0.92], [0.7, 0.8, 0.816])
    assert (chosen.index, chosen.certainty) == (2, 0.9)


def test_what_may_not_be_chosen_is_not_dared_for() -> None:
    chosen = daring([0.999, 0.99, 0.92], allowed=[True, True, False])
    assert (chosen.index, chosen.certainty) == (1, 0.95)


def test_less_than_may_be_dared_stays_out_of_reach() -> None:
    chosen = daring([0.999, 0.99, 0.88])
    assert (chosen.index, chosen.certainty) == (1, 0.95)
    chosen = daring([0.7, 0.6, 0.88])
    assert (chosen.index, chosen.feasible) == (2, False)
    assert chosen.certainty == pytest.approx(0.88)


def test_what_may_be_dared_counts_as_feasible_where_nothing_is_more_certain() -> None:
    chosen = daring([0.93, 0.6, 0.5])
    assert (chosen.index, chosen.feasible) == (0, True)
    assert chosen.certainty == pytest.approx(0.93)
    better = daring([0.93, 0.91, 0.5])
    assert (better.index, better.feasible, better.certainty) == (1, True, 0.9)


def test_without_known_accuracies_nothing_is_dared() -> None:
    with np.errstate(all='raise'):
        chosen = daring([0.999, 0.99, 0.92], [np.nan] * 3)
    assert (chosen.feasible, chosen.certainty) == (True, 0.95)


def test_unless_told_otherwise_it_dares_nothing() -> None:
    control = ConfigurationControl(GRID)
    likely = PredictedLatency(np.log(0.05) - 0.1 * ndtri([0.999, 0.99, 0.94]), 0.1)
    chosen = control.decide(likely, ACCURACY, 0.05, 0.0, may_probe=False)
    assert (chosen.index, chosen.certainty) == (1, 0.95)
