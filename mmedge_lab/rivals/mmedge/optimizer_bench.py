"""How exact and how fast the optimiser that flies is, on tables and made-up configurations."""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from mmedge_lab.judging import EvaluationError
from mmedge_lab.judging.bench import Bench, BenchRequest, Figure, Row, Subject, Sums
from mmedge_ros.adaptation.configuration_space import (
    Axis,
    ConfigurationGrid,
    ConfigurationSpace,
    ModalityOptions,
)
from mmedge_ros.adaptation.factorised_latency import FactorisedLatency
from mmedge_ros.adaptation.optimizer import Optimizer
from mmedge_ros.adaptation.unit_time_profile import StageTime, UnitTimeProfile

FloatArray = NDArray[np.float64]
# The names chosen at each depth of a table.
_Place: TypeAlias = tuple[str, ...]

# Latency limits, s, and how many more over the whole range of a table.
LIMITS, SWEEP = (0.06, 0.08, 0.12, 0.14, 0.16), 400
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


class PublishedTables(NamedTuple):
    """Tables of one task: (size,) mean accuracy in 0..1, and latencies in s by file."""

    grid: ConfigurationGrid
    accuracy: FloatArray
    latencies: Mapping[Path, FloatArray]


def bench(request: BenchRequest) -> Bench:
    """Compare answers with exhaustive search, and time them.

    Inputs are a table of percent and tables of ms, those published with the paper by default.
    """
    accuracy, *latencies = request.inputs or published_tables()
    tables = read_tables(accuracy, latencies)
    sweep = np.linspace(0.9, 1.1, SWEEP)
    rows = []
    for path, latency in tables.latencies.items():
        ends = latency.min(), latency.max()
        wanted = {f'{1e3 * limit:g} ms': [limit] for limit in LIMITS}
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


def published_tables() -> tuple[Path, ...]:
    """Return the accuracy table and the latency tables that were published with the paper.

    :raises EvaluationError: if they are not below $MMEDGE_DATA
    """
    folder = Path(os.environ.get(_DATA, '')) / _FOLDER
    if not os.environ.get(_DATA) or not folder.is_dir():
        raise EvaluationError(
            f'name an accuracy table and latency tables, or set {_DATA} to a folder with {_FOLDER}'
        )
    names = (f'latency_table_{name}' for name in ('H', 'C64', 'C50'))
    return tuple(folder / f'{name}.json' for name in ('accuracy_table', *names))


def read_tables(accuracy: Path, latencies: Sequence[Path]) -> PublishedTables:
    """Read an accuracy table and the latency tables that belong to it.

    They are JSON objects nested by what is chosen, such as video model, rate, audio model and
    chunk. A latency table ends in milliseconds, an accuracy table in an object, class -> percent.
    Axes and their order are those of the first latency table.

    :raises EvaluationError: if they cannot be read, or do not hold the same configurations
    """
    try:
        read = {path: _cells(json.loads(path.read_bytes())) for path in latencies}
        places = list(next(iter(read.values())))
        values = [tuple(dict.fromkeys(keys)) for keys in zip(*places, strict=True)]
        axes = [Axis(f'choice {number}', keys) for number, keys in enumerate(values, 1)]
        percents: dict[_Place, list[float]] = {}
        for (*place, _), percent in _cells(json.loads(accuracy.read_bytes())).items():
            percents.setdefault(tuple(place), []).append(percent)
        order = list(product(*values))
        return PublishedTables(
            ConfigurationGrid(axes),
            np.array([math.fsum(percents[p]) / len(percents[p]) for p in order]) / 100.0,
            {path: np.array([of[p] for p in order]) / 1e3 for path, of in read.items()},
        )
    except (OSError, ValueError, KeyError, TypeError, StopIteration) as err:
        raise EvaluationError(
            f'{accuracy} and its latency tables cannot be read together ({err!r}); give tables '
            'in the format published with the MMEdge paper'
        ) from err


def _cells(node: Any, place: _Place = ()) -> dict[_Place, float]:
    """Return the number of every place of nested objects."""
    if not isinstance(node, dict):
        return {place: float(node)}
    return {at: n for key, below in node.items() for at, n in _cells(below, (*place, key)).items()}


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
