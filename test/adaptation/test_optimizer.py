from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mmedge_ros.adaptation.configuration_space import Axis, ConfigurationGrid
from mmedge_ros.adaptation.optimizer import Choice, Optimizer, OptimizerParameters
from mmedge_ros.adaptation.predicted_latency import PredictedLatency

GRID = ConfigurationGrid([Axis('a', ('0', '1', '2')), Axis('b', ('0', '1'))])
SIZE = GRID.size

# Few different values, so that ties are common.
coarse = st.sampled_from([0.1, 0.2, 0.3, 0.5])
odd = st.one_of(coarse, st.floats(), st.just(math.nan), st.just(math.inf), st.just(-math.inf))
columns = st.lists(odd, min_size=SIZE, max_size=SIZE)


def brute_force(
    accuracy: list[float],
    latency: list[float],
    limit: float,
    allowed: list[bool],
    energy: list[float],
    current: int | None,
    rules: OptimizerParameters,
) -> int:
    """The same rules, one configuration after the other, without arrays."""
    score = [a if math.isfinite(a) else -math.inf for a in accuracy]
    seconds = [t if math.isfinite(t) else math.inf for t in latency]
    cost = [e if math.isfinite(e) else math.inf for e in energy]
    limit = math.inf if math.isnan(limit) else limit
    open_to = [i for i in range(SIZE) if allowed[i]] or list(range(SIZE))
    if current not in open_to:
        current = None
    feasible = [i for i in open_to if seconds[i] < math.inf and seconds[i] <= limit]
    if not feasible:
        if all(seconds[i] == math.inf for i in open_to):
            return open_to[0] if current is None else current
        least = min(seconds[i] for i in open_to)
        most = least + rules.alike * abs(least)
        alike = [i for i in open_to if seconds[i] <= most and seconds[i] < math.inf]
        return min(alike, key=lambda i: (cost[i], seconds[i], -score[i], i))

    if current is not None and rules.headroom and math.isfinite(limit):
        room = (1.0 - rules.headroom) * limit
        feasible = [i for i in feasible if i == current or seconds[i] <= room] or feasible

    best = min(feasible, key=lambda i: (-score[i], seconds[i], cost[i], i))
    if current is None or current not in feasible or current == best:
        return best
    gain = score[best] - score[current] if score[best] != score[current] else 0.0
    return current if rules.hysteresis > 0 and gain <= rules.hysteresis else best


@settings(max_examples=300)
@given(
    columns,
    columns,
    odd,
    st.lists(st.booleans(), min_size=SIZE, max_size=SIZE),
    columns,
    st.one_of(st.none(), st.integers(-1, SIZE)),
    st.sampled_from([0.0, 0.05, 0.15]),
    st.sampled_from([0.0, 0.4]),
)
def test_the_answer_is_that_of_exhaustive_search(
    accuracy: list[float],
    latency: list[float],
    limit: float,
    allowed: list[bool],
    energy: list[float],
    current: int | None,
    hysteresis: float,
    headroom: float,
) -> None:
    rules = OptimizerParameters(hysteresis, headroom)
    choice = Optimizer(GRID, rules).choose(
        accuracy, latency, limit, np.array(allowed), energy, current
    )
    case = (accuracy, latency, limit, allowed, energy, current)
    assert choice.index == brute_force(*case, rules)


@given(st.integers(0, 10_000), st.floats(0.0, 1.2))
@settings(max_examples=25)
def test_thousands_of_configurations_are_searched_as_exactly(seed: int, limit: float) -> None:
    grid = ConfigurationGrid([Axis(str(n), tuple('1234567')) for n in range(4)])
    random = np.random.default_rng(seed)
    accuracy, latency = random.random((2, grid.size)).round(2)
    choice = Optimizer(grid).choose(accuracy, latency, limit)
    fits = [i for i in range(grid.size) if latency[i] <= limit]
    if fits:
        assert choice == Choice(min(fits, key=lambda i: (-accuracy[i], latency[i], i)), True)
    else:
        assert latency[choice.index] == latency.min()
        assert not choice.feasible


@pytest.mark.parametrize(
    ('accuracy', 'latency', 'allowed', 'energy'),
    [
        ([], [], None, None),
        (None, None, None, None),
        ('x', 'y', 'z', 'w'),
        ([1, 2], [3], [True], []),
        ([math.nan] * SIZE, [math.nan] * SIZE, np.zeros(SIZE, bool), [math.nan] * SIZE),
        ([[1, 2], [3]], [object()] * SIZE, np.ones(SIZE), [1j] * SIZE),
        ([10**400] * SIZE, [-(10**400)] * SIZE, None, None),
    ],
)
@pytest.mark.parametrize('limit', [math.nan, -math.inf, math.inf, 0.0])
def test_there_is_always_an_answer(
    accuracy: Any, latency: Any, allowed: Any, energy: Any, limit: float
) -> None:
    choice = Optimizer(GRID).choose(accuracy, latency, limit, allowed, energy)
    assert choice.index == 0  # nothing is known, so the cheapest
    assert not choice.feasible
    assert choice.violation == math.inf


def test_what_breaks_the_limit_least_is_flagged_with_by_how_much() -> None:
    latency = [0.5, 0.4, 0.3, 0.2, 0.25, 0.6]
    choice = Optimizer(GRID).choose([0.5] * SIZE, latency, 0.1)
    assert (choice.index, choice.feasible) == (3, False)
    assert choice.violation == pytest.approx(0.1)


def test_caps_that_leave_nothing_are_ignored_and_that_is_said() -> None:
    choice = Optimizer(GRID).choose([0.1] * 5 + [0.9], [0.1] * SIZE, 1.0, np.zeros(SIZE, bool))
    assert (choice.index, choice.caps_ignored) == (5, True)


def test_ties_go_to_the_faster_and_then_to_the_thriftier() -> None:
    latency = [0.3, 0.2, 0.2, 0.2, 0.4, 0.9]
    energy = [1.0, 3.0, 2.0, 2.0, 0.0, 0.0]
    assert Optimizer(GRID).choose([0.5] * SIZE, latency, 0.5, energy=energy).index == 2


def test_a_small_gain_is_not_worth_a_change_but_a_broken_limit_is() -> None:
    optimizer = Optimizer(GRID, OptimizerParameters(hysteresis=0.05))
    accuracy, latency = [0.80, 0.84, 0.9, 0.1, 0.1, 0.1], [0.1] * SIZE
    assert optimizer.choose(accuracy[:2] + [0.1] * 4, latency, 0.2, current=0).index == 0
    assert optimizer.choose(accuracy, latency, 0.2, current=0).index == 2
    latency[0] = 0.3
    assert optimizer.choose(accuracy[:2] + [0.1] * 4, latency, 0.2, current=0).index == 1


def test_what_barely_keeps_the_limit_replaces_nothing_that_keeps_it() -> None:
    optimizer = Optimizer(GRID, OptimizerParameters(headroom=0.2))
    accuracy, latency = [0.5, 0.6, 0.9, 0.1, 0.1, 0.1], [0.05, 0.07, 0.09, 0.2, 0.2, 0.2]
    assert optimizer.choose(accuracy, latency, 0.1, current=0).index == 1
    assert optimizer.choose(accuracy, latency, 0.1, current=2).index == 2
    assert optimizer.choose(accuracy, latency, 0.1, current=4).index == 1
    assert optimizer.choose(accuracy, latency, 0.1).index == 2
    tight = [0.09, 0.095, 0.3, 0.3, 0.3, 0.3]
    assert optimizer.choose(accuracy, tight, 0.1, current=2).index == 1


def test_an_overloaded_machine_is_relieved_instead_of_given_the_most_accurate() -> None:
    # As many units as fit wait in every queue, whatever the rate: all are equally late.
    latency = [0.30, 0.304, 0.31, 0.5, 0.5, 0.5]
    accuracy = [0.5, 0.6, 0.7, 0.8, 0.8, 0.9]
    load = [1.0, 0.4, 2.0, 0.1, 0.1, 0.1]
    choice = Optimizer(GRID).choose(accuracy, latency, 0.1, energy=load)
    assert (choice.index, choice.feasible) == (1, False)
    assert choice.violation == pytest.approx(0.204)
    strict = Optimizer(GRID, OptimizerParameters(alike=0.0))
    assert strict.choose(accuracy, latency, 0.1, energy=load).index == 0
    assert Optimizer(GRID).choose(accuracy, latency, 0.1).index == 0


CHOICE_GRID = ConfigurationGrid([Axis('a', ('1', '2', '3'))])
ACCURACIES = [0.7, 0.8, 0.9]


def predicted(medians: list[float], spread: float = 0.05) -> PredictedLatency:
    return PredictedLatency(np.log(medians), spread)


def test_the_most_accurate_that_certainly_keeps_the_limit_is_chosen() -> None:
    control = Optimizer(CHOICE_GRID)
    chosen = control.best(predicted([0.02, 0.04, 0.049]), ACCURACIES, 0.05)
    assert (chosen.index, chosen.feasible, chosen.certainty) == (1, True, 0.95)
    assert 0.04 < chosen.latency < 0.05


def test_ignorance_needs_room_below_the_limit() -> None:
    spread = np.array([0.05, 0.05, 0.8])
    unsure = PredictedLatency(np.log([0.02, 0.03, 0.03]), spread)
    chosen = Optimizer(CHOICE_GRID).best(unsure, ACCURACIES, 0.05)
    assert chosen.index == 1


def test_when_nothing_is_certain_the_most_certain_is_chosen_and_flagged() -> None:
    chosen = Optimizer(CHOICE_GRID).best(predicted([0.048, 0.06, 0.07], 0.2), ACCURACIES, 0.05)
    assert (chosen.index, chosen.feasible) == (0, False)
    assert 0.5 < chosen.certainty < 0.65


def test_when_nothing_is_possible_the_smallest_violation_is_chosen_and_flagged() -> None:
    chosen = Optimizer(CHOICE_GRID).best(predicted([0.2, 0.3, 0.1]), ACCURACIES, 0.05)
    assert (chosen.index, chosen.feasible) == (2, False)
    assert chosen.violation > 0.0


def test_what_the_caps_forbid_is_not_chosen() -> None:
    allowed = np.array([True, False, False])
    level = predicted([0.02, 0.02, 0.02])
    assert Optimizer(CHOICE_GRID).best(level, ACCURACIES, 0.05, allowed).index == 0


@pytest.mark.parametrize('accuracy', [[], [np.nan] * 3, None])
def test_there_is_always_a_choice(accuracy: object) -> None:
    control = Optimizer(CHOICE_GRID)
    nothing = PredictedLatency(np.full(3, np.nan), np.nan)
    chosen = control.best(nothing, accuracy, float('nan'))  # type: ignore[arg-type]
    assert chosen.index == 0
    assert not chosen.feasible


def test_where_no_choice_is_certain_the_one_that_asks_least_of_about_equals_is_taken() -> None:
    medians = np.log([0.061, 0.060, 0.062])
    load = np.array([0.3, 1.0, 2.0])
    for limit in (0.06, 0.01):  # half a chance, and none at all
        chosen = Optimizer(CHOICE_GRID).best(
            PredictedLatency(medians, 0.2, load), ACCURACIES, limit
        )
        assert (chosen.index, chosen.feasible) == (0, False)
    certain = Optimizer(CHOICE_GRID).best(PredictedLatency(medians, 0.02, load), ACCURACIES, 0.1)
    assert certain.index == 2


def test_a_little_accuracy_is_not_worth_much_delay() -> None:
    accuracy = np.array([0.50, 0.51, 0.60])
    delay = np.array([0.010, 0.030, 0.060])
    known = PredictedLatency(np.log([0.01, 0.03, 0.06]), 0.01, delay=delay)
    assert Optimizer(CHOICE_GRID).best(known, accuracy, 0.05).index == 0
    assert Optimizer(CHOICE_GRID).best(known, accuracy, 0.1).index == 2
    freely = Optimizer(CHOICE_GRID, OptimizerParameters(latency_price=0.0))
    assert freely.best(known, accuracy, 0.05).index == 1


def test_a_change_is_forced_by_the_limit_and_by_caps_and_not_by_accuracy() -> None:
    control = Optimizer(CHOICE_GRID)
    within = predicted([0.01, 0.03, 0.04])
    assert not control.best(within, ACCURACIES, 0.05, None, 1).forced
    assert control.best(within, ACCURACIES, 0.02, None, 1).forced
    assert control.best(within, ACCURACIES, 0.05, np.array([True, False, True]), 1).forced
