from __future__ import annotations

import itertools
from collections import Counter

import pytest

from mmedge_lab.simulation.scenario import find_scenario, scenarios
from mmedge_lab.simulation.standard_sets import STANDARD_SETS, standard_set


def test_no_two_sets_share_a_seed_and_no_two_flights_a_name() -> None:
    seeds = {name: {flight.seed for flight in flights} for name, flights in STANDARD_SETS.items()}
    seeds['final'] -= seeds['test']  # it holds the test set
    for one, other in itertools.combinations(seeds.values(), 2):
        assert not one & other
    for flights in STANDARD_SETS.values():
        assert len({flight.name for flight in flights}) == len(flights)


def test_the_long_flights_are_patrols_of_different_places_and_lights() -> None:
    flights = standard_set('long')
    assert all(flight.patrol for flight in flights)
    drawn = [find_scenario(flight.scenario) for flight in flights]
    assert len({s.surroundings for s in drawn}) == len({s.light for s in drawn}) == 3


def test_the_train_set_holds_every_combination() -> None:
    counts = Counter(flight.scenario for flight in standard_set('train'))
    assert set(counts) == {scenario.name for scenario in scenarios()}
    assert set(counts.values()) == {1, 2}


@pytest.mark.parametrize('name', ['validation', 'calibration'])
def test_places_are_balanced_in_the_smaller_sets(name: str) -> None:
    scenarios = [find_scenario(flight.scenario) for flight in standard_set(name)]
    places = Counter((s.surroundings, s.distance) for s in scenarios)
    assert len(set(places.values())) == 1
    assert len(places) == 12
    lights = Counter(s.light for s in scenarios)
    assert max(lights.values()) - min(lights.values()) <= 1
