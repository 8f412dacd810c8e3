"""Intervals over flights, of figures whose spread is known."""

import math
from pathlib import Path

import numpy as np
import pytest
from hand_made_evaluation import flight_figures
from hypothesis import given, settings
from hypothesis import strategies as st

from mmedge_lab.judging.case_figures import NIGHT, OVERALL, Stratum
from mmedge_lab.judging.flight_bootstrap import Drawings, flight_seeds
from mmedge_lab.simulation.flight_bag import write_flight
from mmedge_lab.simulation.flight_folder import FlightDescription


def test_flights_weigh_by_their_people() -> None:
    flights = [flight_figures(0.2, people=300.0), flight_figures(0.6, people=100.0)]
    estimate = Drawings.of(range(2), 500).estimate(flights, OVERALL, 'mean_iou')
    assert estimate.value == pytest.approx(0.3)
    assert (estimate.low, estimate.high) == pytest.approx((0.2, 0.6))


def test_the_interval_is_about_that_of_the_mean_of_flights() -> None:
    random = np.random.default_rng(3)
    values = random.normal(0.5, 0.1, 40)
    flights = [flight_figures(value) for value in values]
    estimate = Drawings.of(range(40)).estimate(flights, OVERALL, 'recall')
    half = 1.96 * values.std() / math.sqrt(40)
    assert estimate.value == pytest.approx(values.mean())
    assert estimate.high - estimate.low == pytest.approx(2 * half, rel=0.1)


def test_what_flights_share_cancels_in_a_paired_difference() -> None:
    random = np.random.default_rng(4)
    base = random.uniform(0.2, 0.8, 20)
    theirs = [flight_figures(value) for value in base]
    ours = [flight_figures(value + 0.01 + random.normal(0.0, 0.005)) for value in base]
    drawings = Drawings.of(range(20))
    difference = drawings.difference(ours, theirs, OVERALL, 'mean_iou')
    assert difference.excludes_zero
    assert difference.low > 0.0
    alone = drawings.estimate(ours, OVERALL, 'mean_iou')
    assert alone.high - alone.low > 10 * (difference.high - difference.low)


def test_a_difference_of_noise_holds_zero() -> None:
    random = np.random.default_rng(5)
    ours, theirs = ([flight_figures(v) for v in random.normal(0.5, 0.1, 20)] for _ in range(2))
    assert not Drawings.of(range(20)).difference(ours, theirs, OVERALL, 'mean_iou').excludes_zero


def test_one_flight_has_a_figure_and_no_interval() -> None:
    flights = [flight_figures(0.5, 'night'), flight_figures(0.7), flight_figures(0.8)]
    estimate = Drawings.of(range(3)).estimate(flights, NIGHT, 'mean_iou')
    assert estimate.value == pytest.approx(0.5)
    assert math.isnan(estimate.low)
    assert not estimate.excludes_zero
    nobody = Drawings.of(range(3)).estimate(flights, Stratum('light', 'fog'), 'mean_iou')
    assert math.isnan(nobody.value)


def test_medians_are_pooled_over_flights() -> None:
    flights = [flight_figures(0.5, error=error) for error in (0.1, 0.2, 0.4)]
    estimate = Drawings.of(range(3)).estimate(flights, OVERALL, 'range_error_m')
    assert estimate.value == pytest.approx(0.2)
    assert (estimate.low, estimate.high) == pytest.approx((0.1, 0.4))


def test_the_same_flights_give_the_same_interval() -> None:
    flights = [flight_figures(value) for value in (0.2, 0.4, 0.9)]
    first, second = (
        Drawings.of(range(3)).estimate(flights, OVERALL, 'mean_iou') for _ in range(2)
    )
    assert first == second


@settings(max_examples=30)
@given(st.lists(st.floats(0.0, 1.0), min_size=2, max_size=8))
def test_an_interval_lies_within_what_flights_showed(values: list[float]) -> None:
    flights = [flight_figures(value) for value in values]
    estimate = Drawings.of(range(len(values)), 50).estimate(flights, OVERALL, 'mean_iou')
    assert min(values) - 1e-9 <= estimate.low <= estimate.high <= max(values) + 1e-9


def test_flights_of_a_seed_do_not_count_as_if_they_knew_nothing_of_each_other() -> None:
    random = np.random.default_rng(6)
    of_seed = np.repeat(random.normal(0.5, 0.1, 20), 5)
    flights = [flight_figures(value) for value in of_seed]
    together = Drawings.of([number // 5 for number in range(100)])
    estimate = together.estimate(flights, OVERALL, 'mean_iou')
    apart = Drawings.of(range(100)).estimate(flights, OVERALL, 'mean_iou')
    half = 1.96 * of_seed.std() / math.sqrt(20)
    assert estimate.value == pytest.approx(apart.value)
    assert estimate.high - estimate.low == pytest.approx(2 * half, rel=0.15)
    assert estimate.high - estimate.low > 2 * (apart.high - apart.low)


def test_flights_that_share_a_seed_are_one_draw() -> None:
    drawings = Drawings.of(['a', 'b', 'a', 'c', 'a'], 50)
    assert (drawings.weights[:, 0] == drawings.weights[:, 2]).all()
    assert (drawings.weights[:, 0] == drawings.weights[:, 4]).all()
    assert (drawings.weights[:, [0, 1, 3]].sum(axis=1) == 3).all()
    assert (drawings.weights[:, [0, 1, 3]] == Drawings.of(range(3), 50).weights).all()


def test_several_flights_of_one_seed_have_no_interval() -> None:
    flights = [flight_figures(value) for value in (0.2, 0.4, 0.9)]
    estimate = Drawings.of(['a', 'a', 'a']).estimate(flights, OVERALL, 'mean_iou')
    assert estimate.value == pytest.approx(0.5)
    assert math.isnan(estimate.low)


def test_a_stratum_of_one_seed_has_no_interval_either() -> None:
    flights = [flight_figures(0.5, 'night'), flight_figures(0.7, 'night'), flight_figures(0.8)]
    night = Drawings.of([1, 1, 2]).estimate(flights, NIGHT, 'mean_iou')
    assert math.isnan(night.low)
    error = Drawings.of([1, 1, 2]).estimate(flights, NIGHT, 'range_error_m')
    assert math.isnan(error.low)


def test_the_same_flights_many_times_over_are_drawn_together() -> None:
    drawings = Drawings.of(['a', 'b'], 50).repeated(2)
    assert (drawings.weights[:, :2] == drawings.weights[:, 2:]).all()
    assert drawings.count([True] * 4) == 2


def test_a_flight_counts_as_its_seed_and_any_other_recording_as_itself(tmp_path: Path) -> None:
    for name, seed in (('day', 7), ('night', 7), ('other', 8)):
        write_flight(tmp_path / name, FlightDescription('park_day_near', seed, 1.0), [])
    folders = [tmp_path / name for name in ('day', 'night', 'other', 'recorded')]
    day, night, other, recorded = flight_seeds(folders)
    assert day == night != other
    assert recorded == str(tmp_path / 'recorded')
