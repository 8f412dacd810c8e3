"""What is measured for a device profile, and what becomes of it.

A profile takes one number (in quantiles) per level of each modality, and one for transport and
one for fusion: eight stand for 81 configurations. All modalities are at work while any level is
measured, at their highest rates, as in flight.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mmedge_ros.configuration.configuration_space import ConfigurationSpace
from mmedge_ros.configuration.errors import ConfigurationError
from mmedge_ros.configuration.factorised_latency import FactorisedLatency
from mmedge_ros.configuration.unit_time_profile import (
    FUSION,
    TRANSPORT,
    stage_name,
    unit_times_from_profile,
)
from mmedge_ros.data_types import NS_PER_S, ModalityConfiguration, Trail
from mmedge_ros.replay.device_profile import DeviceProfile, measured_profile

# Fewer than these say nothing of a 95 % quantile.
_FEWEST = 20
_RECEIPT = 'receipt.transport'


@dataclass(frozen=True)
class Phase:
    """A stretch of time under one configuration and one share of the machine (percent)."""

    parts: tuple[ModalityConfiguration, ...]
    percent: float = 100.0
    is_check: bool = False

    def words(self) -> str:
        """Name the phase for a person."""
        shown = ', '.join(f'{p.modality} {p.rate:g} Hz {p.level}'.strip() for p in self.parts)
        return f'{shown}, {self.percent:g} % of the machine'


@dataclass
class PhaseSamples:
    """Durations (s) by stage, and latencies (s) of decisions, of one phase."""

    durations: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    latencies: list[float] = field(default_factory=list)

    def add_unit(self, modality: str, level: str, trail: Trail) -> None:
        """Take the trail of an encoded unit."""
        for stage in trail:
            seconds = (stage.end_ns - stage.begin_ns) / NS_PER_S
            if stage.stage == 'encode':
                self.durations[_encode_stage(modality, level)].append(seconds)
            elif stage.stage == 'transport':
                self.durations[_RECEIPT].append(seconds)

    def add_decision(self, latency: float, trail: Trail) -> None:
        """Take the latency of a decision and the trail of its critical unit."""
        self.latencies.append(latency)
        for stage in trail:
            seconds = (stage.end_ns - stage.begin_ns) / NS_PER_S
            if stage.stage == 'transport_features':
                self.durations[TRANSPORT].append(seconds)
            elif stage.stage == 'fusion':
                self.durations[FUSION].append(seconds)


def profile_phases(
    space: ConfigurationSpace, percents: Iterable[float], checks: int
) -> list[Phase]:
    """Return what to run: per share of the machine as many phases as levels, then checks.

    In phase k every modality runs its level k (its last one where it has fewer) at its highest
    rate. Checks are whole configurations spread over the space, with all of the machine.
    """
    most = max(len(options.levels) for options in space.modalities)
    phases = [
        Phase(
            tuple(
                ModalityConfiguration(
                    o.modality, o.rates[-1], o.levels[min(step, len(o.levels) - 1)], o.device
                )
                for o in space.modalities
            ),
            percent,
        )
        for percent in percents
        for step in range(most)
    ]
    count = min(checks, len(space))
    # From the cheapest to the most expensive.
    places = np.unique(np.linspace(0, len(space) - 1, count).round().astype(int))
    return phases + [Phase(space.parts(int(place)), is_check=True) for place in places]


def device_profile(
    description: str,
    measured: Iterable[tuple[Phase, PhaseSamples]],
    space: ConfigurationSpace,
    defaults: Mapping[str, str],
    machine: Mapping[str, Any],
) -> DeviceProfile:
    """Make a profile of what was measured.

    ``stages`` are those with all of the machine; ``details`` holds the machine's description,
    ``limited`` stages by share in percent, and ``cross_check``.

    :param defaults: level that serves a modality unless told otherwise
    :raises ConfigurationError: where too little was measured
    """
    by_percent: dict[float, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    phases = list(measured)
    for phase, samples in phases:
        if not phase.is_check:
            for stage, values in samples.durations.items():
                by_percent[phase.percent][stage] += values
    everything = by_percent.pop(100.0, {})
    _require_enough(everything, space)
    stages = _stages(everything, space, defaults)
    limited = {
        f'{percent:g}': {
            name: [round(1e3 * q, 3) for q in quantiles]
            for name, quantiles in sorted(_stages(values, space, defaults).items())
        }
        for percent, values in sorted(by_percent.items(), reverse=True)
    }
    numbers = sum(len(options.levels) for options in space.modalities) + 2
    details: dict[str, Any] = {'machine': dict(machine), 'measured_numbers': numbers}
    if limited:
        details['limited_ms'] = limited
    profile = DeviceProfile(description, stages, details)
    check = cross_check(profile, space, phases)
    if check:
        details['cross_check'] = check
    return DeviceProfile(description, stages, details)


def cross_check(
    profile: DeviceProfile,
    space: ConfigurationSpace,
    measured: Iterable[tuple[Phase, PhaseSamples]],
) -> dict[str, Any]:
    """Compare the latency that the profile predicts with that of whole configurations.

    ``error`` is the mean of abs(log(predicted / measured)) of the 95 % quantiles: 0.1 is 10 %.
    """
    predicted = FactorisedLatency(space, unit_times_from_profile(profile, space)).predict(0.0)
    quantiles = predicted.quantiles(0.95)
    rows, errors = [], []
    for phase, samples in measured:
        index = space.index_of(phase.parts)
        if not phase.is_check or index is None or len(samples.latencies) < _FEWEST:
            continue
        real, promised = float(np.quantile(samples.latencies, 0.95)), float(quantiles[index])
        if real > 0.0:
            errors.append(abs(math.log(promised / real)))
        rows.append(
            {
                'configuration': ', '.join(space.grid.labels(index)),
                'decisions': len(samples.latencies),
                'measured_p95_ms': round(1e3 * real, 3),
                'predicted_p95_ms': round(1e3 * promised, 3),
            }
        )
    return {'error': round(float(np.mean(errors)), 4), 'configurations': rows} if errors else {}


def _stages(
    durations: Mapping[str, list[float]],
    space: ConfigurationSpace,
    defaults: Mapping[str, str],
) -> dict[str, tuple[float, ...]]:
    """Return quantiles of each stage that was measured often enough.

    ``<modality>.encode`` is there for those who know no levels.
    """
    enough = {name: values for name, values in durations.items() if len(values) >= _FEWEST}
    stages = dict(measured_profile('', enough).stages)
    for options in space.modalities:
        level = defaults.get(options.modality) or options.levels[0]
        if _encode_stage(options.modality, level) in stages:
            own = stages[_encode_stage(options.modality, level)]
            stages.setdefault(f'{options.modality}.encode', own)
    return stages


def _require_enough(durations: Mapping[str, list[float]], space: ConfigurationSpace) -> None:
    wanted = [_encode_stage(o.modality, level) for o in space.modalities for level in o.levels]
    for name in (*wanted, TRANSPORT, FUSION):
        count = len(durations.get(name, ()))
        if count < _FEWEST:
            raise ConfigurationError(
                f'{name} was measured {count} times, which is too few (at least {_FEWEST}); '
                'measure for more --seconds, on a machine that has nothing else to do'
            )


def _encode_stage(modality: str, level: str) -> str:
    return stage_name(modality, level) if level else f'{modality}.encode'
