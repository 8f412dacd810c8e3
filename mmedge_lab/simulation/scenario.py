"""What a flight is drawn from: the name of a scenario, and random streams of a seed.

A stream depends on the flight's seed and its purpose only, so that the same seed gives the same
people in another light, and a sensor that looks more often changes nothing for the others.
"""

from __future__ import annotations

import difflib
import itertools
from enum import IntEnum
from typing import NamedTuple

import numpy as np

from mmedge_lab.simulation import SimulationError

SURROUNDINGS = ('meadow', 'park', 'street', 'yard')
LIGHTS = ('day', 'dusk', 'night', 'lamps', 'fog')


class DistanceBand(NamedTuple):
    """How far people are from the drone, and how it flies for that.

    People are ``nearest`` to ``farthest`` m away. The drone flies at ``lowest`` to ``highest``
    m with its camera ``pitch`` (least, most) degrees down.
    """

    nearest: float
    farthest: float
    lowest: float
    highest: float
    pitch: tuple[float, float]


DISTANCES = {
    'near': DistanceBand(5.0, 15.0, 2.2, 5.0, (16.0, 25.0)),
    'middle': DistanceBand(12.0, 30.0, 3.0, 8.0, (15.0, 22.0)),
    'far': DistanceBand(25.0, 50.0, 4.0, 12.0, (15.0, 19.0)),
}


class Scenario(NamedTuple):
    """One combination of the three things that vary from flight to flight."""

    surroundings: str
    light: str
    distance: str

    @property
    def name(self) -> str:
        """The name the scenario goes by, such as street_day_middle."""
        return '_'.join(self)

    @property
    def band(self) -> DistanceBand:
        """The distance in metres."""
        return DISTANCES[self.distance]


def scenarios() -> tuple[Scenario, ...]:
    """Return every scenario, in the order of their parts."""
    return tuple(Scenario(*parts) for parts in itertools.product(SURROUNDINGS, LIGHTS, DISTANCES))


def find_scenario(name: str) -> Scenario:
    """Return the scenario of a name.

    :raises SimulationError: for any other name; it names the nearest one and the choices
    """
    known = {scenario.name: scenario for scenario in scenarios()}
    if name in known:
        return known[name]
    nearest = difflib.get_close_matches(name, known, n=1, cutoff=0.0)[0]
    raise SimulationError(
        f'unknown scenario {name!r}; the nearest is {nearest!r}. A name is '
        f'<surroundings>_<light>_<distance> with surroundings of {", ".join(SURROUNDINGS)}; '
        f'light of {", ".join(LIGHTS)}; distance of {", ".join(DISTANCES)}'
    )


class SeedStream(IntEnum):
    """Purposes; the numbers are part of what a seed means and never change."""

    PATH = 1
    SURROUNDINGS = 2
    MOTION = 3
    LOOKS = 4
    LIGHT = 5
    RIG = 6
    VIBRATION = 7
    SYSTEM = 8
    ODOMETRY = 9
    HARDSHIP = 10
    TERRAIN = 11
    ESTIMATOR = 12
    LENS = 13
    POSTURE = 14


def generator(seed: int, stream: SeedStream, *more: int) -> np.random.Generator:
    """Return the generator of one purpose; ``more`` separates its parts."""
    return np.random.default_rng((seed, int(stream), *more))
