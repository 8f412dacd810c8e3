"""The sets of flights that everything is trained, tuned and judged on, by scenario and seed.

Nothing is simulated here. How big, bright, hidden and distant people are in each set is
written down in docs/evaluation.md.
"""

from __future__ import annotations

import difflib
import itertools

from mmedge_lab.simulation import SimulationError
from mmedge_lab.simulation.flight_set import PlannedFlight
from mmedge_lab.simulation.hardships import CONDITIONS
from mmedge_lab.simulation.scenario import (
    DISTANCES,
    LIGHTS,
    SURROUNDINGS,
    Scenario,
    find_scenario,
    scenarios,
)

# The test set varies one thing at a time from here.
BASELINE = Scenario('street', 'day', 'middle')

# First seeds of the sets, so far apart that no two sets share one.
_TRAIN, _VALIDATION, _CALIBRATION, _TEST_HARD = 1000, 2300, 3000, 4100
_FINAL, _SCENES, _HARD_SCENES = 4200, 100_000, 200_000
# So many scenes are in the set that detectors learn from, 40 of each scenario.
SCENES = 2400
# A hover with a cyclist and a dog, a take-off at which the radar stutters, and cars passing.
_TEST_SEEDS = (4006, 4007, 4010)
_HARD = (
    Scenario('park', 'night', 'far'),
    Scenario('yard', 'fog', 'far'),
    Scenario('meadow', 'lamps', 'near'),
    Scenario('park', 'dusk', 'far'),
)


# Patrols of ten minutes, each begun with a battery that lasts so long.
_LONG = (
    (Scenario('park', 'day', 'middle'), 5010),
    (Scenario('street', 'dusk', 'middle'), 5008),
    (Scenario('yard', 'lamps', 'near'), 5006),
)


def _flight(scenario: Scenario, seed: int, seconds: float) -> PlannedFlight:
    return PlannedFlight(f'{scenario.name}_{seed}', scenario.name, seed, seconds)


def _numbered(
    chosen: list[Scenario], first_seed: int, seconds: float
) -> tuple[PlannedFlight, ...]:
    return tuple(_flight(s, first_seed + i, seconds) for i, s in enumerate(chosen))


def _train() -> tuple[PlannedFlight, ...]:
    """Every combination once, and every second one again."""
    grid = [
        (i + j + k, Scenario(surroundings, light, distance))
        for i, surroundings in enumerate(SURROUNDINGS)
        for j, light in enumerate(LIGHTS)
        for k, distance in enumerate(DISTANCES)
    ]
    again = [scenario for number, scenario in grid if number % 2 == 0]
    return _numbered([scenario for _, scenario in grid] + again, _TRAIN, 8.0)


def _spread(count: int, first_seed: int, seconds: float) -> tuple[PlannedFlight, ...]:
    """Each of the surroundings and distances equally often, the lights in turn."""
    places = itertools.cycle(itertools.product(SURROUNDINGS, DISTANCES))
    chosen = [
        Scenario(surroundings, LIGHTS[i % len(LIGHTS)], distance)
        for i, (surroundings, distance) in enumerate(itertools.islice(places, count))
    ]
    return _numbered(chosen, first_seed, seconds)


def _test() -> tuple[PlannedFlight, ...]:
    """The baseline, each thing varied alone with the same seeds, and a few hard mixtures.

    The same seed in another light is the same flight past the same people.
    """
    varied = [BASELINE]
    varied += [BASELINE._replace(distance=d) for d in DISTANCES if d != BASELINE.distance]
    varied += [BASELINE._replace(surroundings=s) for s in SURROUNDINGS]
    varied += [BASELINE._replace(light=light) for light in LIGHTS]
    different = dict.fromkeys(varied)
    paired = [_flight(scenario, seed, 10.0) for scenario in different for seed in _TEST_SEEDS]
    return (*paired, *_numbered(list(_HARD), _TEST_HARD, 10.0))


def _final() -> tuple[PlannedFlight, ...]:
    """The test set, and flights of 24 more seeds, so that intervals can be drawn by seed."""
    return (*_test(), *_spread(24, _FINAL, 10.0))


def _long() -> tuple[PlannedFlight, ...]:
    """Patrols, on which people, dogs, cyclists and cars leave and come back."""
    return tuple(_flight(*drawn, 600.0)._replace(patrol=True) for drawn in _LONG)


# First seeds of the parts of the hard sets. The final parts are simulated when an issue is closed,
# one for what concerns the sensors, one for what decides on tracks and configurations.
HARD_PARTS = {'calibration': 6000, 'test': 6100, 'final_sensors': 6200, 'final_heart': 6300}
HARD_SEEDS, HARD_SECONDS = 24, 8.0
PATROLS, PATROL_SECONDS, _PATROL_SEEDS = 12, 120.0, 1000  # after those of the hard flights
HARD_CONDITIONS = tuple(name for name in CONDITIONS if name != 'mixed')
_HARD_DISTANCES = ('near', 'middle', 'near', 'middle', 'near', 'far')
_HARD_LIGHTS = ('day', 'dusk', 'day', 'lamps', 'day', 'night')
_LIGHT_OF = {'fog': 'fog', 'dark': 'night'}
_RELIEF = ('meadow', 'park')  # no buildings stand on slopes


def _hard_scenario(number: int, condition: str) -> Scenario:
    surroundings = _RELIEF if condition == 'slope' else SURROUNDINGS
    turn = number // len(_HARD_DISTANCES)
    return Scenario(
        surroundings[number % len(surroundings)],
        _LIGHT_OF.get(condition, _HARD_LIGHTS[(number + turn) % len(_HARD_LIGHTS)]),
        _HARD_DISTANCES[(number + turn) % len(_HARD_DISTANCES)],
    )


def _hard_flight(
    number: int, seed: int, condition: str, seconds: float, patrol: bool
) -> PlannedFlight:
    scenario = _hard_scenario(number, condition)
    name = f'{condition}_{scenario.name}_{seed}'
    return PlannedFlight(name, scenario.name, seed, seconds, patrol, condition)


def _hard(first_seed: int) -> tuple[PlannedFlight, ...]:
    """Every condition with the same seeds."""
    return tuple(
        _hard_flight(number, first_seed + number, condition, HARD_SECONDS, patrol=False)
        for condition in HARD_CONDITIONS
        for number in range(HARD_SEEDS)
    )


def _patrols(first_seed: int) -> tuple[PlannedFlight, ...]:
    return tuple(
        _hard_flight(number, first_seed + number, 'mixed', PATROL_SECONDS, patrol=True)
        for number in range(PATROLS)
    )


STANDARD_SETS: dict[str, tuple[PlannedFlight, ...]] = {
    'train': _train(),
    'validation': _spread(12, _VALIDATION, 8.0),
    'calibration': _spread(24, _CALIBRATION, 10.0),
    'test': _test(),
    'final': _final(),
    'long': _long(),
    **{f'hard_{part}': _hard(seed) for part, seed in HARD_PARTS.items()},
    **{f'patrol_{part}': _patrols(seed + _PATROL_SEEDS) for part, seed in HARD_PARTS.items()},
}


def scene_set(count: int = SCENES) -> tuple[PlannedFlight, ...]:
    """Return the first scenes that detectors learn from, of which only pictures are taken.

    The scenarios take turns, so that each is there equally often in every 60 of them.
    """
    known = scenarios()
    # 37 and 60 share no divisor: neighbours differ in everything.
    turns = (known[37 * number % len(known)] for number in range(count))
    return _numbered(list(turns), _SCENES, 8.0)


# What a camera shows otherwise than in an easy world.
_SEEN_CONDITIONS = ('slope', 'still', 'fog', 'lens', 'dark')


def hard_scene_set(count: int = SCENES) -> tuple[PlannedFlight, ...]:
    """Return the first scenes of the same kind in which cameras fail and people do not walk."""
    made = []
    for number, scene in enumerate(scene_set(count)):
        condition = _SEEN_CONDITIONS[number % len(_SEEN_CONDITIONS)]
        scenario = find_scenario(scene.scenario)
        if condition == 'slope':
            scenario = scenario._replace(surroundings=_RELIEF[number % len(_RELIEF)])
        scenario = scenario._replace(light=_LIGHT_OF.get(condition, scenario.light))
        flight = _flight(scenario, _HARD_SCENES + number, scene.seconds)
        made.append(flight._replace(condition=condition))
    return tuple(made)


def standard_set(name: str) -> tuple[PlannedFlight, ...]:
    """Return the flights of a set.

    :raises SimulationError: for an unknown set; it names the nearest one
    """
    if name not in STANDARD_SETS:
        nearest = difflib.get_close_matches(name, STANDARD_SETS, n=1, cutoff=0.0)[0]
        raise SimulationError(
            f'unknown standard set {name!r}; the nearest is {nearest!r} of '
            f'{", ".join(STANDARD_SETS)}'
        )
    return STANDARD_SETS[name]
