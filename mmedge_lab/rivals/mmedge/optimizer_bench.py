"""How exact and how fast the optimiser that flies is, on tables and made-up configurations."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mmedge_lab.judging.stopwatch import Stopwatch
from mmedge_lab.rivals.mmedge.published_tables import PublishedTables
from mmedge_ros.configuration.configuration_space import ConfigurationSpace, ModalityOptions
from mmedge_ros.configuration.factorised_latency import FactorisedLatency
from mmedge_ros.configuration.optimizer import Optimizer
from mmedge_ros.configuration.unit_time_profile import StageTime, UnitTimeProfile

FloatArray = NDArray[np.float64]

SWEEP = 400
_ROUNDS = 200
_CERTAINTY = 0.95
_SIDES = (3, 4, 5, 6, 7)


def exhaustive_choice(
    accuracy: Sequence[float], latency: Sequence[float], limit: float
) -> tuple[int, bool]:
    """Return the best configuration and whether it keeps the limit, looking at each in turn.

    Most accurate within the limit, then fastest; without any, the fastest, then most accurate.
    """
    best, feasible = 0, latency[0] <= limit
    for index in range(1, len(accuracy)):
        fits = latency[index] <= limit
        if fits != feasible:
            better = fits
        elif fits:
            better = (-accuracy[index], latency[index]) < (-accuracy[best], latency[best])
        else:
            better = (latency[index], -accuracy[index]) < (latency[best], -accuracy[best])
        if better:
            best, feasible = index, fits
    return best, feasible


def run_optimizer(tables: PublishedTables, limits: Sequence[float]) -> dict[str, Any]:
    """Compare the optimiser with exhaustive search on every table.

    :param limits: s, reported one by one; a sweep of 400 is added
    """
    return {
        'configurations': tables.grid.size,
        'tables': [
            _table(tables, path, latency, limits) for path, latency in tables.latencies.items()
        ],
        'decision_us': {str(side**4): decision_times(side) for side in _SIDES},
    }


def _table(
    tables: PublishedTables, path: Path, latency: FloatArray, limits: Sequence[float]
) -> dict[str, Any]:
    sweep = np.linspace(0.9 * latency.min(), 1.1 * latency.max(), SWEEP)
    answers = [_answer(tables, latency, float(limit)) for limit in sweep]
    return {
        'latency': str(path),
        'limits': [_answer(tables, latency, limit) for limit in limits],
        'sweep': {
            'values': SWEEP,
            'from_ms': round(1e3 * float(sweep[0]), 3),
            'to_ms': round(1e3 * float(sweep[-1]), 3),
            'largest_regret': max(answer['regret'] for answer in answers),
            'infeasible': sum(not answer['feasible'] for answer in answers),
            'wrongly_flagged': sum(not answer['flag_right'] for answer in answers),
        },
    }


def _answer(tables: PublishedTables, latency: FloatArray, limit: float) -> dict[str, Any]:
    choice = Optimizer(tables.grid).choose(tables.accuracy, latency, limit)
    best, feasible = exhaustive_choice(tables.accuracy.tolist(), latency.tolist(), limit)
    if feasible:
        regret = 100.0 * float(tables.accuracy[best] - tables.accuracy[choice.index])
    else:
        regret = 1e3 * float(latency[choice.index] - latency[best])
    return {
        'limit_ms': round(1e3 * limit, 3),
        'configuration': list(tables.grid.labels(choice.index)),
        'accuracy': round(100.0 * float(tables.accuracy[choice.index]), 3),
        'latency_ms': round(1e3 * float(latency[choice.index]), 3),
        'feasible': choice.feasible,
        'flag_right': choice.feasible == feasible,
        'regret': round(regret, 6),
        'violation_ms': round(1e3 * choice.violation, 3),
    }


def decision_times(side: int, rounds: int = _ROUNDS) -> dict[str, Any]:
    """Time decisions over side^4 configurations of two modalities, all different.

    ``unit``: calibration by one measured unit. ``fresh``: after it and with a new accuracy,
    quantiles and exact search. ``search``: the search alone. Answers are compared with
    exhaustive search now and then.
    """
    space, latency = made_up(side)
    random = np.random.default_rng(side)
    optimizer = Optimizer(space.grid)
    watches = {name: Stopwatch() for name in ('unit', 'fresh', 'search')}
    equal = True
    for number in range(rounds):
        accuracy = random.random(len(space))
        now = 0.05 * number
        duration = float(random.uniform(0.006, 0.01))
        watches['unit'].start()
        latency.calibration.observe('camera', 'level 1', duration, now)
        watches['unit'].stop()
        limit = float(latency.predict(now).quantiles(_CERTAINTY)[random.integers(len(space))])
        watches['fresh'].start()
        quantiles = latency.predict(now).quantiles(_CERTAINTY)
        watches['search'].start()
        choice = optimizer.choose(accuracy, quantiles, limit)
        watches['search'].stop()
        watches['fresh'].stop()
        if number % 20 == 0:
            best = exhaustive_choice(accuracy.tolist(), quantiles.tolist(), limit)
            equal &= best == (choice.index, choice.feasible)
    times = {name: watch.microseconds() for name, watch in watches.items()}
    return {'equal_to_exhaustive': equal, **times}


def made_up(side: int) -> tuple[ConfigurationSpace, FactorisedLatency]:
    """Return a space of two modalities with ``side`` rates and levels each, and its latency."""
    levels = tuple(f'level {number}' for number in range(1, side + 1))
    rates = tuple(round(5.0 + 25.0 * number / side, 3) for number in range(1, side + 1))
    options = [ModalityOptions(modality, rates, levels) for modality in ('camera', 'radar')]
    space = ConfigurationSpace(options)
    units = {
        (modality, level): StageTime(cost * (number + 1), 0.15)
        for modality, cost in (('camera', 0.008), ('radar', 0.005))
        for number, level in enumerate(levels)
    }
    profile = UnitTimeProfile(units, StageTime(0.001, 0.3), StageTime(0.0005, 0.2))
    return space, FactorisedLatency(space, profile)
