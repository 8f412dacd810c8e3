from __future__ import annotations

import itertools
from collections import Counter

import pytest

from mmedge_lab.simulation import SimulationError
from mmedge_lab.simulation.scenario import find_scenario, scenarios
from mmedge_lab.simulation.standard_sets import BASELINE, STANDARD_SETS, standard_set


def test_no_two_sets_share_a_seed_and_no_two_flights_a_name() -> None:
    seeds = {name: {flight.seed for flight in flights} for name, flights in STANDARD_SETS.items()}
    seeds['final'] -= seeds['test']  # it holds the test set
    for one, other in itertools.combinations(seeds.values(), 2):
        assert not one & other
    for flights in STANDARD_SETS.values():
        assert len({flight.name for flight in flights}) == len(flights)


def test_every_flight_has_a_known_scenario_and_says_it_in_its_name() -> None:
    for flights in STANDARD_SETS.values():
        for flight in flights:
            assert find_scenario(flight.scenario).name in flight.name
            assert str(flight.seed) in flight.name


def test_the_sets_are_as_large_as_planned() -> None:
    sizes = {name: (len(f), {x.seconds for x in f}) for name, f in STANDARD_SETS.items()}
    assert sizes == {
        'train': (90, {8.0}),
        'validation': (12, {8.0}),
        'calibration': (24, {10.0}),
        'test': (34, {10.0}),
        'final': (58, {10.0}),
        'long': (3, {600.0}),
    }


def test_the_final_set_is_the_test_set_and_flights_of_24_further_seeds() -> None:
    test, final = standard_set('test'), standard_set('final')
    assert final[: len(test)] == test
    assert len({flight.seed for flight in final}) == 7 + 24


def test_the_long_flights_are_patrols_of_different_places_and_lights() -> None:
    flights = standard_set('long')
    assert all(flight.patrol for flight in flights)
    drawn = [find_scenario(flight.scenario) for flight in flights]
    assert len({s.surroundings for s in drawn}) == len({s.light for s in drawn}) == 3


def test_no_flight_of_another_set_is_a_patrol() -> None:
    others = (flights for name, flights in STANDARD_SETS.items() if name != 'long')
    assert not any(flight.patrol for flights in others for flight in flights)


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


def test_the_test_set_varies_one_thing_at_a_time_with_the_same_seeds() -> None:
    seeds: dict[str, set[int]] = {}
    for flight in standard_set('test'):
        seeds.setdefault(flight.scenario, set()).add(flight.seed)
    baseline = seeds[BASELINE.name]
    assert len(baseline) == 3
    changed = Counter()
    mixed = 0
    for name, used in seeds.items():
        parts = zip(find_scenario(name), BASELINE, BASELINE._fields, strict=True)
        different = [field for mine, theirs, field in parts if mine != theirs]
        if len(different) == 1:
            assert used == baseline
            changed[different[0]] += 1
        elif different:
            assert not used & baseline
            mixed += 1
    assert changed == {'distance': 2, 'surroundings': 3, 'light': 4}
    assert mixed == 4


def test_an_unknown_set_is_told_the_nearest() -> None:
    with pytest.raises(SimulationError, match=r"'trian'.*'train'"):
        standard_set('trian')
