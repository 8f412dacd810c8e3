from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mmedge_ros.lab.bench.scatter_posterior import ScatterPosterior


def learned(deviations: np.ndarray, known: float = 0.0) -> float:
    posterior = ScatterPosterior(0.08)
    for deviation in deviations:
        posterior.update(float(deviation), known)
    return posterior.value


def normal(scale: float, count: int, seed: int = 0) -> np.ndarray:
    return scale * np.random.default_rng(seed).standard_normal(count)


@settings(max_examples=25, deadline=None)
@given(scale=st.floats(0.01, 0.4), seed=st.integers(0, 1000))
def test_it_finds_the_scale_of_normal_samples(scale: float, seed: int) -> None:
    assert learned(normal(scale, 300, seed)) == pytest.approx(scale, rel=0.35)


def test_a_dozen_samples_tell_one_percent_from_fifteen() -> None:
    assert learned(normal(0.01, 12)) < 0.03
    assert learned(normal(0.15, 12)) > 0.1


def test_more_is_expected_where_more_was_expected_before() -> None:
    assert ScatterPosterior(0.02).value < ScatterPosterior(0.08).value


def test_outliers_are_not_taken_for_scatter() -> None:
    samples = normal(0.05, 300)
    spoilt = samples.copy()
    spoilt[25::50] = math.log(6.0)
    assert learned(spoilt) < 1.3 * learned(samples)


def test_what_the_expectation_itself_may_be_off_is_no_scatter() -> None:
    samples = normal(math.hypot(0.05, 0.3), 300)
    assert learned(samples, known=0.3) < 0.15
    assert learned(samples) > 0.25


def test_old_samples_fade() -> None:
    after = learned(np.concatenate([normal(0.2, 200), normal(0.02, 600)]))
    assert after == pytest.approx(0.02, rel=0.35)


@given(
    st.lists(st.tuples(st.floats(-1e100, 1e100) | st.just(math.inf), st.floats(0.0, 1e100))),
)
def test_whatever_is_measured_the_scale_stays_possible(
    samples: list[tuple[float, float]],
) -> None:
    posterior = ScatterPosterior(0.08)
    for deviation, known in samples:
        posterior.update(deviation, known)
        assert 0.00099 < posterior.value < 1.01


@pytest.mark.parametrize('sample', [(math.nan, 0.0), (0.1, math.nan), (math.inf, math.inf)])
def test_what_is_no_number_teaches_nothing(sample: tuple[float, float]) -> None:
    posterior = ScatterPosterior(0.08)
    before = posterior.value
    posterior.update(*sample)
    assert posterior.value == before
    posterior.update(0.01, 0.0)
    assert posterior.value < before
