from __future__ import annotations

import pytest

from mmedge_lab.simulation import SimulationError
from mmedge_lab.simulation.scenario import (
    DISTANCES,
    LIGHTS,
    SURROUNDINGS,
    find_scenario,
    scenarios,
)


def test_every_combination_has_a_name_that_finds_it() -> None:
    names = [scenario.name for scenario in scenarios()]
    assert len(set(names)) == len(SURROUNDINGS) * len(LIGHTS) * len(DISTANCES) == len(names)
    for name in names:
        scenario = find_scenario(name)
        assert scenario.name == name
        assert scenario.band == DISTANCES[scenario.distance]


def test_an_unknown_scenario_is_told_the_nearest_and_the_choices() -> None:
    with pytest.raises(SimulationError) as caught:
        find_scenario('street_day_midle')
    told = str(caught.value)
    assert "'street_day_midle'" in told
    assert "'street_day_middle'" in told
    for choice in (*SURROUNDINGS, *LIGHTS, *DISTANCES):
        assert choice in told
