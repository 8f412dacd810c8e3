"""What is learned from counted flights."""

from __future__ import annotations

import numpy as np
import pytest

from mmedge_lab.training import TrainingError
from mmedge_lab.training.count_fit import (
    CountExample,
    CountFit,
    as_code,
    fit_count,
    fit_counts,
    fixed_reach,
    quantile_weights,
)
from mmedge_lab.training.logistic_regression import logistic_weights
from mmedge_ros.questions.counting import CountFacts, CountParameters, range_of
from mmedge_ros.questions.tracklets import MergeParameters


def _example(seed: int, groups: int, truth: int) -> CountExample:
    facts = CountFacts(groups, 0, groups, float(groups), groups, 5.0, 0.0)
    return CountExample(str(seed), facts, truth)


def test_a_share_of_what_is_there_lies_below_a_quantile() -> None:
    random = np.random.default_rng(1)
    rows = np.stack([np.ones(400), random.uniform(0.0, 10.0, 400)], axis=1)
    truth = rows[:, 1] * (1.0 + random.uniform(-0.5, 0.5, 400))
    for share in (0.05, 0.5, 0.95):
        weights = quantile_weights(rows, truth, share)
        assert np.mean(truth <= rows @ weights) == pytest.approx(share, abs=0.02)


def test_what_makes_pairs_the_same_gets_a_greater_weight() -> None:
    random = np.random.default_rng(2)
    rows = np.stack([np.ones(500), random.normal(size=500), random.normal(size=500)], axis=1)
    same = (2.0 * rows[:, 1] + random.logistic(size=500) > 0.0).astype(float)
    _, first, second = logistic_weights(rows, same, 1e-2)
    assert first == pytest.approx(2.0, abs=0.5)
    assert abs(second) < 0.3


def test_ranges_hold_on_seeds_left_out_as_often_as_stated() -> None:
    random = np.random.default_rng(3)
    examples = []
    for seed in range(12):
        for _ in range(20):
            truth = int(random.integers(1, 8))
            examples.append(_example(seed, truth + int(random.integers(-1, 3)), truth))
    parameters, left_out = fit_count(examples)
    assert left_out >= 0.9
    held = [range_of(one.facts, parameters) for one in examples]
    widths = [said.high - said.low for said in held]
    assert 1.0 <= np.mean(widths) <= 4.0


def test_the_rival_of_a_fixed_width_is_given_the_best_one() -> None:
    examples = [_example(seed, 3, 3 + seed % 3) for seed in range(30)]
    assert fixed_reach(examples) == (0, 2)


def test_flights_of_few_seeds_are_refused() -> None:
    with pytest.raises(TrainingError, match='fewer than 4 seeds'):
        fit_counts([])


def test_what_is_printed_is_what_was_fitted() -> None:
    merging = MergeParameters(offset=1.5, gap=-0.7)
    counting = CountParameters(wider=0.25)
    code = as_code(CountFit(merging, counting, (0, 2), 9, 3, 20, 0.9))
    made: dict[str, object] = {}
    exec(code, {'MergeParameters': MergeParameters, 'CountParameters': CountParameters}, made)
    assert made == {'MERGE': merging, 'COUNT': counting, 'FIXED_REACH': (0, 2)}
