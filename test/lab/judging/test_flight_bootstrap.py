"""Intervals over flights, of figures whose spread is known."""

import math
from collections.abc import Hashable, Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mmedge_lab.judging.bench import flight_subject
from mmedge_lab.judging.flight_bootstrap import Drawings, Estimate, interval
from mmedge_lab.simulation.flight_bag import write_flight
from mmedge_lab.simulation.flight_folder import FlightDescription


def mean(values: Sequence[float], seeds: Sequence[Hashable]) -> Estimate:
    drawings = Drawings.of(seeds)
    drawn = drawings.weights @ np.array(values) / drawings.weights.sum(axis=1)
    return Estimate(float(np.mean(values)), *interval(drawn, drawings.count([True] * len(values))))


def test_the_interval_is_about_that_of_the_mean_of_flights() -> None:
    values = np.random.default_rng(3).normal(0.5, 0.1, 40)
    estimate = mean(values, range(40))
    half = 1.96 * values.std() / math.sqrt(40)
    assert estimate.high - estimate.low == pytest.approx(2 * half, rel=0.1)


@settings(max_examples=30)
@given(st.lists(st.floats(0.0, 1.0), min_size=2, max_size=8))
def test_an_interval_lies_within_what_flights_showed(values: list[float]) -> None:
    estimate = mean(values, range(len(values)))
    assert min(values) - 1e-9 <= estimate.low <= estimate.high <= max(values) + 1e-9


def test_a_flight_counts_as_its_seed_and_any_other_recording_as_itself(tmp_path: Path) -> None:
    for name, seed in (('day', 7), ('night', 7), ('other', 8)):
        write_flight(tmp_path / name, FlightDescription('park_day_near', seed, 1.0), [])
    folders = [tmp_path / name for name in ('day', 'night', 'other', 'recorded')]
    day, night, other, recorded = (flight_subject(folder).seed for folder in folders)
    assert day == night != other
    assert recorded == str(tmp_path / 'recorded')
