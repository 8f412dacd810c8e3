"""Report of a CPU-step flight: its share of the processor steps from one phase to the next.

The oracle gives the phases in which some configuration would have been in time; the others do not
count.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from mmedge_ros.configuration import ConfigurationError
from mmedge_ros.configuration.configuration_space import ConfigurationSpace
from mmedge_ros.configuration.factorised_latency import FactorisedLatency
from mmedge_ros.configuration.optimizer import Optimizer
from mmedge_ros.configuration.profiling import Phase, PhaseSamples
from mmedge_ros.configuration.unit_time_profile import unit_times_from_profile
from mmedge_ros.data_types import NS_PER_S, Configuration, Decision
from mmedge_ros.records.device_profile import DeviceProfile
from mmedge_ros.untrusted_files import shown

# Decisions do not count for so long after a step of the processor, s.
SETTLING = 2.0
# Share of decisions in time that makes a phase a good one, and a configuration a feasible one.
WANTED = 0.97
_CERTAINTY = 0.95
_MOST_REASONS = 200


@dataclass(frozen=True)
class CpuStep:
    """A phase of a CPU-step flight under one share of the machine, in percent."""

    percent: float
    begin_ns: int
    end_ns: int

    @property
    def seconds(self) -> float:
        return (self.end_ns - self.begin_ns) / NS_PER_S


@dataclass(frozen=True)
class CpuStepFlight:
    """Decisions and configurations of a CPU-step flight; instants on the clock of the graph."""

    phases: Sequence[CpuStep]
    decisions: Sequence[Decision]
    configurations: Sequence[Configuration]


def flight_figures(flown: CpuStepFlight, limit: float, stride: float) -> dict[str, Any]:
    """Return figures of a flight, phase by phase and over all of it.

    :param limit: s, that decisions had to keep
    :param stride: s, between window ends
    """
    changes = _changes(flown.configurations)
    seconds = sum(phase.seconds for phase in flown.phases)
    begin_ns = flown.phases[0].begin_ns
    in_flight = [c for c in changes if begin_ns <= c.effective_from_ns < flown.phases[-1].end_ns]
    return {
        'phases': [
            {
                **step_figures(phase, flown.decisions, limit, stride),
                'changes': sum(
                    phase.begin_ns <= c.effective_from_ns < phase.end_ns for c in changes
                ),
            }
            for phase in flown.phases
        ],
        'changes': len(in_flight),
        'changes_per_minute': round(60.0 * len(in_flight) / seconds, 2) if seconds > 0.0 else None,
        'configurations': [
            {
                'at_s': round((c.effective_from_ns - begin_ns) / NS_PER_S, 2),
                'configuration': _in_words(c),
                'latency_limit_ms': _milliseconds(c.latency_limit),
                'predicted_latency_ms': _milliseconds(c.predicted_latency),
                'reason': c.reason,
            }
            for c in flown.configurations[:_MOST_REASONS]
        ],
    }


def step_figures(
    phase: CpuStep, decisions: Iterable[Decision], limit: float, stride: float
) -> dict[str, Any]:
    """Return how many decisions were in time, outside the first 2 s of the phase.

    Every window end counts: one for which nothing was ever published is late, too.
    ``without_units`` counts decisions that could not wait for units still in work.
    """
    stride_ns = round(stride * NS_PER_S)
    begin_ns = phase.begin_ns + round(SETTLING * NS_PER_S)
    windows = max(phase.end_ns // stride_ns - begin_ns // stride_ns, 0)
    within = [d for d in decisions if begin_ns < d.window_end_ns <= phase.end_ns]
    latencies = np.array([d.latency for d in within])
    in_time = int((latencies <= limit).sum())
    return {
        'percent': phase.percent,
        'seconds': round(phase.seconds, 2),
        'windows': windows,
        'decisions': len(within),
        'in_time': round(min(in_time / windows, 1.0), 4) if windows else None,
        'p50_ms': _quantile(latencies, 0.5),
        'p95_ms': _quantile(latencies, 0.95),
        'without_units': sum(bool(d.late) for d in within),
    }


def oracle(
    profile: DeviceProfile,
    space: ConfigurationSpace,
    accuracy: Sequence[float],
    measured: Iterable[tuple[Phase, PhaseSamples]],
    limit: float,
) -> list[dict[str, Any]]:
    """Return for each share of the machine whether some configuration is in time under it.

    ``flown`` are fixed configurations that were measured under the share, ``model`` the prediction
    for all configurations from the unit times of that share; ``best`` is the most accurate whose
    95 % quantile keeps the limit.

    :param accuracy: (size,) that the optimiser uses
    :param measured: fixed configurations are those that are checks
    :raises ConfigurationError: where none was flown
    """
    flown: dict[float, list[dict[str, Any]]] = {}
    for phase, samples in measured:
        index = space.index_of(phase.parts)
        if phase.is_check and index is not None and samples.latencies:
            latencies = np.array(samples.latencies)
            row = {
                'configuration': ', '.join(filter(None, space.grid.labels(index))),
                'decisions': len(latencies),
                'in_time': round(float((latencies <= limit).mean()), 4),
                'p95_ms': _quantile(latencies, 0.95),
            }
            flown.setdefault(phase.percent, []).append(row)
    if not flown:
        raise ConfigurationError('no fixed configuration was flown, so that nothing is feasible')
    return [
        {
            'percent': percent,
            'feasible': max(row['in_time'] for row in rows) >= WANTED,
            'flown': rows,
            'model': _predicted(profile, percent, space, accuracy, limit),
        }
        for percent, rows in flown.items()
    ]


def verdict(
    runs: Mapping[str, Mapping[str, Any]], oracles: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """Return, per run, the share of decisions in time over all feasible phases."""
    feasible = {row['percent'] for row in oracles if row['feasible']}
    shares: dict[str, Any] = {}
    for name, run in runs.items():
        phases = [p for p in run['phases'] if p['percent'] in feasible and p['windows']]
        windows = sum(p['windows'] for p in phases)
        in_time = sum(p['in_time'] * p['windows'] for p in phases)
        shares[name] = round(in_time / windows, 4) if windows else None
    return {'feasible_percents': sorted(feasible, reverse=True), 'in_time': shares}


def under_limit(profile: DeviceProfile, percent: float) -> DeviceProfile | None:
    """Return a profile's stages under a share of the machine; None if it has none of it.

    :raises ConfigurationError: for times that cannot be read
    """
    if percent >= 100.0:
        return profile
    limited = profile.details.get('limited_ms')
    rows = limited.get(f'{percent:g}') if isinstance(limited, Mapping) else None
    if not isinstance(rows, Mapping):
        return None
    try:
        stages = {
            str(name): tuple(1e-3 * float(value) for value in values)
            for name, values in rows.items()
        }
    except (TypeError, ValueError) as err:
        raise ConfigurationError(f'limited_ms of the profile: {shown(rows)}: {err}') from err
    return DeviceProfile(profile.description, stages)


def _predicted(
    profile: DeviceProfile,
    percent: float,
    space: ConfigurationSpace,
    accuracy: Sequence[float],
    limit: float,
) -> dict[str, Any] | None:
    limited = under_limit(profile, percent)
    if limited is None:
        return None
    try:
        times = unit_times_from_profile(limited, space)
    except ConfigurationError:  # too slow under that share to have been measured
        return None
    quantiles = FactorisedLatency(space, times).predict(0.0).quantiles(_CERTAINTY)
    choice = Optimizer(space.grid).choose(accuracy, quantiles, limit)
    return {
        'cheapest_p95_ms': round(1e3 * float(quantiles[0]), 1),
        'feasible': int((quantiles <= limit).sum()),
        'configurations': len(space),
        'best': ', '.join(filter(None, space.grid.labels(choice.index))),
        'best_p95_ms': round(1e3 * float(quantiles[choice.index]), 1),
    }


def _changes(configurations: Sequence[Configuration]) -> list[Configuration]:
    """Return those that differ from the one before; a new reason alone is no change."""
    ordered = sorted(configurations, key=lambda c: c.id)
    return [after for before, after in pairwise(ordered) if after.modalities != before.modalities]


def _in_words(configuration: Configuration) -> str:
    return ', '.join(part.words() for part in configuration.modalities)


def _quantile(values: np.ndarray[Any, np.dtype[np.float64]], probability: float) -> float | None:
    return round(1e3 * float(np.quantile(values, probability)), 1) if len(values) else None


def _milliseconds(seconds: float) -> float | None:
    return round(1e3 * seconds, 1) if math.isfinite(seconds) else None
