"""What a policy is run with: service times, a configuration or what steers it, and windows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from mmedge_lab.judging import EvaluationError
from mmedge_lab.judging.steered_replay import Steering
from mmedge_lab.policies.schedule import Arrival, Encoding
from mmedge_ros.core.data_types import (
    NS_PER_S,
    Configuration,
    ModalityConfiguration,
    UnitFeatures,
    extend_trail,
)
from mmedge_ros.core.device_profile import DeviceProfile
from mmedge_ros.pipeline.window_assembler import WindowParameters

FeaturesOf = Callable[[Arrival, ModalityConfiguration], UnitFeatures | None]
# How encode times of `config/profiles/default.yaml` scatter about their median.
_SPREAD = (0.96, 0.98, 1.0, 1.09, 1.26, 1.46)


def _scattered(median: float) -> tuple[float, ...]:
    return tuple(round(median * share, 6) for share in _SPREAD)


# Small, medium and large of the shipped bundle take about 4, 9 and 16 ms on two x86-64 cores;
# twice as long, the highest level keeps up with 30 pictures a second, and any load shows.
STATED = DeviceProfile(
    'stated, not measured: a board with 8, 17 and 30 ms per picture (small, medium, large), '
    '2.6 ms per followed picture, 0.5 ms per scan, 1.4 ms transport, 3 ms per decision',
    {
        'camera.small.encode': _scattered(0.008),
        'camera.medium.encode': _scattered(0.017),
        'camera.large.encode': _scattered(0.030),
        'camera.encode': _scattered(0.030),
        'camera.follow': _scattered(0.0026),
        'radar.encode': _scattered(0.0005),
        'features.transport': _scattered(0.0014),
        'receipt.transport': _scattered(0.0002),
        'fusion': _scattered(0.003),
    },
)


def slowed(profile: DeviceProfile, cpu_share: float) -> DeviceProfile:
    """Return a profile of the same device with a share of its processor: times / share.

    :param cpu_share: above 0, at most 1
    :raises EvaluationError: for any other share
    """
    if not 0.0 < cpu_share <= 1.0:
        raise EvaluationError(
            f'a share of the processor of {cpu_share:g}; it must be above 0 and at most 1'
        )
    if cpu_share == 1.0:
        return profile
    return DeviceProfile(
        f'{profile.description}, with {100.0 * cpu_share:g} % of the processor',
        {
            stage: tuple(quantile / cpu_share for quantile in quantiles)
            for stage, quantiles in profile.stages.items()
        },
    )


@dataclass(frozen=True)
class ServiceTimes:
    """Times of units and decisions, seeded by what they are of: each run draws the same.

    :raises ReplayError: for a stage that the profile does not know
    """

    profile: DeviceProfile

    def encode_ns(self, modality: str, level: str, sequence: int) -> int:
        """Return how long an encoder is busy with a unit."""
        return self._ns(self.profile.encode_stage(modality, level), modality, sequence)

    def transport_ns(self, modality: str, sequence: int) -> int:
        """Return how long the features of a unit travel to fusion."""
        return self._ns('features.transport', modality, sequence)

    def decision_ns(self, number: int) -> int:
        """Return how long aggregation, fusion and tracking take for a window, by its number."""
        return self._ns('fusion', 'decision', number)

    def _ns(self, stage: str, key: str, sequence: int) -> int:
        return round(self.profile.sample(stage, key, sequence) * NS_PER_S)


@dataclass(frozen=True)
class PolicySettings:
    """What a policy works with.

    ``configuration`` is used without steering; ``make_steering`` makes a new one for each
    flight. ``windows.deadline`` is the latency limit. ``features`` encodes a unit for steering.
    """

    times: ServiceTimes
    configuration: Configuration
    features: FeaturesOf
    windows: WindowParameters = field(default_factory=WindowParameters)
    make_steering: Callable[[], Steering] | None = None

    @property
    def window_ns(self) -> int:
        return round(self.windows.window * NS_PER_S)

    @property
    def stride_ns(self) -> int:
        return round(self.windows.stride * NS_PER_S)

    def decision_ns(self, end_ns: int) -> int:
        """Return how long the decision of a window takes."""
        return self.times.decision_ns(end_ns // self.stride_ns)


def with_trail(features: UnitFeatures, encoding: Encoding) -> UnitFeatures:
    """Return features whose trail goes on to the end of their encoding."""
    trail = extend_trail(features.trail, 'queue', encoding.begin_ns)
    return replace(features, trail=extend_trail(trail, 'encode', encoding.end_ns))
