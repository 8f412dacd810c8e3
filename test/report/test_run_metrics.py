"""Statistics of latency and energy with answers known beforehand."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hand_made_units import BEGIN_NS, at, features, unit

from mmedge_ros.core.data_types import CAMERA, NS_PER_S, RADAR, Decision, StageTiming, UnitFeatures
from mmedge_ros.core.run_record import RunRecord
from mmedge_ros.monitoring.system_state import SystemState
from mmedge_ros.report.run_metrics import (
    computer_watts,
    critical_age_ms,
    energy_report,
    latency_metrics,
    quantiles_of,
    stage_quantiles,
    watts_over_time,
)

MS = 1_000_000


def decision(latency_ms, end_ms=1000, ages_ms=None, trail=()):
    published_ns = (end_ms + latency_ms) * MS
    newest = {m: published_ns - age * MS for m, age in (ages_ms or {}).items()}
    return Decision(
        end_ms * MS, end_ms * MS, 'base_link', (), newest, trail=trail, published_ns=published_ns
    )


def stages(*parts):
    trail, begin = [], 0
    for name, duration_ms in parts:
        trail.append(StageTiming(name, begin, begin + duration_ms * MS))
        begin = trail[-1].end_ns
    return tuple(trail)


def test_quantiles_are_interpolated_and_the_mean_and_maximum_stand_beside_them():
    result = quantiles_of([1.0, 2.0, 3.0, 4.0, 105.0])
    assert (result.p50, result.mean, result.max) == (3.0, 23.0, 105.0)
    assert result.p95 == pytest.approx(4.0 + 0.8 * 101.0)


def test_values_that_are_not_finite_are_left_out_and_nothing_measured_gives_nan():
    assert quantiles_of([math.nan, 2.0, math.inf]).max == 2.0
    assert all(math.isnan(value) for value in (quantiles_of([]).p50, quantiles_of([]).max))


def test_the_warm_up_is_left_out_of_latency_age_and_misses(empty_run):
    slow = [decision(90, ages_ms={'camera': 200}) for _ in range(3)]
    quick = [decision(4, ages_ms={'camera': 40}) for _ in range(5)]
    result = latency_metrics(replace(empty_run, decisions=[*slow, *quick], warmup=3))
    assert result.decisions == 5
    assert result.latency_ms.max == pytest.approx(4.0)
    assert result.age_ms['camera'].max == pytest.approx(40.0)
    assert result.deadline_miss_rate == 0.0


def test_a_decision_after_the_deadline_is_a_miss_and_one_at_it_is_none(empty_run):
    early = decision(-20)
    record = replace(empty_run, deadline=0.05, decisions=[decision(50), decision(51), early])
    result = latency_metrics(record)
    assert result.deadline_miss_rate == pytest.approx(1 / 3)
    assert result.latency_ms.mean == pytest.approx(27.0)


def test_a_modality_that_was_never_used_has_an_age_of_nan(empty_run):
    record = replace(empty_run, decisions=[decision(4, ages_ms={'camera': 30})])
    result = latency_metrics(record)
    assert list(result.age_ms) == ['camera', 'radar']
    assert math.isnan(result.age_ms['radar'].p50)


def test_a_warm_up_longer_than_the_run_leaves_nothing(empty_run):
    result = latency_metrics(replace(empty_run, decisions=[decision(4)], warmup=9))
    assert result.decisions == 0
    assert math.isnan(result.deadline_miss_rate)


def test_stages_stand_in_the_order_of_the_path():
    trails = [stages(('queue', 1), ('encode', 10), ('wait', 2)), stages(('queue', 3), ('wait', 4))]
    result = stage_quantiles(trails)
    assert list(result) == ['queue', 'encode', 'wait']
    assert (result['queue'].p50, result['encode'].p50, result['wait'].p50) == (2.0, 10.0, 3.0)


def test_stages_of_which_each_trail_has_one_stand_in_one_place_of_the_path():
    encoded = stages(('acquisition', 30), ('transport', 4), ('encode', 10), ('fusion', 1))
    followed = stages(('acquisition', 1), ('transport', 1), ('follow', 2), ('fusion', 1))
    result = stage_quantiles([encoded, encoded, followed])
    assert list(result) == ['acquisition', 'transport', 'follow', 'encode', 'fusion']


def test_a_stage_that_occurs_twice_counts_with_its_sum():
    trail = stages(('transport', 2), ('encode', 10), ('transport', 3))
    result = stage_quantiles([trail])
    assert result['transport'].p50 == 5.0
    assert sum(q.p50 for q in result.values()) == 15.0


def test_the_stages_of_each_modality_come_from_its_units(empty_run):
    trail = stages(('transport', 2), ('encode', 10))
    unit = UnitFeatures('camera', 0, 0, 2 * MS, 'camera', trail)
    critical = decision(4, trail=stages(('encode', 12)))
    result = latency_metrics(replace(empty_run, decisions=[critical], features=[unit]))
    assert result.stages_ms['encode'].p50 == 12.0
    assert result.stages_ms['camera.encode'].p50 == 10.0


def test_units_of_the_warm_up_are_left_out_of_the_stages(empty_run):
    early = UnitFeatures('camera', 0, 0, 900 * MS, 'camera', stages(('encode', 99)))
    later = UnitFeatures('camera', 1, 0, 1010 * MS, 'camera', stages(('encode', 7)))
    record = replace(
        empty_run, decisions=[decision(4), decision(4, 1100)], features=[early, later], warmup=1
    )
    assert latency_metrics(record).stages_ms['camera.encode'].max == 7.0


def test_the_critical_age_is_the_length_of_the_trail():
    assert critical_age_ms(decision(4, trail=stages(('a', 3), ('b', 4)))) == 7.0
    assert math.isnan(critical_age_ms(decision(4)))


def worked(modality: str, begin_ms: float, lasted_ms: float, stage: str = 'encode'):
    made = features(unit(begin_ms, modality))
    trail = (StageTiming('queue', at(begin_ms - 1), at(begin_ms)),)
    work = StageTiming(stage, at(begin_ms), at(begin_ms + lasted_ms))
    return replace(made, trail=(*trail, work))


@pytest.fixture
def record() -> RunRecord:
    made = RunRecord('a flight', 'live', 0.05, 0.5, 0.1, duration=10.0)
    made.features = [
        worked(CAMERA, 100, 250),
        worked(CAMERA, 1200, 500),
        worked(CAMERA, 1800, 5, 'follow'),
        worked(RADAR, 300, 100),
    ]
    trail = (StageTiming('window', at(90), at(100)), StageTiming('fusion', at(100), at(150)))
    decision = Decision(at(100), at(100), 'map', (), {}, trail=trail)
    made.decisions = [decision, replace(decision, trail=())]
    return made


def test_the_model_gives_each_part_four_watts_while_it_works_and_seven_to_idling(
    record: RunRecord,
) -> None:
    report = energy_report(record)
    assert report['model_j'] == pytest.approx(
        {'camera encoder': 3.02, 'radar encoder': 0.4, 'fusion': 0.2, 'idle': 70.0}
    )
    assert 'not measured' in report['model']
    assert np.isnan(list(report['measured_j'].values())).all()


def test_rails_that_are_measured_are_added_up_over_time(record: RunRecord) -> None:
    states = [(0, 5.0, 100.0), (1, 7.0, np.nan), (2, np.nan, 120.0), (3, 9.0, np.nan)]
    record.states = [
        (BEGIN_NS + second * NS_PER_S, SystemState(15.0, power=battery, module_power=module))
        for second, module, battery in states
    ]
    # Each holds until the next that is known: 5 W for a second and 7 W for two.
    assert energy_report(record)['measured_j'] == {'computer': 19.0, 'battery': 200.0}


def test_a_long_silence_of_the_monitor_is_not_filled(record: RunRecord) -> None:
    record.states = [
        (BEGIN_NS + second * NS_PER_S, SystemState(module_power=2.0)) for second in (0, 100)
    ]
    assert energy_report(record)['measured_j']['computer'] == 10.0


def test_watts_are_those_of_each_second(record: RunRecord) -> None:
    middles, watts = watts_over_time(record, BEGIN_NS)
    assert middles.tolist() == [0.5, 1.5]
    assert watts['camera encoder'] == pytest.approx([1.0, 2.02])
    assert watts['fusion'] == pytest.approx([0.2, 0.0])


def test_a_clock_that_is_years_ahead_does_not_fill_the_memory(record: RunRecord) -> None:
    record.features[0] = worked(CAMERA, 1e12, 10)
    assert len(watts_over_time(record, BEGIN_NS)[0]) == 86_400


def test_what_the_whole_drone_draws_is_not_taken_for_the_computers() -> None:
    assert computer_watts(SystemState(module_power=8.0, power=200.0, voltage=15.0)) == 8.0
    assert np.isnan(computer_watts(SystemState(power=200.0, voltage=15.0)))
    assert computer_watts(SystemState(power=8.0)) == 8.0
