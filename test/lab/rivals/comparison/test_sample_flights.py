"""Flights for an evaluation without a set, and how long it takes."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from mmedge_lab.rivals.comparison.sample_flights import (
    MOST,
    core_seconds,
    expected,
    flight_seconds,
    in_words,
    sample_flights,
)
from mmedge_lab.simulation.standard_sets import STANDARD_SETS, standard_set


def test_more_flights_and_cases_take_longer_and_simulating_too() -> None:
    little = core_seconds(10.0, 5)
    assert core_seconds(20.0, 5) == pytest.approx(2 * little)
    assert little < core_seconds(10.0, 6) < core_seconds(10.0, 60)
    assert little < core_seconds(10.0, 5, simulated=True)
    assert little < core_seconds(10.0, 5, has_networks=True)


def test_processes_share_the_work_as_far_as_there_are_processors(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(os, 'sched_getaffinity', lambda _: {0, 1}, raising=False)
    alone, together = (int(expected(7200.0, jobs).split()[0]) for jobs in (1, 2))
    assert together == pytest.approx(alone / 2, abs=1)
    assert expected(7200.0, 0) == expected(7200.0, 2) == expected(7200.0, 50)


@pytest.mark.parametrize(
    ('seconds', 'words'), [(5.0, 'a minute'), (100.0, '2 minutes'), (3600.0, '60 minutes')]
)
def test_minutes_are_whole(seconds: float, words: str) -> None:
    assert in_words(seconds) == words


def test_flights_that_do_not_say_how_long_they_are_count_as_long_ones(tmp_path: Path) -> None:
    assert flight_seconds([tmp_path, tmp_path]) == 40.0


def test_they_are_those_of_the_test_set_cut_short() -> None:
    known = {flight.name: flight for flight in standard_set('test')}
    for flight in sample_flights(MOST, 3.0):
        assert flight == known[flight.name]._replace(seconds=3.0)


def test_more_seeds_are_other_flights_of_the_same_scenarios() -> None:
    once, thrice = sample_flights(2, 6.0), sample_flights(2, 6.0, 3)
    assert [flight.scenario for flight in thrice] == [
        flight.scenario for flight in once for _ in range(3)
    ]
    assert set(once) <= set(thrice)
    assert len({flight.name for flight in thrice}) == len({f.seed for f in thrice}) == 6


def test_no_seed_is_that_of_a_flight_training_or_choices_used() -> None:
    taken = {flight.seed for name in STANDARD_SETS for flight in standard_set(name)}
    more = set(sample_flights(MOST, 6.0, 20)) - set(sample_flights(MOST, 6.0))
    assert len({flight.seed for flight in more} & taken) == 0
