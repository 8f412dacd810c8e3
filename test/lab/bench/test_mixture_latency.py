from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import ndtri

from mmedge_ros.configuration.predicted_latency import PredictedLatency
from mmedge_ros.lab.bench.mixture_latency import MixtureLatency

TABLE = np.log([0.02, 0.04, 0.08])
SCATTER = 0.1


def mixture(
    shares: list[float], ratios: list[float], ignorance: float = 0.05, scatter: float = SCATTER
) -> MixtureLatency:
    """Components that say the same of three configurations."""
    means = np.repeat(np.array(ratios)[:, None], 3, axis=1)
    return MixtureLatency(TABLE, np.array(shares), means, np.full_like(means, ignorance), scatter)


def overloaded_or_not(busy: float = 0.5) -> MixtureLatency:
    return mixture([1.0 - busy, busy], [0.0, 3.0])


def test_of_one_component_it_is_a_log_normal() -> None:
    one, plain = mixture([1.0], [0.2]), PredictedLatency(TABLE + 0.2, math.hypot(0.05, SCATTER))
    for limit in (0.03, 0.05, 0.1):
        assert one.chances(limit) == pytest.approx(plain.chances(limit))
        assert one.best_chance(limit) == pytest.approx(plain.best_chance(limit))
    for probability in (0.1, 0.5, 0.95):
        assert one.quantiles(probability) == pytest.approx(plain.quantiles(probability))
        near = one.quantiles(probability, 0.045)
        assert near == pytest.approx(plain.quantiles(probability), rel=0.05)


def test_between_two_things_that_may_be_true_the_chance_is_that_of_the_first() -> None:
    assert overloaded_or_not(0.3).chances(0.2) == pytest.approx([0.7, 0.7, 0.7], abs=0.01)


def test_shares_may_differ_from_configuration_to_configuration() -> None:
    shares = np.array([[1.0, 0.5, 0.0], [0.0, 0.5, 1.0]])
    ratios = np.repeat([[0.0], [3.0]], 3, axis=1)
    latency = MixtureLatency(TABLE, shares, ratios, np.full((2, 3), 0.05), SCATTER)
    assert latency.chances(0.2) == pytest.approx([1.0, 0.5, 0.0], abs=0.01)


def test_mean_and_spread_are_those_of_the_mixture() -> None:
    random = np.random.default_rng(3)
    busy = random.random(40_000) < 0.3
    logs = 3.0 * busy + math.hypot(0.05, SCATTER) * random.standard_normal(busy.size)
    latency = overloaded_or_not(0.3)
    assert latency.log_median == pytest.approx(TABLE + logs.mean(), abs=0.03)
    assert np.asarray(latency.spread) == pytest.approx(np.full(3, logs.std()), rel=0.02)


def test_a_mixture_that_knows_exactly_is_no_narrower_than_possible() -> None:
    sure = mixture([0.3, 0.7], [9.0, 9.0], ignorance=0.0, scatter=0.0)
    assert np.all(np.asarray(sure.spread) > 0.0)
    assert sure.but(0, sure.of(1)).chances(1000.0).tolist() == [1.0, 1.0, 1.0]


@given(st.floats(0.0, 1.0), st.floats(-1.0, 4.0), st.floats(0.001, 0.999), st.floats(0.005, 2.0))
def test_a_quantile_is_below_a_latency_where_that_is_kept_so_probably(
    busy: float, slower: float, probability: float, limit: float
) -> None:
    latency = mixture([1.0 - busy, busy], [0.0, slower])
    chances = latency.chances(limit)
    assert np.all((chances >= 0.0) & (chances <= 1.0 + 1e-12))
    quantiles = latency.quantiles(probability, limit)
    decided = np.abs(chances - probability) > 1e-6
    assert ((quantiles <= limit) == (chances >= probability))[decided].all()
    assert np.all(quantiles * (1.0 + 1e-9) >= latency.quantiles(0.5 * probability, limit))


@given(st.floats(0.005, 2.0), st.floats(1.0, 3.0), st.floats(0.0, 1.0))
def test_more_time_is_kept_more_probably(limit: float, factor: float, busy: float) -> None:
    latency = overloaded_or_not(busy)
    sooner, later = latency.chances(limit), latency.chances(factor * limit)
    assert np.all(later >= sooner - 1e-12)
    assert latency.chances(limit) == pytest.approx(sooner)


def test_where_nothing_can_keep_a_limit_the_fastest_still_looks_fastest() -> None:
    quantiles = mixture([1.0], [0.0]).quantiles(0.95, 0.001)
    assert quantiles == pytest.approx(mixture([1.0], [0.0]).quantiles(0.95))
    assert quantiles[0] < quantiles[1] < quantiles[2]


@pytest.mark.parametrize('near', [math.nan, math.inf, 0.0, -1.0])
def test_near_no_latency_quantiles_are_those_of_one_log_normal(near: float) -> None:
    latency = overloaded_or_not()
    assert latency.quantiles(0.9, near).tolist() == latency.quantiles(0.9).tolist()
    expected = np.exp(latency.log_median + float(ndtri(0.9)) * np.asarray(latency.spread))
    assert latency.quantiles(0.9) == pytest.approx(expected)


def test_to_prove_good_enough_is_to_have_a_mean_that_leaves_room_for_scatter() -> None:
    random = np.random.default_rng(5)
    for certainty in (0.6, 0.95):
        means = 0.3 * random.standard_normal((40_000, 1)) + TABLE
        kept = means + float(ndtri(certainty)) * SCATTER <= math.log(0.05)
        promises = mixture([1.0], [0.0], ignorance=0.3).promises(0.05, certainty)
        assert promises == pytest.approx(kept.mean(axis=0), abs=0.01)


def test_what_is_known_to_leave_no_room_promises_nothing_though_it_may_keep_the_limit() -> None:
    known = mixture([1.0], [0.0], ignorance=0.0)
    limit = 0.04 * math.exp(SCATTER)
    assert known.chances(limit)[1] > 0.8
    assert known.promises(limit, 0.95).tolist() == [1.0, 0.0, 0.0]


def test_no_limit_is_always_kept_and_an_impossible_one_never() -> None:
    latency = overloaded_or_not()
    for limit, expected in ((math.nan, 1.0), (math.inf, 1.0), (0.0, 0.0), (-1.0, 0.0)):
        assert latency.chances(limit).tolist() == [expected] * 3
        assert latency.promises(limit, 0.95).tolist() == [expected] * 3
        assert latency.best_chance(limit) == expected


def test_the_best_chance_is_the_largest_of_those_that_are_allowed_and_known() -> None:
    latency = overloaded_or_not()
    chances = latency.chances(0.045)
    assert latency.best_chance(0.045) == chances[0]
    assert latency.best_chance(0.045, np.array([False, True, True])) == chances[1]
    assert latency.best_chance(0.045, np.zeros(3, bool)) == chances[0]
    unknown = MixtureLatency(
        np.array([math.nan, TABLE[1]]), np.ones(1), np.zeros((1, 2)), np.ones((1, 2)), SCATTER
    )
    assert unknown.best_chance(0.045) == pytest.approx(unknown.chances(0.045)[1])
    assert unknown.best_chance(0.045, np.array([True, False])) == 0.0
