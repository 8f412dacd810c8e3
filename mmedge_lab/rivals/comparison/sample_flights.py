"""Flights for an evaluation without a set, and how long an evaluation takes."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from mmedge_lab.simulation.flight_folder import read_description
from mmedge_lab.simulation.flight_set import PlannedFlight
from mmedge_lab.simulation.standard_sets import standard_set

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
# Of flights that do not say how long they are, s.
_UNKNOWN_S = 20.0
# Seconds of one core, from two x86-64 cores of a cloud machine: to simulate and to encode a
# second of flight, and to run and judge one case of it; with networks over the window.
_SIMULATE_S, _ENCODE_S, _AFTERWARDS_S = 2.5, 4.0, 30.0
_CASE_S, _CASE_WITH_NETWORKS_S = 0.12, 0.24


def sample_flights(count: int, seconds: float, seeds: int = 1) -> tuple[PlannedFlight, ...]:
    """Return ``count`` flights of the test set, cut to ``seconds``; at most `MOST` of them.

    :param seeds: so many flights of each scenario, other people and ways in each
    """
    known = {flight.name: flight for flight in standard_set('test')}
    return tuple(
        flight._replace(
            name=f'{flight.name}_{number + 1}' if number else flight.name,
            seed=flight.seed + _SEED_STEP * number,
            seconds=seconds,
        )
        for flight in map(known.__getitem__, _CHOSEN[:count])
        for number in range(seeds)
    )


def flight_seconds(flights: Sequence[Path]) -> float:
    """Return how long flights are together, as far as their folders say; 20 s for the others."""
    described = [read_description(flight) for flight in flights]
    return sum(_UNKNOWN_S if flight is None else flight.seconds for flight in described)


def core_seconds(
    flight_s: float, cases: int, *, simulated: bool = False, has_networks: bool = False
) -> float:
    """Return the seconds of one core that flights of together ``flight_s`` take.

    :param has_networks: whether the bundle has networks over the window
    """
    case_s = _CASE_WITH_NETWORKS_S if has_networks else _CASE_S
    return flight_s * (_ENCODE_S + cases * case_s + simulated * _SIMULATE_S)


def expected(work: float, jobs: int) -> str:
    """Say how long so many seconds of one core take, drawing and timing included.

    :param jobs: processes; 0 for one per processor
    """
    cores = len(os.sched_getaffinity(0))
    return in_words(work / min(jobs or cores, cores) + _AFTERWARDS_S)


def in_words(seconds: float) -> str:
    """Say how long that is."""
    minutes = seconds / 60.0
    return f'{minutes:.0f} minutes' if minutes >= 1.5 else 'a minute'
