"""Latency statistics with answers known beforehand."""

import math
from dataclasses import replace

import pytest

from mmedge_ros.core.data_types import Decision, StageTiming, UnitFeatures
from mmedge_ros.report.latency_metrics import (
    critical_age_ms,
    latency_metrics,
    quantiles_of,
    stage_quantiles,
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
