"""How the configuration loop that flies fares where latencies of whole tables become true.

Phases follow each other without notice. The loop starts with the unit times behind the first
table. From then on it measures what a drone would: the latency of each decision, the units of the
configuration that runs, and the work after them. A table that is never corrected is its rival.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mmedge_lab.judging import EvaluationError
from mmedge_lab.judging.bench import Bench, BenchRequest, Figure, Row, Sums
from mmedge_lab.rivals.mmedge.optimizer_bench import published_tables
from mmedge_lab.rivals.mmedge.published_tables import PublishedTables, read_tables
from mmedge_lab.rivals.mmedge.table_factors import TableFactors, table_factors, table_space
from mmedge_ros.adaptation.accuracy_predictor import AccuracyTable
from mmedge_ros.adaptation.configuration_loop import (
    ConfigurationLoop,
    ConfigurationLoopParameters,
)
from mmedge_ros.adaptation.optimizer import OptimizerParameters
from mmedge_ros.adaptation.unit_time_profile import StageTime, UnitTimeProfile
from mmedge_ros.core.data_types import NS_PER_S, StageTiming

FloatArray = NDArray[np.float64]

# Time between decisions, s.
STRIDE = 0.1
_OUTLIER = (3.0, 10.0)
_SMALLEST_FACTOR = 0.2
# What a table has no share for: transport, and how much it scatters.
_TRANSPORT = StageTime(1e-4, 0.1)
_LEAST_SCATTER = 0.02
# The tables that become true in turn.
_PHASES = ('H', 'C64', 'C50', 'H')
LOOP, STATIC = 'the configuration loop that flies', 'a static table'
_FIGURES = {
    'late': Figure('late, %', 'late', 'decisions', 1, scale=100.0),
    'outliers': Figure('outliers', 'outliers', digits=1),
    'changes': Figure('changes', 'changes', digits=1),
    'at_end': Figure('accuracy at the end, %', 'at_end', digits=2),
    'best': Figure('best, %', 'best', digits=2),
    'regret_at_end': Figure('regret at the end, points', 'regret_at_end', digits=2),
    'regret': Figure('mean regret, points', 'regret', 'decisions', 2),
}


@dataclass(frozen=True)
class ContentionSettings:
    """``limit`` in s, ``decisions`` per phase.

    Latencies and unit times scatter by the factor 1 + ``noise`` x N(0, 1); a share ``outliers``
    of the decisions takes 3 to 10 times as long, which is not counted as late.
    """

    limit: float
    decisions: int
    noise: float = 0.0
    outliers: float = 0.0
    seed: int = 0


class Measured(NamedTuple):
    """One decision: the configuration, its latency (s), and what kind of decision it was."""

    number: int
    latency: float
    late: bool
    outlier: bool


class AdaptiveDrone:
    """The configuration loop as it flies, on the space of a table.

    :param factors: of every table; those of ``first`` are the device profile
    """

    def __init__(
        self,
        tables: PublishedTables,
        factors: Mapping[Path, TableFactors],
        first: Path,
        settings: ContentionSettings,
    ) -> None:
        self._space, self._index = table_space(tables.grid)
        self._table_index = np.argsort(self._index)
        self._factors = factors
        known = factors[first]
        scatter = max(known.error, _LEAST_SCATTER)
        profile = UnitTimeProfile(
            {name: StageTime(seconds, scatter) for name, seconds in known.units.items()},
            _TRANSPORT,
            StageTime(float(np.median(known.rest)), scatter),
        )
        self._loop = ConfigurationLoop(
            self._space,
            profile,
            AccuracyTable(tables.accuracy[self._table_index], is_measured=True),
            # Accuracies of the tables are those of samples: later ones lose nothing.
            ConfigurationLoopParameters(
                latency_limit=settings.limit,
                optimizer=OptimizerParameters(latency_price=0.0),
            ),
        )
        self._random = np.random.default_rng((settings.seed, 1))
        self._noise = settings.noise
        self._decided, self._current = 0, 0

    @property
    def _now(self) -> float:
        return (self._decided + 1) * STRIDE

    def choose(self) -> int:
        """Return the configuration to run."""
        made = self._loop.update(round(self._now * NS_PER_S), self._now)
        if made is not None:
            self._current = int(self._table_index[self._space.index_of(made.modalities) or 0])
        return self._current

    def measured(self, index: int, latency: float, path: Path) -> None:
        """Give the loop what happened since the last decision, units first."""
        self._decided += 1
        place, true = int(self._index[index]), self._factors[path]
        for part in self._space.parts(place):
            seconds = true.units[part.modality, part.level]
            for _ in range(max(round(part.rate * STRIDE), 1)):
                encode = seconds * noisy(self._random, self._noise)
                self._loop.unit_encoded(part.modality, part.level, encode, self._now)
        rest = float(true.rest[place]) * noisy(self._random, self._noise)
        trail = (StageTiming('fusion', 0, round(rest * NS_PER_S)),)
        self._loop.decided(latency, trail, self._now)


def noisy(random: np.random.Generator, noise: float) -> float:
    """Draw a factor by which a duration is off."""
    return float(max(1.0 + noise * random.standard_normal(), _SMALLEST_FACTOR))


def best_choice(accuracy: FloatArray, latency: FloatArray, limit: float) -> int:
    """Return the most accurate configuration within the limit, or else the fastest."""
    if not (latency <= limit).any():
        return int(latency.argmin())
    best = np.where(latency <= limit, accuracy, -math.inf)
    ties = np.flatnonzero(best == best.max())
    return int(ties[latency[ties].argmin()])


def bench(
    request: BenchRequest,
    *,
    limit_ms: float = 120.0,
    decisions: int = 60,
    noise: float = 0.0,
    outliers: float = 0.0,
    seeds: int = 1,
) -> Bench:
    """Fly through changing latencies, knowing the first table and what was measured.

    Inputs are a table of percent and the tables of ms that become true in turn; those published
    with the paper, H, C64, C50 and H again, by default.

    :param limit_ms: latency limit
    :param decisions: in each phase
    :param noise: scatter of latencies, 0.15 = 15 %
    :param outliers: share of far too long ones
    :param seeds: flights, each with other noise and outliers
    """
    if (
        decisions < 1
        or not limit_ms > 0.0
        or not 0.0 <= noise <= 1.0
        or not 0.0 <= outliers <= 1.0
    ):
        raise EvaluationError('a limit above 0, at least one decision, and shares of 0 to 1')
    accuracy, *phases = request.inputs or published_tables(_PHASES)
    tables = read_tables(accuracy, phases)
    settings = ContentionSettings(limit_ms / 1e3, decisions, noise, outliers)
    space = table_space(tables.grid)
    factors = {path: table_factors(tables.latencies[path], space) for path in set(phases)}
    explained = ', '.join(f'{factors[path].r2:.2f}' for path in phases)
    rows = [
        Row(name, partial(_phase, name, number), group=f'{number + 1}: {path.stem}')
        for number, path in enumerate(phases)
        for name in (LOOP, STATIC)
    ]
    return Bench(
        'Latencies that change without notice, in tables',
        tuple(rows),
        _FIGURES,
        request.repetitions(seeds),
        lambda subject, _rows, _share: contended(
            tables, phases, factors, replace(settings, seed=int(subject.seed))
        ),
        about={
            'limit': f'{limit_ms:g} ms',
            'decisions of a phase': decisions,
            'noise': noise,
            'outliers': outliers,
            'numbers that explain a table': f'{factors[phases[0]].numbers} of {tables.grid.size}',
            'R2 by phase': explained,
        },
    )


def _phase(name: str, number: int, flown: Mapping[str, Sequence[Sums]]) -> Sums:
    return flown[name][number]


def contended(
    tables: PublishedTables,
    phases: Sequence[Path],
    factors: Mapping[Path, TableFactors],
    settings: ContentionSettings,
) -> dict[str, list[Sums]]:
    """Fly through the phases; return the sums of each, of the loop and of a static table."""
    drone = AdaptiveDrone(tables, factors, phases[0], settings)
    best = best_choice(tables.accuracy, tables.latencies[phases[0]], settings.limit)
    return {
        name: [
            phase_sums(tables, path, decisions, settings.limit)
            for path, decisions in zip(phases, _fly(flies, tables, phases, settings), strict=True)
        ]
        for name, flies in ((LOOP, drone), (STATIC, best))
    }


def _fly(
    drone: AdaptiveDrone | int,
    tables: PublishedTables,
    phases: Sequence[Path],
    settings: ContentionSettings,
) -> list[list[Measured]]:
    """Return the decisions of each phase, of a drone or of one configuration in the same noise."""
    random = np.random.default_rng(settings.seed)
    flown = []
    for path in phases:
        real = tables.latencies[path]
        decisions = []
        for _ in range(settings.decisions):
            factor = noisy(random, settings.noise)
            outlier = bool(random.random() < settings.outliers)
            factor *= float(random.uniform(*_OUTLIER)) if outlier else 1.0
            index = drone if isinstance(drone, int) else drone.choose()
            latency = float(real[index]) * factor
            if isinstance(drone, AdaptiveDrone):
                drone.measured(index, latency, path)
            late = latency > settings.limit and not outlier
            decisions.append(Measured(index, latency, late, outlier))
        flown.append(decisions)
    return flown


def phase_sums(
    tables: PublishedTables, path: Path, decisions: Sequence[Measured], limit: float
) -> Sums:
    """Return the sums of a phase; what is impossible in it has no regret."""
    real = tables.latencies[path]
    best = best_choice(tables.accuracy, real, limit)
    chosen = np.array([decision.number for decision in decisions])
    sums: dict[str, float] = {
        'decisions': len(decisions),
        'late': sum(decision.late for decision in decisions),
        'outliers': sum(decision.outlier for decision in decisions),
        'changes': int((chosen[1:] != chosen[:-1]).sum()),
        'at_end': 100.0 * float(tables.accuracy[chosen[-1]]),
    }
    if real[best] > limit:
        return sums
    # What is more accurate than possible is late, and counted there.
    regret = np.maximum(100.0 * (tables.accuracy[best] - tables.accuracy[chosen]), 0.0)
    return {
        **sums,
        'best': 100.0 * float(tables.accuracy[best]),
        'regret_at_end': float(regret[-1]),
        'regret': float(regret.sum()),
    }
