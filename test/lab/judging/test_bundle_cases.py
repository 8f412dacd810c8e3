"""Which cases an evaluation consists of."""

import pytest

from mmedge_lab.judging import EvaluationError
from mmedge_lab.judging.bundle_cases import (
    CAMERA_ONLY,
    FUSION,
    RADAR_ONLY,
    plan_cases,
)
from mmedge_ros.data_types import CAMERA, RADAR

LEVELS = {CAMERA: ('small', 'medium', 'large'), RADAR: ('small', 'medium', 'large')}


def test_three_levels_and_rates_of_two_sensors_are_81_configurations() -> None:
    plan = plan_cases(LEVELS, learned_fusion=True)
    assert len(plan.grid) == 81
    assert len(set(plan.cases)) == len(plan.cases) == 81 + 4
    assert len({case.key for case in plan.cases}) == len(plan.cases)


def test_strategies_are_compared_at_full_rates_and_the_highest_level() -> None:
    plan = plan_cases(LEVELS, learned_fusion=True, every_configuration=False)
    assert plan.full[1:] == (30.0, 'large', 20.0, 'large')
    assert {case[1:] for case in plan.cases} == {plan.full[1:]}
    assert {case.strategy for case in plan.cases} == {
        'fusion',
        'decision_fusion',
        'camera_only',
        'detector_only',
        'radar_only',
    }
    # What is wanted first is done first.
    assert plan.cases[0] == plan.full


def test_a_bundle_without_fusion_network_has_no_strategy_that_leaves_it_out() -> None:
    plan = plan_cases({CAMERA: ('small',), RADAR: ()})
    assert plan.strategies == (FUSION, CAMERA_ONLY, RADAR_ONLY)
    assert len(plan.grid) == 9
    assert plan.full.radar_level == 'any'


def test_levels_may_be_chosen_and_their_order_is_that_of_cost() -> None:
    plan = plan_cases({CAMERA: ('large', 'small', 'medium'), RADAR: ('large', 'small')}, ['large'])
    assert len(plan.grid) == 9
    assert {case.camera_level for case in plan.grid} == {'large'}
    every = plan_cases({CAMERA: ('large', 'small', 'medium'), RADAR: ()})
    assert every.levels[CAMERA] == ('small', 'medium', 'large')


def test_a_level_only_one_sensor_has_leaves_the_other_its_highest() -> None:
    plan = plan_cases({CAMERA: ('small', 'huge'), RADAR: ('small', 'large')}, ['huge'])
    assert plan.levels == {CAMERA: ('huge',), RADAR: ('large',)}


def test_an_unknown_level_is_named_with_the_nearest() -> None:
    with pytest.raises(EvaluationError, match="no level 'larg'; the nearest is 'large'"):
        plan_cases(LEVELS, ['larg'])
    with pytest.raises(EvaluationError, match="no level 'large', and none at all"):
        plan_cases({CAMERA: (), RADAR: ()}, ['large'])
