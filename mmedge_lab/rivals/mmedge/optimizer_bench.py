"""How exact and how fast the optimiser that flies is, on tables and made-up configurations."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mmedge_lab.judging import EvaluationError
from mmedge_lab.judging.bench import Bench, BenchRequest, Figure, Row, Subject, Sums, listed
from mmedge_lab.rivals.mmedge.published_tables import PublishedTables, read_tables
from mmedge_ros.adaptation.configuration_space import ConfigurationSpace, ModalityOptions
from mmedge_ros.adaptation.factorised_latency import FactorisedLatency
from mmedge_ros.adaptation.optimizer import Optimizer
from mmedge_ros.adaptation.unit_time_profile import StageTime, UnitTimeProfile

FloatArray = NDArray[np.float64]

SWEEP = 400
_ROUNDS = 200
_CERTAINTY = 0.95
_SIDES = (3, 4, 5, 6, 7)
_DATA, _FOLDER = 'MMEDGE_DATA', 'mmedge_tables'
_TIMES = 'processor time of a decision'
_PARTS = {
    'unit': 'calibrate a unit, us',
    'fresh': 'quantiles and search, us',
    'search': 'search alone, us',
}
_FIGURES = {
    'accuracy': Figure('accuracy, %', 'accuracy', digits=2),
    'latency': Figure('latency, ms', 'latency', digits=1),
    'regret': Figure('largest regret', 'regret', digits=2, quantile=1.0),
    'feasible': Figure('within the limit, %', 'feasible', 'answers', 1, scale=100.0),
    'wrong': Figure('flagged wrongly', 'wrong', digits=0),
    **{name: Figure(words, name, digits=1, quantile=0.5) for name, words in _PARTS.items()},
    'exact': Figure('equal to exhaustive search, %', 'exact', 'compared', 1, scale=100.0),
}


def bench(request: BenchRequest, *, limits_ms: str = '60,80,120,140,160') -> Bench:
    """Compare answers with exhaustive search, and time them.

    Inputs are a table of percent and tables of ms, those published with the paper by default.

    :param limits_ms: latency limits by commas
    """
    accuracy, *latencies = request.inputs or published_tables()
    tables = read_tables(accuracy, latencies)
    sweep = np.linspace(0.9, 1.1, SWEEP)
    rows = []
    for path, latency in tables.latencies.items():
        ends = latency.min(), latency.max()
        wanted = {f'{ms:g} ms': [ms / 1e3] for ms in listed('limits_ms', limits_ms, 1e-3, 1e6)}
        wanted[f'{SWEEP} limits'] = np.linspace(
            sweep[0] * ends[0], sweep[-1] * ends[1], SWEEP
        ).tolist()
        rows += [
            Row(name, partial(_answers, tables, path, limits), group=path.stem)
            for name, limits in wanted.items()
        ]
    rows += [
        Row(f'{side**4} configurations', partial(_timed, side), group=_TIMES) for side in _SIDES
    ]
    return Bench(
        'The optimiser beside exhaustive search',
        tuple(rows),
        _FIGURES,
        request.repetitions(1),
        about={'configurations of the tables': tables.grid.size},
    )


def published_tables(names: Sequence[str] = ('H', 'C64', 'C50')) -> tuple[Path, ...]:
    """Return the accuracy table and the latency tables that were published with the paper.

    :raises EvaluationError: if they are not below $MMEDGE_DATA
    """
    folder = Path(os.environ.get(_DATA, '')) / _FOLDER
    if not os.environ.get(_DATA) or not folder.is_dir():
        raise EvaluationError(
            f'name an accuracy table and latency tables, or set {_DATA} to a folder with {_FOLDER}'
        )
    return (
        folder / 'accuracy_table.json',
        *(folder / f'latency_table_{name}.json' for name in names),
    )


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


def _answers(tables: PublishedTables, path: Path, limits: Sequence[float], _: Subject) -> Sums:
    """Sum up the answers to limits (s); regret is in points, or ms where nothing is feasible."""
    latency, optimizer = tables.latencies[path], Optimizer(tables.grid)
    regrets, chosen, feasibles, wrong = [], [], 0, 0
    for limit in limits:
        choice = optimizer.choose(tables.accuracy, latency, limit)
        best, feasible = exhaustive_choice(tables.accuracy.tolist(), latency.tolist(), limit)
        values = (100.0 * tables.accuracy) if feasible else (-1e3 * latency)
        regrets.append(float(values[best] - values[choice.index]))
        chosen.append(choice.index)
        feasibles += choice.feasible
        wrong += choice.feasible != feasible
    return {
        'answers': len(limits),
        'accuracy': 100.0 * float(tables.accuracy[chosen].mean()),
        'latency': 1e3 * float(latency[chosen].mean()),
        'regret': regrets,
        'feasible': feasibles,
        'wrong': wrong,
    }


def _timed(side: int, _: Subject) -> Sums:
    return decision_times(side)


def decision_times(side: int, rounds: int = _ROUNDS) -> dict[str, float | list[float]]:
    """Time decisions over side^4 configurations of two modalities, all different; us.

    ``unit``: calibration by one measured unit. ``fresh``: after it and with a new accuracy,
    quantiles and exact search. ``search``: the search alone. Answers are ``compared`` with
    exhaustive search now and then.
    """
    space, latency = made_up(side)
    random = np.random.default_rng(side)
    optimizer = Optimizer(space.grid)
    times: dict[str, list[float]] = {name: [] for name in _PARTS}
    exact = compared = 0
    for number in range(rounds):
        accuracy = random.random(len(space))
        now = 0.05 * number
        duration = float(random.uniform(0.006, 0.01))
        with _timing(times['unit']):
            latency.calibration.observe('camera', 'level 1', duration, now)
        limit = float(latency.predict(now).quantiles(_CERTAINTY)[random.integers(len(space))])
        with _timing(times['fresh']):
            quantiles = latency.predict(now).quantiles(_CERTAINTY)
            with _timing(times['search']):
                choice = optimizer.choose(accuracy, quantiles, limit)
        if number % 20 == 0:
            best = exhaustive_choice(accuracy.tolist(), quantiles.tolist(), limit)
            exact += best == (choice.index, choice.feasible)
            compared += 1
    return {**times, 'exact': exact, 'compared': compared}


@contextmanager
def _timing(times: list[float]) -> Iterator[None]:
    """Append the processor time of a block, us: the machine may be busy with something else."""
    begun = time.thread_time()
    yield
    times.append(1e6 * (time.thread_time() - begun))


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
