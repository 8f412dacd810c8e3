from __future__ import annotations

from pathlib import Path

import pytest

from mmedge_ros.adaptation import ConfigurationError
from mmedge_ros.adaptation.configuration_space import ConfigurationSpace, ModalityOptions
from mmedge_ros.adaptation.profiling import (
    PhaseSamples,
    ProfilePhase,
    device_profile,
    profile_phases,
)
from mmedge_ros.adaptation.unit_time_profile import unit_times_from_profile
from mmedge_ros.core.data_types import NS_PER_S, StageTiming, Trail
from mmedge_ros.core.device_profile import read_profile, write_profile

SPACE = ConfigurationSpace(
    [
        ModalityOptions('camera', (10.0, 20.0, 30.0), ('small', 'medium', 'large'), ''),
        ModalityOptions('radar', (5.0, 10.0, 20.0), ('',), ''),
    ]
)
ENCODE = {'small': 0.010, 'medium': 0.020, 'large': 0.025, '': 0.001}
TRANSPORT, FUSION = 0.002, 0.003


def trail(*stages: tuple[str, float]) -> Trail:
    timings, begin_ns = [], 0
    for name, seconds in stages:
        end_ns = begin_ns + round(seconds * NS_PER_S)
        timings.append(StageTiming(name, begin_ns, end_ns))
        begin_ns = end_ns
    return tuple(timings)


def flown(phase: ProfilePhase, count: int = 60) -> PhaseSamples:
    """What a machine measures whose times hardly vary, and grow as its share shrinks."""
    samples = PhaseSamples()
    slowness = 100.0 / phase.percent
    for number in range(count):
        varied = slowness * (1.0 + 0.05 * (number % 3))
        for part in phase.parts:
            encode = ENCODE[part.level] * varied
            unit = trail(('transport', 0.0005), ('queue', 0.0), ('encode', encode))
            samples.add_unit(part.modality, part.level, unit)
        slowest = max(ENCODE[part.level] for part in phase.parts)
        latency = (slowest + TRANSPORT + FUSION) * varied
        after = (('transport_features', TRANSPORT * varied), ('fusion', FUSION * varied))
        samples.add_decision(latency, trail(*after))
    return samples


def measured(
    percents: tuple[float, ...] = (100.0, 50.0), checks: int = 3, count: int = 60
) -> list[tuple[ProfilePhase, PhaseSamples]]:
    return [(phase, flown(phase, count)) for phase in profile_phases(SPACE, percents, checks)]


def test_every_level_runs_while_all_sensors_are_at_work() -> None:
    phases = profile_phases(SPACE, [100.0, 50.0], 0)
    assert [(p.percent, p.parts[0].level, p.parts[0].rate) for p in phases] == [
        (percent, level, 30.0) for percent in (100.0, 50.0) for level in SPACE.modalities[0].levels
    ]
    assert {p.parts[1].rate for p in phases} == {20.0}


def test_where_reuse_can_be_chosen_following_is_measured_too() -> None:
    camera = ModalityOptions('camera', (10.0, 30.0), ('small', 'medium'), '', (6, 2, 1))
    reusing = ConfigurationSpace([camera, ModalityOptions('radar', (20.0,), ('',), '')])
    phases = profile_phases(reusing, [100.0], 0)
    assert [(p.parts[0].level, p.parts[0].reuse) for p in phases] == [
        ('small', 1),
        ('medium', 1),
        ('small', 2),
    ]
    samples = [(phase, flown(phase, 60)) for phase in phases]
    assert samples[2][1].lacking(phases[2]) == {'camera.follow': 0}
    for _ in range(30):
        samples[2][1].add_unit('camera', 'small', trail(('follow', 0.002)))
    assert not samples[2][1].lacking(phases[2])
    made = device_profile('here', samples, reusing, {}, {})
    assert made.stages['camera.follow'] == pytest.approx([0.002] * 6)
    assert unit_times_from_profile(made, reusing).follow['camera'].median == pytest.approx(0.002)


def test_checks_are_spread_over_all_configurations() -> None:
    checks = [p for p in profile_phases(SPACE, [100.0], 3) if p.is_check]
    assert [SPACE.index_of(p.parts) for p in checks] == [0, 13, 26]
    assert len([p for p in profile_phases(SPACE, [100.0], 1000) if p.is_check]) == len(SPACE)


def test_a_profile_is_written_read_and_understood(tmp_path: Path) -> None:
    made = device_profile('here', measured(), SPACE, {'camera': 'medium'}, {'cores': 2})
    write_profile(made, tmp_path / 'x.yaml')
    read = read_profile(tmp_path / 'x.yaml')
    times = unit_times_from_profile(read, SPACE)
    assert times.units['camera', 'large'].median == pytest.approx(0.02625, rel=0.01)
    assert times.units['radar', ''].median == pytest.approx(0.00105, rel=0.01)
    assert times.fusion.median == pytest.approx(0.00315, rel=0.01)
    assert read.stages['camera.encode'] == read.stages['camera.medium.encode']
    assert read.encode_stage('camera', 'large') == 'camera.large.encode'
    assert read.encode_stage('camera', 'unheard of') == 'camera.encode'
    assert read.details['machine'] == {'cores': 2}
    assert read.details['measured_numbers'] == 6
    half = read.details['limited_ms']['50']['camera.small.encode']
    assert half[2] == pytest.approx(21.0)
    assert len(read.details['cross_check']['configurations']) == 3


def test_whole_configurations_are_predicted_from_the_few_numbers() -> None:
    made = device_profile('here', measured(), SPACE, {}, {})
    check = made.details['cross_check']
    assert check['error'] < 0.15
    assert {row['decisions'] for row in check['configurations']} == {60}


def test_a_machine_that_scales_otherwise_is_told_as_an_error() -> None:
    flight = measured()
    for phase, samples in flight:
        if phase.is_check:
            samples.latencies = [2.0 * latency for latency in samples.latencies]
    made = device_profile('here', flight, SPACE, {}, {})
    assert made.details['cross_check']['error'] == pytest.approx(0.65, abs=0.1)


def test_what_was_too_rare_under_a_limit_is_left_out() -> None:
    flight = [
        (phase, flown(phase, 60 if phase.percent == 100.0 else 4))
        for phase in profile_phases(SPACE, [100.0, 30.0], 1)
    ]
    made = device_profile('here', flight, SPACE, {}, {})
    assert 'camera.large.encode' not in made.details['limited_ms']['30']
    assert made.details['limited_ms']['30']['radar.encode']


def test_too_few_measurements_are_refused_with_the_remedy() -> None:
    with pytest.raises(ConfigurationError, match=r'camera\.small\.encode was measured 4 times'):
        device_profile('here', measured(count=4), SPACE, {}, {})


def test_a_slow_machine_gets_a_profile_that_says_what_is_rough() -> None:
    made = device_profile('here', measured(count=7), SPACE, {}, {})
    assert made.details['measured_rarely']['camera.small.encode'] == 7
    assert unit_times_from_profile(made, SPACE).units['camera', 'small'].median > 0.0
    assert 'measured_rarely' not in device_profile('', measured(), SPACE, {}, {}).details


def test_a_phase_says_what_it_still_lacks() -> None:
    level, check = (profile_phases(SPACE, [100.0], 1)[place] for place in (0, -1))
    assert PhaseSamples().lacking(level) == {
        'camera.small.encode': 0,
        'radar.encode': 0,
        'features.transport': 0,
        'fusion': 0,
    }
    assert flown(level, 19).lacking(level).keys() == PhaseSamples().lacking(level).keys()
    assert flown(level, 20).lacking(level) == {}
    assert PhaseSamples().lacking(check) == {'decisions': 0}
    assert flown(check, 20).lacking(check) == {}


def test_what_waits_behind_an_encoder_that_cannot_follow_is_no_transport() -> None:
    flight = measured((100.0,), 0)
    for phase, samples in flight:
        if phase.parts[0].level == 'large':  # 30 Hz of 40 ms each
            samples.durations['camera.large.encode'] = [0.040] * 60
            samples.durations['features.transport'] = [0.5] * 60
    assert device_profile('', flight, SPACE, {}, {}).stages['features.transport'][-1] < 0.01


def test_where_no_encoder_can_follow_the_one_that_does_best_tells_of_transport() -> None:
    flight = measured((100.0,), 0)
    for step, (_, samples) in enumerate(flight):
        for name in [name for name in samples.durations if name.startswith('camera.')]:
            samples.durations[name] = [0.040 * (1 + step)] * 60
        samples.durations['features.transport'] = [0.1 * (1 + step)] * 60
    stages = device_profile('', flight, SPACE, {}, {}).stages
    assert stages['features.transport'] == (0.1,) * 6


def test_a_check_under_a_limit_is_not_compared_with_the_whole_machine() -> None:
    flight = measured((100.0,), 1)
    limited = [(ProfilePhase(p.parts, 30.0, is_check=True), s) for p, s in flight if p.is_check]
    assert 'cross_check' not in device_profile('', flight[:3] + limited, SPACE, {}, {}).details
