"""Flights for an evaluation without a set: the standard test set's own, fewer and shorter."""

from __future__ import annotations

from collections.abc import Sequence

from mmedge_ros.lab.simulation.flight_set import PlannedFlight
from mmedge_ros.lab.simulation.standard_sets import standard_set

# Of each thing that varies one, then the hard mixtures.
_CHOSEN = (
    'street_day_middle_4006',
    'street_night_middle_4007',
    'street_day_far_4010',
    'park_day_middle_4007',
    'street_day_near_4006',
    'street_fog_middle_4010',
    'yard_day_middle_4006',
    'park_night_far_4100',
    'street_dusk_middle_4010',
    'street_lamps_middle_4007',
    'meadow_day_middle_4010',
    'meadow_lamps_near_4102',
)
MOST = len(_CHOSEN)


# Between seeds of a scenario: beyond those of every standard set.
_SEED_STEP = 10_000


def sample_flights(count: int, seconds: float, seeds: int = 1) -> tuple[PlannedFlight, ...]:
    """Return ``count`` flights of the test set, cut to ``seconds``; at most `MOST` of them.

    :param seeds: so many flights of each scenario, other people and ways in each
    """
    known = {flight.name: flight for flight in standard_set('test')}
    chosen: Sequence[PlannedFlight] = [known[name] for name in _CHOSEN[:count]]
    return tuple(
        flight._replace(
            name=f'{flight.name}_{number + 1}' if number else flight.name,
            seed=flight.seed + _SEED_STEP * number,
            seconds=seconds,
        )
        for flight in chosen
        for number in range(seeds)
    )
