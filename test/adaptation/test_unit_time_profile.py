from __future__ import annotations

import math

import pytest

from mmedge_ros.adaptation import ConfigurationError
from mmedge_ros.adaptation.configuration_space import ConfigurationSpace, ModalityOptions
from mmedge_ros.adaptation.unit_time_profile import (
    StageTime,
    stage_time,
    unit_times_from_profile,
)
from mmedge_ros.core.device_profile import DeviceProfile

TIMES = (0.008, 0.009, 0.010, 0.011, 0.014, 0.018)
SPACE = ConfigurationSpace(
    [
        ModalityOptions('camera', (10.0, 30.0), ('small', 'large')),
        ModalityOptions('radar', (20.0,), ('only',)),
    ]
)
STAGES = dict.fromkeys(
    (
        'camera.small.encode',
        'camera.large.encode',
        'radar.encode',
        'features.transport',
        'fusion',
    ),
    TIMES,
)


def test_a_profile_gives_median_and_scatter_of_each_level() -> None:
    times = unit_times_from_profile(DeviceProfile('', STAGES), SPACE)
    camera = times.units['camera', 'large']
    assert camera.median == pytest.approx(0.010)
    assert camera.median * math.exp(1.645 * camera.scatter) == pytest.approx(0.014, rel=1e-3)


def test_a_modality_of_one_level_may_have_one_stage() -> None:
    times = unit_times_from_profile(DeviceProfile('', STAGES), SPACE)
    assert set(times.units) == {('camera', 'small'), ('camera', 'large'), ('radar', 'only')}


@pytest.mark.parametrize('name', sorted(STAGES))
def test_a_stage_that_is_missing_is_named(name: str) -> None:
    stages = {stage: times for stage, times in STAGES.items() if stage != name}
    with pytest.raises(ConfigurationError, match=f"no stage '{name}'"):
        unit_times_from_profile(DeviceProfile('', stages), SPACE)


@pytest.mark.parametrize(
    ('median', 'p95'), [(0.2, 0.1), (0.0, 0.1), (-1.0, 1.0), (math.nan, 1.0), (0.1, math.inf)]
)
def test_times_that_cannot_be_are_refused(median: float, p95: float) -> None:
    with pytest.raises(ConfigurationError, match='durations must ascend'):
        stage_time(median, p95)


def test_a_stage_without_scatter_still_has_some() -> None:
    assert stage_time(0.01, 0.01) == StageTime(0.01, 0.01)
