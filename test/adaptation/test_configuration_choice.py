from __future__ import annotations

import numpy as np
import pytest

from mmedge_ros.adaptation.configuration_choice import (
    ChoiceParameters,
    ConfigurationChoice,
)
from mmedge_ros.adaptation.configuration_space import Axis, ConfigurationGrid
from mmedge_ros.adaptation.predicted_latency import PredictedLatency

GRID = ConfigurationGrid([Axis('a', ('1', '2', '3'))])
ACCURACY = [0.7, 0.8, 0.9]


def predicted(medians: list[float], spread: float = 0.05) -> PredictedLatency:
    return PredictedLatency(np.log(medians), spread)


def test_the_most_accurate_that_certainly_keeps_the_limit_is_chosen() -> None:
    control = ConfigurationChoice(GRID)
    chosen = control.decide(predicted([0.02, 0.04, 0.049]), ACCURACY, 0.05)
    assert (chosen.index, chosen.feasible, chosen.certainty) == (1, True, 0.95)
    assert 0.04 < chosen.latency < 0.05


def test_ignorance_needs_room_below_the_limit() -> None:
    spread = np.array([0.05, 0.05, 0.8])
    unsure = PredictedLatency(np.log([0.02, 0.03, 0.03]), spread)
    chosen = ConfigurationChoice(GRID).decide(unsure, ACCURACY, 0.05)
    assert chosen.index == 1


def test_when_nothing_is_certain_the_most_certain_is_chosen_and_flagged() -> None:
    chosen = ConfigurationChoice(GRID).decide(predicted([0.048, 0.06, 0.07], 0.2), ACCURACY, 0.05)
    assert (chosen.index, chosen.feasible) == (0, False)
    assert 0.5 < chosen.certainty < 0.65


def test_when_nothing_is_possible_the_smallest_violation_is_chosen_and_flagged() -> None:
    chosen = ConfigurationChoice(GRID).decide(predicted([0.2, 0.3, 0.1]), ACCURACY, 0.05)
    assert (chosen.index, chosen.feasible) == (2, False)
    assert chosen.choice.violation > 0.0


def test_what_the_caps_forbid_is_not_chosen() -> None:
    allowed = np.array([True, False, False])
    level = predicted([0.02, 0.02, 0.02])
    assert ConfigurationChoice(GRID).decide(level, ACCURACY, 0.05, allowed).index == 0


@pytest.mark.parametrize('accuracy', [[], [np.nan] * 3, None])
def test_there_is_always_a_choice(accuracy: object) -> None:
    control = ConfigurationChoice(GRID)
    nothing = PredictedLatency(np.full(3, np.nan), np.nan)
    chosen = control.decide(nothing, accuracy, float('nan'))  # type: ignore[arg-type]
    assert chosen.index == 0
    assert not chosen.feasible


def test_where_no_choice_is_certain_the_one_that_asks_least_of_about_equals_is_taken() -> None:
    medians = np.log([0.061, 0.060, 0.062])
    load = np.array([0.3, 1.0, 2.0])
    for limit in (0.06, 0.01):  # half a chance, and none at all
        chosen = ConfigurationChoice(GRID).decide(
            PredictedLatency(medians, 0.2, load), ACCURACY, limit
        )
        assert (chosen.index, chosen.feasible) == (0, False)
    certain = ConfigurationChoice(GRID).decide(
        PredictedLatency(medians, 0.02, load), ACCURACY, 0.1
    )
    assert certain.index == 2


def test_a_little_accuracy_is_not_worth_much_delay() -> None:
    accuracy = np.array([0.50, 0.51, 0.60])
    delay = np.array([0.010, 0.030, 0.060])
    known = PredictedLatency(np.log([0.01, 0.03, 0.06]), 0.01, delay=delay)
    assert ConfigurationChoice(GRID).decide(known, accuracy, 0.05).index == 0
    assert ConfigurationChoice(GRID).decide(known, accuracy, 0.1).index == 2
    freely = ConfigurationChoice(GRID, ChoiceParameters(latency_price=0.0))
    assert freely.decide(known, accuracy, 0.05).index == 1


def test_a_change_is_forced_by_the_limit_and_by_caps_and_not_by_accuracy() -> None:
    control = ConfigurationChoice(GRID)
    control.use(1)
    within = predicted([0.01, 0.03, 0.04])
    assert not control.best(within, ACCURACY, 0.05).forced
    assert control.best(within, ACCURACY, 0.02).forced
    assert control.best(within, ACCURACY, 0.05, np.array([True, False, True])).forced
    assert control.current == 1
