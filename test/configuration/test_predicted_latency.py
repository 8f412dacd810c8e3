from __future__ import annotations

import math

import numpy as np
import pytest

from mmedge_ros.configuration.predicted_latency import LogNormal, PredictedLatency


def predicted() -> PredictedLatency:
    return PredictedLatency(np.log([0.01, 0.02, 0.04]), np.array([0.1, 0.2, 0.4]))


def test_a_quantile_is_kept_with_its_probability() -> None:
    for probability in (0.05, 0.5, 0.95):
        for index, limit in enumerate(predicted().quantiles(probability)):
            assert predicted().chances(limit)[index] == pytest.approx(probability)


def test_the_median_is_the_median_whatever_the_spread() -> None:
    assert predicted().quantiles(0.5) == pytest.approx([0.01, 0.02, 0.04])


def test_no_limit_is_always_kept_and_an_impossible_one_never() -> None:
    for none in (math.nan, math.inf):
        assert predicted().chances(none).tolist() == [1.0] * 3
    for impossible in (0.0, -1.0, -math.inf):
        assert predicted().chances(impossible).tolist() == [0.0] * 3


def test_to_keep_a_limit_once_is_what_a_plain_log_normal_can_promise() -> None:
    for limit in (0.015, 0.03, math.nan, 0.0):
        for certainty in (0.5, 0.95):
            promises = predicted().promises(limit, certainty)
            assert promises.tolist() == predicted().chances(limit).tolist()


def test_the_best_chance_is_the_largest_of_those_that_are_allowed_and_known() -> None:
    chances = predicted().chances(0.015)
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
