"""What is measured for a device profile, and the profile made of it.

A profile takes one number (in quantiles) per level of each modality, and one for transport and
one for fusion: eight stand for 81 configurations. All modalities are at work while any level is
measured, at their highest rates, as in flight. A phase lasts until there is enough of everything,
so that a slow or busy machine takes longer instead of being refused.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mmedge_ros.adaptation import ConfigurationError
from mmedge_ros.adaptation.configuration_space import ConfigurationSpace
from mmedge_ros.adaptation.factorised_latency import FactorisedLatency
from mmedge_ros.adaptation.unit_time_profile import (
    FUSION,
    TRANSPORT,
    follow_stage_name,
    stage_name,
    unit_times_from_profile,
)
from mmedge_ros.core.data_types import NS_PER_S, ModalityConfiguration, Trail
from mmedge_ros.core.device_profile import DeviceProfile, measured_profile

# Fewer than these say little of a 95 % quantile: a phase goes on for more, up to a limit.
ENOUGH = 20
# What there is by then is used, with a word of it, unless there are fewer than these.
_FEWEST = 5
# Share of its time that an encoder may work without units having to wait.
_KEEPS_UP = 0.9
_RECEIPT = 'receipt.transport'
DECISIONS = 'decisions'


@dataclass(frozen=True)
class ProfilePhase:
    """A stretch of time under one configuration and one share of the machine (percent)."""

    parts: tuple[ModalityConfiguration, ...]
    percent: float = 100.0
    is_check: bool = False

    def words(self) -> str:
        """Name the phase."""
        shown = ', '.join(part.words() for part in self.parts)
        return f'{shown}, {self.percent:g} % of the machine'


@dataclass
class PhaseSamples:
    """Durations (s) by stage, and latencies (s) of decisions, of one phase."""

    durations: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    latencies: list[float] = field(default_factory=list)

    def lacking(self, phase: ProfilePhase) -> dict[str, int]:
        """Return, by stage, how often what the phase is flown for was measured, if too rarely.

        Where an encoder cannot follow, few decisions are more than guesses, and none is needed.
        """
        if phase.is_check:
            counts = {DECISIONS: len(self.latencies)}
        else:
            stages = [_encode_stage(part.modality, part.level) for part in phase.parts]
            stages += [follow_stage_name(p.modality) for p in phase.parts if p.reuse > 1]
            if self.work_share(phase) <= _KEEPS_UP:
                stages += [TRANSPORT, FUSION]
            counts = {name: len(self.durations[name]) for name in stages}
        return {name: count for name, count in counts.items() if count < ENOUGH}

    def work_share(self, phase: ProfilePhase) -> float:
        """Return the largest share of its time that an encoder works at the rate of the phase.

        Above 1, units wait and are dropped, and everything else waits for the processor.
        """
        shares = [0.0]
        for part in phase.parts:
            values = self.durations[_encode_stage(part.modality, part.level)]
            if values:
                shares.append(part.rate * float(np.median(values)) / part.reuse)
        return max(shares)

    def add_unit(self, modality: str, level: str, trail: Trail) -> None:
        """Take the trail of a unit, encoded or followed."""
        for stage in trail:
            seconds = (stage.end_ns - stage.begin_ns) / NS_PER_S
            if stage.stage == 'encode':
                self.durations[_encode_stage(modality, level)].append(seconds)
            elif stage.stage == 'follow':
                self.durations[follow_stage_name(modality)].append(seconds)
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
) -> list[ProfilePhase]:
    """Return what to run: per share of the machine as many phases as levels, then checks.

    In phase k every modality runs its level k (its last one where it has fewer) at its highest
    rate. Where there is reuse to choose, one more phase at the first level has the least of it
    above 1. Checks are whole configurations spread over the space, with all of the machine.
    """
    most = max(len(options.levels) for options in space.modalities)
    steps = [(step, False) for step in range(most)]
    if any(options.reuse != (1,) for options in space.modalities):
        steps.append((0, True))
    phases = [
        ProfilePhase(
            tuple(
                ModalityConfiguration(
                    o.modality,
                    o.rates[-1],
                    o.levels[min(step, len(o.levels) - 1)],
                    o.device,
                    min((n for n in o.reuse if n > 1), default=1) if reuses else 1,
                )
                for o in space.modalities
            ),
            percent,
        )
        for percent in percents
        for step, reuses in steps
    ]
    count = min(checks, len(space))
    # From the cheapest to the most expensive.
    places = np.unique(np.linspace(0, len(space) - 1, count).round().astype(int))
    return phases + [ProfilePhase(space.parts(int(place)), is_check=True) for place in places]


def device_profile(
    description: str,
    measured: Iterable[tuple[ProfilePhase, PhaseSamples]],
    space: ConfigurationSpace,
    defaults: Mapping[str, str],
    machine: Mapping[str, Any],
) -> DeviceProfile:
    """Make a profile of what was measured.

    ``stages`` are those with all of the machine; ``details`` holds the machine's description,
    ``limited_ms`` stages by share in percent, ``measured_rarely`` the stages of which little is
    known with how often they were measured, and ``cross_check``. Transport and fusion are those of
    the phases in which the encoders kept up (of the one that did best, if none did): nothing else
    is ever chosen.

    :param defaults: default level of a modality
    :raises ConfigurationError: where too little was measured
    """
    phases = list(measured)
    by_percent = _by_percent(phases)
    everything = by_percent.pop(100.0, {})
    _require_some(everything, space)
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
    few = {name: len(v) for name, v in sorted(everything.items()) if len(v) < ENOUGH}
    if few:
        details['measured_rarely'] = few
    profile = DeviceProfile(description, stages, details)
    check = cross_check(profile, space, phases)
    if check:
        details['cross_check'] = check
    return DeviceProfile(description, stages, details)


def cross_check(
    profile: DeviceProfile,
    space: ConfigurationSpace,
    measured: Iterable[tuple[ProfilePhase, PhaseSamples]],
) -> dict[str, Any]:
    """Compare the latency that the profile predicts with that of whole configurations.

    ``error`` is the mean of abs(log(predicted / measured)) of the 95 % quantiles: 0.1 is 10 %.
    Only checks with all of the machine count, which is what the profile is about.
    """
    predicted = FactorisedLatency(space, unit_times_from_profile(profile, space)).predict(0.0)
    quantiles = predicted.quantiles(0.95)
    rows, errors = [], []
    for phase, samples in measured:
        index = space.index_of(phase.parts)
        if not phase.is_check or phase.percent < 100.0 or index is None:
            continue
        if len(samples.latencies) < _FEWEST:
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


def _by_percent(
    measured: Sequence[tuple[ProfilePhase, PhaseSamples]],
) -> dict[float, dict[str, list[float]]]:
    """Put together what was measured of each stage, by share of the machine."""
    durations: dict[float, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for percent in dict.fromkeys(phase.percent for phase, _ in measured if not phase.is_check):
        own = [(phase, samples) for phase, samples in measured if phase.percent == percent]
        decided = [
            (samples.work_share(phase), samples)
            for phase, samples in own
            if samples.durations[TRANSPORT]
        ]
        enough = max(_KEEPS_UP, min((busy for busy, _ in decided), default=0.0))
        for busy, samples in decided:
            if busy <= enough:
                for stage in (TRANSPORT, FUSION):
                    durations[percent][stage] += samples.durations[stage]
        for phase, samples in own:
            if not phase.is_check:
                for stage in samples.durations.keys() - {TRANSPORT, FUSION}:
                    durations[percent][stage] += samples.durations[stage]
    return durations


def _stages(
    durations: Mapping[str, list[float]],
    space: ConfigurationSpace,
    defaults: Mapping[str, str],
) -> dict[str, tuple[float, ...]]:
    """Return quantiles of each stage that was measured at all often.

    ``<modality>.encode`` stands for the default level.
    """
    enough = {name: values for name, values in durations.items() if len(values) >= _FEWEST}
    stages = dict(measured_profile('', enough).stages)
    for options in space.modalities:
        level = defaults.get(options.modality) or options.levels[0]
        if _encode_stage(options.modality, level) in stages:
            own = stages[_encode_stage(options.modality, level)]
            stages.setdefault(f'{options.modality}.encode', own)
    return stages


def _require_some(durations: Mapping[str, list[float]], space: ConfigurationSpace) -> None:
    wanted = [_encode_stage(o.modality, level) for o in space.modalities for level in o.levels]
    for name in (*wanted, TRANSPORT, FUSION):
        count = len(durations.get(name, ()))
        if count < _FEWEST:
            raise ConfigurationError(
                f'{name} was measured {count} times, which is too few (at least {_FEWEST}): the '
                'machine hardly gets to it; allow it more time with --longest, or give it less '
                'to do beside this'
            )


def _encode_stage(modality: str, level: str) -> str:
    return stage_name(modality, level) if level else f'{modality}.encode'
