"""Unit times per modality and level, as measured once on a device; at most a few numbers."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from mmedge_ros.adaptation import ConfigurationError
from mmedge_ros.adaptation.configuration_space import ConfigurationSpace, ModalityOptions
from mmedge_ros.core.device_profile import FOLLOW_SHARE, PROBABILITIES, DeviceProfile
from mmedge_ros.core.untrusted_files import shown

TRANSPORT = 'features.transport'
FUSION = 'fusion'

# Standard score of the 95 % quantile.
_Z95 = 1.6449
_SHORTEST, _LONGEST = 1e-6, 1e3
# Taken for granted until units were measured, s: the cheapest level of a network, and how much
# more each further one takes. Wide scatter, so that little is promised.
_ASSUMED_UNIT, _ASSUMED_STEP, _ASSUMED_SCATTER = 0.015, 2.0, 0.2
_ASSUMED_TRANSPORT, _ASSUMED_FUSION = 0.002, 0.002


class StageTime(NamedTuple):
    """Median of a duration in seconds and the standard deviation of its logarithm."""

    median: float
    scatter: float


@dataclass(frozen=True)
class UnitTimeProfile:
    """What was measured: (modality, level) -> time per unit, and what every decision costs.

    ``follow``: modality -> time to follow in a unit what was seen before, where it was measured.
    """

    units: Mapping[tuple[str, str], StageTime]
    transport: StageTime
    fusion: StageTime
    follow: Mapping[str, StageTime] = field(default_factory=dict)

    def follow_time(self, options: ModalityOptions) -> StageTime:
        """Return the time of following; where it was not measured, a share of the middle level's.

        :raises KeyError: for a modality that was not measured
        """
        known = self.follow.get(options.modality)
        if known is not None:
            return known
        middle = options.levels[len(options.levels) // 2]
        return StageTime(
            FOLLOW_SHARE * self.units[options.modality, middle].median, _ASSUMED_SCATTER
        )


def stage_time(median: float, p95: float) -> StageTime:
    """Return a stage's time from its median and 95 % quantile in seconds.

    :raises ConfigurationError: for anything but two ascending durations
    """
    if not _SHORTEST <= median <= p95 <= _LONGEST:
        raise ConfigurationError(
            f'a median of {shown(median)} s and a 95 % quantile of {shown(p95)} s; durations '
            f'must ascend from {_SHORTEST:g} to {_LONGEST:g} s'
        )
    return StageTime(median, max(math.log(p95 / median) / _Z95, 0.01))


def follow_stage_name(modality: str) -> str:
    """Return the name of a modality's follow stage in a device profile."""
    return f'{modality}.follow'


def stage_name(modality: str, level: str) -> str:
    """Return the name of a level's encode stage in a device profile."""
    return f'{modality}.{level}.encode'


def unit_times_from_profile(profile: DeviceProfile, space: ConfigurationSpace) -> UnitTimeProfile:
    """Read the unit times of a space's levels from a device profile.

    Stages are named ``<modality>.<level>.encode``; where a modality has one level only,
    ``<modality>.encode`` serves as well.

    :raises ConfigurationError: naming the stage that is missing
    """
    units = {}
    for options in space.modalities:
        for level in options.levels:
            name = stage_name(options.modality, level)
            if name not in profile.stages and len(options.levels) == 1:
                name = f'{options.modality}.encode'
            units[options.modality, level] = _stage(profile, name)
    follow = {
        options.modality: _stage(profile, name)
        for options in space.modalities
        if (name := follow_stage_name(options.modality)) in profile.stages
    }
    return UnitTimeProfile(units, _stage(profile, TRANSPORT), _stage(profile, FUSION), follow)


def _stage(profile: DeviceProfile, name: str) -> StageTime:
    if name not in profile.stages:
        known = ', '.join(sorted(profile.stages)) or 'none'
        raise ConfigurationError(
            f'the device profile has no stage {name!r}, it has {known}; measure it again'
        )
    quantiles = np.interp((0.5, 0.95), PROBABILITIES, profile.stages[name])
    median, p95 = (max(float(q), _SHORTEST) for q in quantiles)
    return stage_time(median, p95)


def assumed_unit_times(space: ConfigurationSpace) -> UnitTimeProfile:
    """Return unit times to begin with where no profile was measured; the first units correct it.

    15 ms for the cheapest level of a modality and twice as much for each further one.
    """
    units = {
        (options.modality, level): StageTime(_ASSUMED_UNIT * _ASSUMED_STEP**step, _ASSUMED_SCATTER)
        for options in space.modalities
        for step, level in enumerate(options.levels)
    }
    return UnitTimeProfile(
        units,
        StageTime(_ASSUMED_TRANSPORT, _ASSUMED_SCATTER),
        StageTime(_ASSUMED_FUSION, _ASSUMED_SCATTER),
    )
