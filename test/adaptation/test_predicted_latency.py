from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.special import ndtr

from mmedge_ros.adaptation.predicted_latency import DecisionProof, LogNormal, PredictedLatency


def predicted() -> PredictedLatency:
    return PredictedLatency(np.log([0.01, 0.02, 0.04]), np.array([0.1, 0.2, 0.4]))


def test_a_quantile_is_kept_with_its_probability() -> None:
    for probability in (0.05, 0.5, 0.95):
        for index, limit in enumerate(predicted().quantiles(probability)):
            only = np.arange(3) == index
            assert predicted().best_chance(limit, only) == pytest.approx(probability)


def test_the_median_is_the_median_whatever_the_spread() -> None:
    assert predicted().quantiles(0.5) == pytest.approx([0.01, 0.02, 0.04])


def test_no_limit_is_always_kept_and_an_impossible_one_never() -> None:
    for none in (math.nan, math.inf):
        assert predicted().best_chance(none) == 1.0
    for impossible in (0.0, -1.0, -math.inf):
        assert predicted().best_chance(impossible) == 0.0


def test_the_best_chance_is_the_largest_of_those_that_are_allowed_and_known() -> None:
    chances = ndtr(np.log(0.015 / np.array([0.01, 0.02, 0.04])) / [0.1, 0.2, 0.4])
    assert predicted().best_chance(0.015) == pytest.approx(chances.max())
    allowed = np.array([False, True, True])
    assert predicted().best_chance(0.015, allowed) == pytest.approx(chances[1:].max())
    assert predicted().best_chance(0.015, ~np.ones(3, bool)) == pytest.approx(chances.max())
    unknown = PredictedLatency(np.full(3, math.nan), 0.1)
    assert unknown.best_chance(0.015) == 0.0
    assert predicted().best_chance(math.nan) == 1.0


def test_what_is_known_better_of_one_leaves_the_others() -> None:
    whole = predicted()
    better = whole.but(1, LogNormal(math.log(0.005), 0.1))
    assert better.of(1) == pytest.approx((math.log(0.005), 0.1))
    assert better.of(2) == whole.of(2)
    assert whole.of(1) == pytest.approx((math.log(0.02), 0.2))
    assert PredictedLatency(np.log([0.01, 0.02]), 0.3).of(1).spread == 0.3


FEARED, CHEAP = 0.095, 0.010


class Bench:
    """A model that fears a full queue for configuration 1, and a machine with a pace."""

    def __init__(self) -> None:
        self.pace = 0.95
        self.proven = DecisionProof(lambda _: self.pace)
        self.now = 100.0

    def predict(self) -> PredictedLatency:  # always the same
        return PredictedLatency(np.log([CHEAP, FEARED]), 0.1)

    def decide(self, latency: float, count: int) -> None:
        for _ in range(count):
            self.now += 0.1
            self.proven.decided(latency, self.now)

    def p95(self, index: int = 1) -> float:
        known = self.proven.corrected(self.predict(), self.now)
        return float(known.quantiles(0.95)[index])


def running() -> Bench:
    bench = Bench()
    bench.proven.configured(1, bench.now)
    bench.now += 0.5  # queues from before are empty
    return bench


def test_decisions_in_time_outweigh_what_the_model_fears() -> None:
    bench = running()
    before = bench.p95()
    bench.decide(0.020, 8)
    assert before > FEARED
    assert bench.p95() == pytest.approx(0.0204, rel=0.01)
    assert bench.p95(0) == pytest.approx(CHEAP * math.exp(0.1645), rel=0.01)


def test_decisions_that_wait_for_queues_from_before_prove_nothing() -> None:
    bench = Bench()
    bench.proven.configured(1, bench.now)
    bench.decide(0.080, 5)
    bench.decide(0.020, 4)
    assert bench.p95() == pytest.approx(0.0204, rel=0.01)


def test_the_longest_of_few_counts_and_of_many_the_second_longest() -> None:
    bench = running()
    bench.decide(0.020, 4)
    bench.decide(0.060, 1)
    bench.decide(0.020, 4)
    assert bench.p95() == pytest.approx(0.0612, rel=0.01)
    bench.decide(0.020, 1)
    assert bench.p95() == pytest.approx(0.0204, rel=0.01)
    bench.decide(0.060, 1)
    assert bench.p95() == pytest.approx(0.0612, rel=0.01)


def test_what_the_model_says_of_the_configuration_in_use_explains_late_decisions() -> None:
    bench = running()
    assert not bench.proven.is_explained(0.05)  # nothing was predicted yet
    bench.p95()
    assert bench.proven.is_explained(0.05)
    assert not bench.proven.is_explained(0.2)


def test_two_decisions_prove_nothing_and_neither_do_old_ones() -> None:
    bench = running()
    bench.decide(0.020, 2)
    assert bench.p95() > FEARED
    bench.decide(0.020, 6)
    bench.now += 2.5
    assert bench.p95() > FEARED


def test_decisions_of_the_configuration_before_prove_nothing() -> None:
    bench = running()
    bench.decide(0.020, 8)
    bench.proven.configured(0, bench.now)
    assert bench.p95() > FEARED
    bench.proven.configured(1, bench.now + 0.5)
    bench.decide(0.020, 5)
    assert bench.p95() > FEARED


def test_a_machine_that_became_slower_is_judged_by_its_unit_times() -> None:
    bench = running()
    bench.decide(0.020, 8)
    bench.pace = 1.3
    assert bench.p95() > FEARED


def test_it_never_promises_less_than_the_model_hopes() -> None:
    bench = running()
    bench.decide(0.200, 8)
    assert bench.p95() == pytest.approx(FEARED * math.exp(0.1645), rel=0.01)


@pytest.mark.parametrize('latency', [-0.1, 0.0, math.nan, math.inf])
def test_early_decisions_and_latencies_that_cannot_be_prove_nothing(latency: float) -> None:
    bench = running()
    bench.decide(latency, 8)
    assert bench.p95() > FEARED


def test_a_clock_that_is_set_back_forgets() -> None:
    bench = running()
    bench.decide(0.020, 8)
    bench.now -= 50.0
    assert bench.p95() > FEARED
