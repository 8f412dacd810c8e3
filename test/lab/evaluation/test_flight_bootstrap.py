"""Intervals over flights, of figures whose spread is known."""

import math

import numpy as np
import pytest
from hand_made_evaluation import flight_figures
from hypothesis import given, settings
from hypothesis import strategies as st

from mmedge_ros.lab.evaluation.case_figures import NIGHT, OVERALL, Stratum
from mmedge_ros.lab.evaluation.flight_bootstrap import Drawings


def test_flights_weigh_by_their_people() -> None:
    flights = [flight_figures(0.2, people=300.0), flight_figures(0.6, people=100.0)]
    estimate = Drawings.of(2, 500).estimate(flights, OVERALL, 'mean_iou')
    assert estimate.value == pytest.approx(0.3)
    assert (estimate.low, estimate.high) == pytest.approx((0.2, 0.6))


def test_the_interval_is_about_that_of_the_mean_of_flights() -> None:
    random = np.random.default_rng(3)
    values = random.normal(0.5, 0.1, 40)
    flights = [flight_figures(value) for value in values]
    estimate = Drawings.of(40).estimate(flights, OVERALL, 'recall')
    half = 1.96 * values.std() / math.sqrt(40)
    assert estimate.value == pytest.approx(values.mean())
    assert estimate.high - estimate.low == pytest.approx(2 * half, rel=0.1)


def test_what_flights_share_cancels_in_a_paired_difference() -> None:
    random = np.random.default_rng(4)
    base = random.uniform(0.2, 0.8, 20)
    theirs = [flight_figures(value) for value in base]
    ours = [flight_figures(value + 0.01 + random.normal(0.0, 0.005)) for value in base]
    drawings = Drawings.of(20)
    difference = drawings.difference(ours, theirs, OVERALL, 'mean_iou')
    assert difference.excludes_zero
    assert difference.low > 0.0
    alone = drawings.estimate(ours, OVERALL, 'mean_iou')
    assert alone.high - alone.low > 10 * (difference.high - difference.low)


def test_a_difference_of_noise_holds_zero() -> None:
    random = np.random.default_rng(5)
    ours, theirs = ([flight_figures(v) for v in random.normal(0.5, 0.1, 20)] for _ in range(2))
    assert not Drawings.of(20).difference(ours, theirs, OVERALL, 'mean_iou').excludes_zero


def test_one_flight_has_a_figure_and_no_interval() -> None:
    flights = [flight_figures(0.5, 'night'), flight_figures(0.7), flight_figures(0.8)]
    estimate = Drawings.of(3).estimate(flights, NIGHT, 'mean_iou')
    assert estimate.value == pytest.approx(0.5)
    assert math.isnan(estimate.low)
    assert not estimate.excludes_zero
    nobody = Drawings.of(3).estimate(flights, Stratum('light', 'fog'), 'mean_iou')
    assert math.isnan(nobody.value)


def test_medians_are_pooled_over_flights() -> None:
    flights = [flight_figures(0.5, error=error) for error in (0.1, 0.2, 0.4)]
    estimate = Drawings.of(3).estimate(flights, OVERALL, 'range_error_m')
    assert estimate.value == pytest.approx(0.2)
    assert (estimate.low, estimate.high) == pytest.approx((0.1, 0.4))


def test_the_same_flights_give_the_same_interval() -> None:
    flights = [flight_figures(value) for value in (0.2, 0.4, 0.9)]
    first, second = (Drawings.of(3).estimate(flights, OVERALL, 'mean_iou') for _ in range(2))
    assert first == second


@settings(max_examples=30)
@given(st.lists(st.floats(0.0, 1.0), min_size=2, max_size=8))
def test_an_interval_lies_within_what_flights_showed(values: list[float]) -> None:
    flights = [flight_figures(value) for value in values]
    estimate = Drawings.of(len(values), 50).estimate(flights, OVERALL, 'mean_iou')
    assert min(values) - 1e-9 <= estimate.low <= estimate.high <= max(values) + 1e-9


def test_flights_of_a_scenario_do_not_count_as_if_they_knew_nothing_of_each_other() -> None:
    random = np.random.default_rng(6)
    of_scenario = np.repeat(random.normal(0.5, 0.1, 20), 5)
    flights = [flight_figures(value) for value in of_scenario]
    scenarios = [f'scenario {number // 5}' for number in range(100)]
    together = Drawings.within(scenarios).estimate(flights, OVERALL, 'mean_iou')
    apart = Drawings.of(100).estimate(flights, OVERALL, 'mean_iou')
    half = 1.96 * of_scenario.std() / math.sqrt(20)
    assert together.value == pytest.approx(apart.value)
    assert together.high - together.low == pytest.approx(2 * half, rel=0.15)
    assert together.high - together.low > 2 * (apart.high - apart.low)


def test_each_drawing_of_scenarios_has_as_many_flights_as_there_are() -> None:
    weights = Drawings.within(['a', 'b', 'a', 'c', 'a', 'c', 'c', 'b', 'b'], 50).weights
    assert (weights.sum(axis=1) == 9).all()
    assert len(np.unique(weights[:, [0, 2, 4]].sum(axis=1) % 3)) == 1
    alone = Drawings.within(['a', 'b', 'c'], 50).weights
    assert (alone == Drawings.of(3, 50).weights).all()
