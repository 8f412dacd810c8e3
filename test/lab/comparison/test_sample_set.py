"""Flights for an evaluation without a set."""

from __future__ import annotations

from mmedge_ros.lab.comparison.sample_set import MOST, sample_flights
from mmedge_ros.lab.simulation.standard_sets import STANDARD_SETS, standard_set


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


def test_no_seed_is_that_of_a_flight_somebody_trained_or_chose_by() -> None:
    taken = {flight.seed for name in STANDARD_SETS for flight in standard_set(name)}
    more = set(sample_flights(MOST, 6.0, 20)) - set(sample_flights(MOST, 6.0))
    assert len({flight.seed for flight in more} & taken) == 0
