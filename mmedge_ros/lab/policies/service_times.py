"""How long everything takes under a share of the processor, sampled as offline replay does."""

from __future__ import annotations

from dataclasses import dataclass

from mmedge_ros.data_types import NS_PER_S
from mmedge_ros.lab.evaluation import EvaluationError
from mmedge_ros.records.device_profile import DeviceProfile


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

    :raises ReplayError: for a stage that the profile does not know, when it is asked for
    """

    profile: DeviceProfile

    def encode_ns(self, modality: str, level: str, sequence: int) -> int:
        """Return how long an encoder is busy with a unit."""
        return self._ns(self.profile.encode_stage(modality, level), modality, sequence)

    def transport_ns(self, modality: str, sequence: int) -> int:
        """Return how long the features of a unit travel to fusion."""
        return self._ns('features.transport', modality, sequence)

    def decision_ns(self, window_end_ns: int, stride_ns: int) -> int:
        """Return how long aggregation, fusion and tracking take for a window."""
        return self._ns('fusion', 'decision', window_end_ns // stride_ns)

    def _ns(self, stage: str, key: str, sequence: int) -> int:
        return round(self.profile.sample(stage, key, sequence) * NS_PER_S)
