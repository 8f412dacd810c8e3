"""All policies by name, and a run of one over a flight: what it did, and what came of it."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from mmedge_lab.judging import EvaluationError
from mmedge_lab.judging.bench import UnmeasuredError
from mmedge_lab.judging.bundle_cases import RATES, REUSE
from mmedge_lab.judging.bundle_under_test import BundleUnderTest
from mmedge_lab.judging.encoded_flight import EncodedFlight
from mmedge_lab.judging.steered_replay import OptimiserSteering, Steering
from mmedge_lab.policies.causality import check
from mmedge_lab.policies.pipelined import NewestAlone, Pipelined
from mmedge_lab.policies.schedule import Arrival, Schedule
from mmedge_lab.policies.scheduled_replay import StoredFeatures, replay_schedule
from mmedge_lab.policies.settings import PolicySettings, ServiceTimes, slowed
from mmedge_lab.policies.steering import ChooserSteering, Plugins
from mmedge_lab.policies.window_policies import Blocking, NonBlocking
from mmedge_ros.adaptation.accuracy_predictor import (
    AccuracyPredictor,
    AccuracyTable,
    bundle_accuracy,
)
from mmedge_ros.adaptation.bundle_configurations import (
    bundle_predictor,
    bundle_space,
    manifest_of,
)
from mmedge_ros.adaptation.caps_policy import BadCaps, CapsParameters, WorryingCaps
from mmedge_ros.adaptation.configuration_loop import (
    ConfigurationLoop,
    ConfigurationLoopParameters,
)
from mmedge_ros.adaptation.configuration_space import ConfigurationSpace
from mmedge_ros.adaptation.learned_accuracy import LearnedAccuracy
from mmedge_ros.adaptation.power_policy import NEVER
from mmedge_ros.adaptation.unit_time_profile import (
    UnitTimeProfile,
    unit_times_from_profile,
)
from mmedge_ros.core.data_types import (
    CAMERA,
    NS_PER_S,
    RADAR,
    Configuration,
    ModalityConfiguration,
    UnitFeatures,
)
from mmedge_ros.core.device_profile import DeviceProfile
from mmedge_ros.core.run_record import RunRecord
from mmedge_ros.encoding.bundle.model_bundle import model_levels
from mmedge_ros.pipeline.fusion_strategy import open_pipeline
from mmedge_ros.pipeline.perception_pipeline import PerceptionPipeline
from mmedge_ros.pipeline.pipeline_parameters import PipelineParameters
from mmedge_ros.pipeline.window_assembler import WindowParameters
from mmedge_ros.windows.feature_fusion import FusionNetworks
from mmedge_ros.windows.skip_control import SkipParameters

_LIMIT = 0.05
# Latency limits that windows may have as deadlines, s.
_LIMITS = (0.005, 5.0)
# Rivals know neither battery nor brown-outs of the radar: what is compared is the choice under a
# latency limit.
_UNCAPPED = CapsParameters(
    worrying=WorryingCaps(camera_rate=0.0, radar_rate=0.0, level=''),
    bad=BadCaps(camera_rate=0.0, radar_rate=0.0, level=''),
)


class Choosing(Enum):
    """Where a policy's rates and levels come from."""

    HIGHEST = 'the highest rates and levels'
    LOWEST = 'the lowest rates and levels'
    DEFAULT = "the highest rates and the bundle's default level"
    OPTIMISER = 'the optimiser'
    PROFILE = 'the optimiser, which believes its profile for ever'
    TABLE = 'the optimiser, by the table of accuracies alone, whatever the scene'
    PLUGIN = 'a trained chooser'


@dataclass(frozen=True)
class PolicyKind:
    """A policy: how it runs, and where its configurations come from.

    ``needs`` names the field of `Plugins` it cannot do without, '' for none. ``skips``: the
    bundle's gate is used, if it has one; ``aggregates``: its networks over the window get more
    than the newest unit; ``reuses``: what chooses may encode fewer pictures and follow what was
    detected in the others.
    """

    execution: Blocking | NonBlocking | Pipelined
    choosing: Choosing = Choosing.HIGHEST
    needs: str = ''
    skips: bool = False
    aggregates: bool = True
    reuses: bool = False

    @property
    def name(self) -> str:
        return self.execution.name


_OURS = PolicyKind(Pipelined('ours'), Choosing.OPTIMISER, skips=True, reuses=True)


def _ours_without(part: str, **changed: object) -> PolicyKind:
    execution = Pipelined(f'ours_without_{part}')
    return replace(_OURS, **{'execution': execution, **changed})  # type: ignore[arg-type]


_KINDS = (
    PolicyKind(Blocking('blocking')),
    PolicyKind(Blocking('blocking_cached', cached=True)),
    PolicyKind(NonBlocking('non_blocking')),
    PolicyKind(NonBlocking('imputation', imputes=True), needs='imputation'),
    PolicyKind(
        Blocking('modality_gating', cached=True, first=RADAR), Choosing.PLUGIN, 'modality_gating'
    ),
    PolicyKind(Blocking('model_selection', cached=True), Choosing.PLUGIN, needs='model_selection'),
    PolicyKind(Pipelined('pipelined_max')),
    PolicyKind(Pipelined('pipelined_min'), Choosing.LOWEST),
    _OURS,
    _ours_without('reuse', reuses=False),
    _ours_without('optimiser', choosing=Choosing.DEFAULT, reuses=False),
    _ours_without('calibration', choosing=Choosing.PROFILE),
    _ours_without('predictor', choosing=Choosing.TABLE),
    _ours_without('skipping', skips=False),
    PolicyKind(Blocking('ours_without_pipelining', cached=True), Choosing.OPTIMISER),
    _ours_without('aggregation', aggregates=False),
)
POLICIES: Mapping[str, PolicyKind] = MappingProxyType({kind.name: kind for kind in _KINDS})


@dataclass(frozen=True, eq=False)
class PolicyRun:
    """What a policy did in a flight.

    ``cpu_seconds`` are those of encoders and decisions, at the share of the processor they had.
    ``violations`` are broken promises in words: where there are any, no figure of the run means
    anything. Where each window is alone it has encoders of its own, so that seconds are those of
    all windows together, overlapping as they are.
    """

    schedule: Schedule
    record: RunRecord
    cpu_seconds: float
    violations: tuple[str, ...] = ()


def levels_needed(bundle: BundleUnderTest) -> dict[str, tuple[str, ...]]:
    """Return the levels that policies may choose: those to encode flights with."""
    return {
        options.modality: options.levels
        for options in _choices(bundle.folder, bundle.digest).space.modalities
    }


def run_policy(
    name: str,
    flight: EncodedFlight,
    bundle: BundleUnderTest,
    *,
    alone: bool = False,
    cpu_share: float = 1.0,
    latency_limit: float = _LIMIT,
    plugins: Plugins | None = None,
    networks: FusionNetworks | None = None,
) -> PolicyRun:
    """Run a policy over an encoded flight.

    :param flight: encoded with `levels_needed`, and with greys for a policy that reuses
    :param alone: each window by a machine that has nothing else to do, without a backlog; not
        for pipelined policies
    :param cpu_share: 0..1, share of the processor; the optimiser begins with the bundle's profile
        in any case
    :param latency_limit: T_max, s: what the optimiser keeps to, and when pipelined windows close
    :param networks: fusion networks of the bundle if they are open; shared by a flight's runs
    :param name: of `POLICIES`
    :raises UnmeasuredError: for a plug-in that is not there
    :raises EvaluationError: for a limit or share that cannot be
    :raises ReplayError: if the profile lacks a stage, or the flight a level
    :raises EncodingError: if the bundle cannot be used
    :raises SkippingError: if its gate cannot be used
    """
    kind = POLICIES[name]
    plugins = plugins or Plugins()
    _require(kind, alone, latency_limit, plugins)
    choices = _choices(bundle.folder, bundle.digest, REUSE if kind.reuses else (1,))
    device = slowed(bundle.profile, cpu_share)
    windows = WindowParameters(deadline=latency_limit)
    stored = StoredFeatures(flight)
    arrivals = stored.arrivals
    if not kind.aggregates and (whole := networks or bundle.networks()):
        networks = NewestAlone(whole)

    def features(unit: Arrival, part: ModalityConfiguration) -> UnitFeatures | None:
        return stored.of(unit.unit, part)

    settings = PolicySettings(
        ServiceTimes(device),
        _configuration(kind, choices),
        features,
        windows,
        _steering(kind, choices, bundle.profile, plugins, windows),
    )

    def pipeline(skips: bool) -> PerceptionPipeline:
        skipping = SkipParameters() if skips else SkipParameters(delta=0.0)
        parameters = PipelineParameters(updates=False, windows=windows, skipping=skipping)
        return open_pipeline(bundle.folder, parameters, networks)

    if isinstance(kind.execution, Pipelined):
        schedule, record = kind.execution.replay(flight, pipeline(kind.skips), settings)
    else:
        schedule = kind.execution.schedule(arrivals, flight.periods_ns, settings, alone=alone)
        record = replay_schedule(flight, schedule, pipeline(False), plugins.imputation)
        record.profile = device.description
    record.deadline = latency_limit
    broken = check(schedule, arrivals, kind.execution.promises, settings.window_ns)
    busy_ns = sum(e.end_ns - e.begin_ns for e in schedule.encodings)
    busy_ns += sum(d.published_ns - d.decide_ns for d in schedule.decisions)
    return PolicyRun(schedule, record, cpu_share * busy_ns / NS_PER_S, tuple(broken))


def _require(kind: PolicyKind, alone: bool, latency_limit: float, plugins: Plugins) -> None:
    if alone and isinstance(kind.execution, Pipelined):
        raise EvaluationError(f'{kind.name} encodes before a window ends: none is alone')
    if kind.needs and getattr(plugins, kind.needs) is None:
        raise UnmeasuredError(
            f'{kind.name} needs a trained plug-in, and the bundle brings none; shipped bundles '
            'do, and mmedge lab train fit imputer trains that of imputation'
        )
    low, high = _LIMITS
    if not low <= latency_limit <= high:
        raise EvaluationError(
            f'a latency limit of {latency_limit:g} s; it must be from {low:g} to {high:g} s'
        )


class _Choices(NamedTuple):
    """What can be chosen of a bundle, how accurate that is, and its default camera level."""

    space: ConfigurationSpace
    predictor: AccuracyPredictor
    table: AccuracyTable | None
    default: str


@functools.lru_cache(maxsize=8)
def _choices(
    folder: Path,
    digest: str,  # noqa: ARG001  # another content, another
    camera_reuse: tuple[int, ...] = (1,),
) -> _Choices:
    space = bundle_space(folder, (CAMERA, RADAR), RATES, camera_reuse)
    predictor = bundle_predictor(folder, space).predictor
    table = bundle_accuracy(manifest_of(folder), space)
    return _Choices(space, predictor, table, model_levels(folder)[1])


def _configuration(kind: PolicyKind, choices: _Choices) -> Configuration:
    """Return the configuration of a policy without steering."""
    space, default = choices.space, choices.default
    parts = space.parts(0 if kind.choosing is Choosing.LOWEST else len(space) - 1)
    if kind.choosing is Choosing.DEFAULT:
        levels = {options.modality: options.levels for options in space.modalities}
        parts = tuple(
            replace(part, level=default) if default in levels[part.modality] else part
            for part in parts
        )
    return Configuration(1, 0, parts)


def _steering(
    kind: PolicyKind,
    choices: _Choices,
    profile: DeviceProfile,
    plugins: Plugins,
    windows: WindowParameters,
) -> Callable[[], Steering] | None:
    """Return what makes the steering of a flight; None for a fixed configuration."""
    if kind.choosing is Choosing.PLUGIN:
        chooser = getattr(plugins, kind.needs)
        return lambda: ChooserSteering(chooser, round(windows.window * NS_PER_S))
    if kind.choosing not in (Choosing.OPTIMISER, Choosing.PROFILE, Choosing.TABLE):
        return None
    learns = kind.choosing is not Choosing.PROFILE
    if kind.choosing is Choosing.TABLE:
        if not isinstance(choices.predictor, LearnedAccuracy) or choices.table is None:
            raise UnmeasuredError(
                'the bundle holds no predictor; `mmedge lab train fit predictor` makes one'
            )
        choices = choices._replace(predictor=choices.table)
    return lambda: OptimiserSteering(_loop(choices, profile, windows.deadline), learns)


def _loop(choices: _Choices, profile: DeviceProfile, limit: float) -> ConfigurationLoop:
    parameters = ConfigurationLoopParameters(limit, power=NEVER, caps=_UNCAPPED)
    times = _unit_times(profile, choices.space)
    return ConfigurationLoop(choices.space, times, choices.predictor, parameters)


def optimiser_loop(
    bundle: BundleUnderTest, latency_limit: float = _LIMIT, cpu_share: float = 1.0
) -> ConfigurationLoop:
    """Return an optimiser that begins with the profile of a bundle under test.

    :param latency_limit: s
    :param cpu_share: 0..1, of the processor while the profile was measured
    """
    profile = slowed(bundle.profile, cpu_share)
    return _loop(_choices(bundle.folder, bundle.digest, REUSE), profile, latency_limit)


def _unit_times(profile: DeviceProfile, space: ConfigurationSpace) -> UnitTimeProfile:
    """Return the optimiser's first times; levels without times share those of the modality."""
    stages = dict(profile.stages)
    for options in space.modalities:
        for level in options.levels:
            known = profile.encode_stage(options.modality, level)
            if known in profile.stages:
                stages[f'{options.modality}.{level}.encode'] = profile.stages[known]
    return unit_times_from_profile(replace(profile, stages=stages), space)
