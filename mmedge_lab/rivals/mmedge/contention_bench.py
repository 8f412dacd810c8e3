"""How the configuration loop that flies fares where latencies of whole tables become true.

Phases follow each other without notice. The loop starts with the unit times behind the first
table. From then on it measures what a drone would: the latency of each decision, the units of the
configuration that runs, and the work after them. A table that is never corrected is its rival.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mmedge_lab.judging.stopwatch import Stopwatch
from mmedge_lab.rivals.mmedge.published_tables import PublishedTables, read_tables
from mmedge_lab.rivals.mmedge.table_factors import TableFactors, table_factors, table_space
from mmedge_ros.configuration.accuracy_predictor import AccuracyTable
from mmedge_ros.configuration.change_rules import ChangeRulesParameters
from mmedge_ros.configuration.configuration_choice import ChoiceParameters
from mmedge_ros.configuration.configuration_loop import (
    ConfigurationLoop,
    ConfigurationLoopParameters,
)
from mmedge_ros.configuration.unit_time_profile import StageTime, UnitTimeProfile
from mmedge_ros.data_types import NS_PER_S, StageTiming

FloatArray = NDArray[np.float64]

# Time between decisions, s.
STRIDE = 0.1
_OUTLIER = (3.0, 10.0)
_SMALLEST_FACTOR = 0.2
# What a table has no share for: transport, and how much it scatters.
_TRANSPORT = StageTime(1e-4, 0.1)
_LEAST_SCATTER = 0.02
# Of a report: the limit under which the paper promises 81 ms and takes 519, s; decisions of a
# phase, and the tables that become true in turn.
_LIMIT, _DECISIONS = 0.120, 60
_PHASES = ('H', 'C64', 'C50', 'H')
_OF_A_PHASE = ('late', 'regret_at_end', 'feasible')
_DATA, _FOLDER = 'MMEDGE_DATA', 'mmedge_tables'


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
                reconfiguration=ChangeRulesParameters(control=ChoiceParameters(latency_price=0.0)),
            ),
        )
        self._random = np.random.default_rng((settings.seed, 1))
        self._noise = settings.noise
        self._decided, self._current = 0, 0
        self.watch = Stopwatch()

    @property
    def _now(self) -> float:
        return (self._decided + 1) * STRIDE

    def choose(self) -> int:
        """Return the configuration to run."""
        self.watch.start()
        made = self._loop.update(round(self._now * NS_PER_S), self._now)
        self.watch.stop()
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


def run_contention(
    tables: PublishedTables, phases: list[Path], settings: ContentionSettings
) -> dict[str, Any]:
    """Fly through the phases; return the report."""
    space = table_space(tables.grid)
    factors = {path: table_factors(tables.latencies[path], space) for path in set(phases)}
    drone = AdaptiveDrone(tables, factors, phases[0], settings)
    flight = _fly(drone, tables, phases, settings)
    best = best_choice(tables.accuracy, tables.latencies[phases[0]], settings.limit)
    static = _fly(best, tables, phases, settings)
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
            'numbers': factors[phases[0]].numbers,
            'r2': [round(factors[path].r2, 4) for path in phases],
        },
        'static_table': {'phases': _phases(tables, phases, settings, static)},
    }


def tables_folder() -> Path | None:
    """Return the folder of the published tables below $MMEDGE_DATA; None where there is none."""
    data = os.environ.get(_DATA, '')
    folder = Path(data) / _FOLDER
    return folder if data and folder.is_dir() else None


def published_steps(folder: Path) -> dict[str, Any]:
    """Fly through H, C64, C50 and H again, beginning with what is known of H.

    ``phases`` and ``static_phases`` (the first table, never corrected) say by phase how many
    decisions were late and how many points of accuracy the last one is below the best.

    :raises ConfigurationError: if the tables cannot be read
    """
    paths = [folder / f'latency_table_{name}.json' for name in _PHASES]
    tables = read_tables(folder / 'accuracy_table.json', paths)
    report = run_contention(tables, paths, ContentionSettings(_LIMIT, _DECISIONS))
    static = report['static_table']['phases']
    return {
        'limit_ms': 1e3 * _LIMIT,
        'decisions': _DECISIONS,
        'names': list(_PHASES),
        'phases': [{key: phase[key] for key in _OF_A_PHASE} for phase in report['phases']],
        'static_phases': [{key: phase[key] for key in _OF_A_PHASE} for phase in static],
        'command': 'mmedge lab bench contention '
        f'--accuracy ${_DATA}/{_FOLDER}/accuracy_table.json '
        f'--phases {",".join(f"${_DATA}/{_FOLDER}/{path.name}" for path in paths)} '
        f'--limits {1e3 * _LIMIT:g}ms --decisions {_DECISIONS}',
    }


def _fly(
    drone: AdaptiveDrone | int,
    tables: PublishedTables,
    phases: list[Path],
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
            'changes': int((chosen[1:] != chosen[:-1]).sum()),
            'accuracy_at_end': _percent(tables.accuracy[chosen[-1]]),
            'regret_at_end': round(float(regret[-1]), 3) if feasible else None,
            'regret_last_10': round(float(regret[-10:].mean()), 3) if feasible else None,
            'regret_mean': round(float(regret.mean()), 3) if feasible else None,
        }
        if listed:
            report['decisions'] = [
                {
                    'configuration': list(tables.grid.labels(decision.number)),
                    'latency_ms': round(1e3 * decision.latency, 3),
                    'late': decision.late,
                    'outlier': decision.outlier,
                }
                for decision in decisions
            ]
        reports.append(report)
    return reports


def _percent(share: float) -> float:
    return round(100.0 * float(share), 3)
