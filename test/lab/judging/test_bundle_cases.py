"""Which configurations an evaluation consists of."""

import pytest

from mmedge_lab.judging import EvaluationError
from mmedge_lab.judging.bundle_cases import ANY, Case, case_named, plan_cases
from mmedge_ros.core.data_types import CAMERA, RADAR

LEVELS = {CAMERA: ('small', 'medium', 'large'), RADAR: ('small', 'medium', 'large')}


def test_three_levels_and_rates_of_two_sensors_are_81_configurations_the_highest_last() -> None:
    cases = plan_cases(LEVELS)
    assert len(set(cases)) == len(cases) == 81
    assert cases[-1] == Case(30.0, 'large', 20.0, 'large')
    single = plan_cases({CAMERA: ('small',), RADAR: ()})
    assert len(single) == 9
    assert {case.radar_level for case in single} == {ANY}


def test_levels_may_be_chosen_and_their_order_is_that_of_cost() -> None:
    known = {CAMERA: ('large', 'small', 'medium'), RADAR: ('large', 'small')}
    assert {case.camera_level for case in plan_cases(known, ['large'])} == {'large'}
    levels = [case.camera_level for case in plan_cases(known)]
    assert list(dict.fromkeys(levels)) == ['small', 'medium', 'large']
    # A level that one sensor alone has leaves the other its highest.
    own = plan_cases({CAMERA: ('small', 'huge'), RADAR: ('small', 'large')}, ['huge'])
    assert {(case.camera_level, case.radar_level) for case in own} == {('huge', 'large')}


def test_an_unknown_level_is_named_with_the_nearest() -> None:
    with pytest.raises(EvaluationError, match="no level 'larg'; the nearest is 'large'"):
        plan_cases(LEVELS, ['larg'])
    with pytest.raises(EvaluationError, match="no level 'large'"):
        plan_cases({CAMERA: (), RADAR: ()}, ['large'])


def test_a_case_is_read_from_its_name() -> None:
    case = Case(7.5, 'a-b', 20.0, ANY)
    assert case_named(case.name) == case
    assert case_named('fusion') is None
