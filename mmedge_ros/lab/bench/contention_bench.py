"""How a drone fares that knows one latency table while others become true.

Phases follow each other without notice. It starts with the table of the first phase and sees
nothing but the latency of what it ran. Two rivals stand beside it: the static table, and the
drone that starts from a few numbers instead of the whole table.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mmedge_ros.configuration.configuration_control import (
    ConfigurationControl,
    ControlParameters,
)
from mmedge_ros.configuration.optimizer import OptimizerParameters
from mmedge_ros.lab.bench.bench_timing import Stopwatch
from mmedge_ros.lab.bench.contention_worlds import cost_ranks, draw_worlds
from mmedge_ros.lab.bench.factor_knowledge import measured_factors
from mmedge_ros.lab.bench.published_tables import PublishedTables
from mmedge_ros.lab.bench.table_latency import TableLatency, TableLatencyParameters

FloatArray = NDArray[np.float64]

# Time between decisions, s.
STRIDE = 0.1
_FEWEST_WORLDS, _MOST_WORLDS, _WORLD_CELLS = 128, 1000, 600_000
_OUTLIER = (3.0, 10.0)
_SMALLEST_FACTOR = 0.2
# What is known of a table says how well it is known, so no room is needed on top.
_CONTROL = ControlParameters(dared=0.9, optimizer=OptimizerParameters(headroom=0.0))


@dataclass(frozen=True)
class ContentionSettings:
    """``limit`` in s, ``decisions`` per phase.

    A latency scatters by the factor 1 + ``noise`` x N(0, 1); a share ``outliers`` of the
    decisions takes 3 to 10 times as long, which is nobody's fault and not counted as late.
    """

    limit: float
    decisions: int
    noise: float = 0.0
    outliers: float = 0.0
    seed: int = 0


class Measured(NamedTuple):
    """One decision: what ran, how long it took (s), and what kind of decision it was."""

    number: int
    latency: float
    late: bool
    outlier: bool
    probe: bool


class AdaptiveDrone:
    """A table, calibrated by what was run, and the control that chooses from it."""

    def __init__(
        self, tables: PublishedTables, known: FloatArray, error: float, limit: float
    ) -> None:
        shape = tables.grid.shape
        count = _WORLD_CELLS // tables.grid.size
        count = min(max(count, _FEWEST_WORLDS), _MOST_WORLDS)
        worlds = draw_worlds(cost_ranks(tables.accuracy.reshape(shape)), count)
        parameters = TableLatencyParameters(profile_error=error)
        self._latency = TableLatency(known, worlds, parameters)
        self._control = ConfigurationControl(tables.grid, _CONTROL)
        self._accuracy = tables.accuracy
        self._limit = limit
        self._decided = 0
        self.watch = Stopwatch()

    def choose(self) -> tuple[int, bool]:
        """Return what to run and whether it is only a try."""
        self.watch.start()
        now = self._decided * STRIDE
        chosen = self._control.decide(
            self._latency.predict(now),
            self._accuracy,
            self._limit,
            now,
        )
        self.watch.stop()
        return chosen.index, chosen.probe

    def measured(self, index: int, latency: float) -> None:
        """Learn how long the decision took, s."""
        self._decided += 1
        step = self._latency.observe(index, latency, self._decided * STRIDE)
        self._control.learned(latency > self._limit, step)


class StaticDrone:
    """Believes its table for ever."""

    def __init__(self, tables: PublishedTables, known: FloatArray, limit: float) -> None:
        self._index = best_choice(tables.accuracy, known, limit)

    def choose(self) -> tuple[int, bool]:
        """Return what to run; never a try."""
        return self._index, False

    def measured(self, index: int, latency: float) -> None:
        """Learn nothing."""


def best_choice(accuracy: FloatArray, latency: FloatArray, limit: float) -> int:
    """Return the most accurate configuration within the limit, or else the fastest."""
    if not (latency <= limit).any():
        return int(latency.argmin())
    best = np.where(latency <= limit, accuracy, -math.inf)
    ties = np.flatnonzero(best == best.max())
    return int(ties[latency[ties].argmin()])


def run_contention(
    tables: PublishedTables, phases: list[Path], settings: ContentionSettings
) -> dict[str, Any]:
    """Fly through the phases; return the report."""
    known = tables.latencies[phases[0]]
    rebuilt = measured_factors(known, tables.grid)
    error = TableLatencyParameters().profile_error
    drone = AdaptiveDrone(tables, known, error, settings.limit)
    flight = _fly(drone, tables, phases, settings)
    few = AdaptiveDrone(tables, rebuilt.table, min(max(rebuilt.error, error), 1.0), settings.limit)
    few_flight = _fly(few, tables, phases, settings)
    static = _fly(StaticDrone(tables, known, settings.limit), tables, phases, settings)
    return {
        'limit_ms': 1e3 * settings.limit,
        'decisions_per_phase': settings.decisions,
        'noise': settings.noise,
        'outliers': settings.outliers,
        'seed': settings.seed,
        'configurations': tables.grid.size,
        'decision_us': drone.watch.microseconds(),
        'phases': _phases(tables, phases, settings, flight, listed=True),
        'from_factors': {
            'numbers': rebuilt.numbers,
            'r2': round(rebuilt.r2, 4),
            'phases': _phases(tables, phases, settings, few_flight),
        },
        'static_table': {'phases': _phases(tables, phases, settings, static)},
    }


def _fly(
    drone: AdaptiveDrone | StaticDrone,
    tables: PublishedTables,
    phases: list[Path],
    settings: ContentionSettings,
) -> list[list[Measured]]:
    """Return the decisions of each phase; every drone meets the same noise."""
    random = np.random.default_rng(settings.seed)
    flown = []
    for path in phases:
        real = tables.latencies[path]
        decisions = []
        for _ in range(settings.decisions):
            factor = max(1.0 + settings.noise * random.standard_normal(), _SMALLEST_FACTOR)
            outlier = bool(random.random() < settings.outliers)
            factor *= float(random.uniform(*_OUTLIER)) if outlier else 1.0
            index, probe = drone.choose()
            latency = float(real[index]) * factor
            drone.measured(index, latency)
            late = latency > settings.limit and not outlier
            decisions.append(Measured(index, latency, late, outlier, probe))
        flown.append(decisions)
    return flown


def _phases(
    tables: PublishedTables,
    phases: list[Path],
    settings: ContentionSettings,
    flown: list[list[Measured]],
    listed: bool = False,
) -> list[dict[str, Any]]:
    reports = []
    for path, decisions in zip(phases, flown, strict=True):
        real = tables.latencies[path]
        best = best_choice(tables.accuracy, real, settings.limit)
        feasible = bool(real[best] <= settings.limit)
        chosen = np.array([decision.number for decision in decisions])
        # What is more accurate than possible is late, and counted there.
        regret = np.maximum(100.0 * (tables.accuracy[best] - tables.accuracy[chosen]), 0.0)
        report: dict[str, Any] = {
            'latency': str(path),
            'feasible': feasible,
            'best_accuracy': _percent(tables.accuracy[best]) if feasible else None,
            'best_configuration': list(tables.grid.labels(best)),
            'late': sum(decision.late for decision in decisions),
            'late_in_table': int((real[chosen] > settings.limit).sum()),
            'outliers': sum(decision.outlier for decision in decisions),
            'tries': sum(decision.probe for decision in decisions),
            'changes': int((chosen[1:] != chosen[:-1]).sum()),
            'accuracy_at_end': _percent(tables.accuracy[chosen[-1]]),
            'regret_at_end': round(float(regret[-1]), 3) if feasible else None,
            'regret_last_10': round(float(regret[-10:].mean()), 3) if feasible else None,
            'regret_mean': round(float(regret.mean()), 3) if feasible else None,
        }
        if listed:
            report['decisions'] = [_decision(tables, decision) for decision in decisions]
        reports.append(report)
    return reports


def _decision(tables: PublishedTables, decision: Measured) -> dict[str, Any]:
    return {
        'configuration': list(tables.grid.labels(decision.number)),
        'latency_ms': round(1e3 * decision.latency, 3),
        'late': decision.late,
        'outlier': decision.outlier,
        'try': decision.probe,
    }


def _percent(share: float) -> float:
    return round(100.0 * float(share), 3)
