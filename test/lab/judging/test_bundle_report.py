"""What a report says of figures that are known beforehand."""

import json

import pytest
from hand_made_evaluation import evaluation

from mmedge_lab.judging.bundle_cases import Case
from mmedge_lab.judging.bundle_report import evaluation_report, monotony

_WORTH = {'fusion': 0.0, 'decision_fusion': -0.03, 'detector_only': -0.05, 'radar_only': -0.4}


def worth(case: Case, flight: int) -> float:
    """Better with every rate and level; camera only worse at night and equal by day."""
    night = flight % 2
    value = 0.6 + 0.02 * flight + 0.001 * case.camera_rate + 0.0005 * case.radar_rate
    value += 0.02 * ('small', 'medium', 'large').index(case.camera_level)
    value += 0.01 * ('small', 'medium', 'large').index(case.radar_level)
    if case.strategy == 'camera_only':
        return value - 0.05 * night
    return value + _WORTH[case.strategy]


@pytest.fixture(scope='module')
def report() -> dict:
    return evaluation_report(evaluation(worth))


def claim(report: dict, words: str) -> dict:
    return next(row for row in report['claims'] if row['claim'] == words)


def test_a_report_can_be_written_as_json(report: dict) -> None:
    assert json.loads(json.dumps(report, allow_nan=False)) == report


def test_every_configuration_is_in_it_once(report: dict) -> None:
    rows = report['configurations']
    axes = ('camera_rate', 'camera_level', 'radar_rate', 'radar_level')
    assert len({tuple(row[axis] for axis in axes) for row in rows}) == len(rows) == 81
    assert rows[-1]['mean_iou']['value'] == max(row['mean_iou']['value'] for row in rows)


def test_claims_say_where_fusion_is_better(report: dict) -> None:
    night = claim(report, 'better than camera only at night')
    assert night['flights'] == 4
    assert night['mean_iou']['value'] == pytest.approx(0.05)
    assert night['mean_iou']['holds'] is True
    easy = claim(report, 'not worse than camera only in easy daylight')
    assert easy['mean_iou']['value'] == pytest.approx(0.0)
    assert easy['mean_iou']['holds'] is True
    assert claim(report, 'better than radar only, overall')['mean_iou']['holds'] is True


def test_claims_that_do_not_hold_say_so() -> None:
    def worse(case: Case, flight: int) -> float:
        return 0.5 + (0.05 if case.strategy == 'camera_only' else 0.0)

    result = evaluation_report(evaluation(worse, every_configuration=False))
    for words in (
        'better than camera only at night',
        'not worse than camera only in easy daylight',
    ):
        assert claim(result, words)['mean_iou']['holds'] is False


def test_over_one_flight_nothing_is_claimed() -> None:
    result = evaluation_report(evaluation(worth, flights=1, every_configuration=False))
    assert {row['mean_iou']['holds'] for row in result['claims']} == {None}


def test_targets_are_compared_with_the_fullest_configuration(report: dict) -> None:
    assert [(t['figure'], t['reached']) for t in report['targets']] == [
        ('mean_iou_20px', True),
        ('mean_iou_40px', True),
    ]
    full = report['strategies']['fusion']['overall']['mean_iou_20px']
    assert report['targets'][0]['value'] == full['value']


def test_figures_that_rise_with_every_step_are_monotone(report: dict) -> None:
    result = report['monotony']['mean_iou']
    assert result['steps'] == 4 * 2 * 27
    assert result['rises'] == result['steps']
    assert result['monotone_within_noise'] is True
    axis = [row['mean_iou']['value'] for row in report['axes']['camera_level']]
    assert axis == sorted(axis)


def test_a_level_that_makes_things_worse_is_found() -> None:
    def spoiled(case: Case, flight: int) -> float:
        return worth(case, flight) - 0.1 * (case.radar_level == 'large')

    result = monotony(evaluation(spoiled), 'mean_iou')
    assert result['monotone_within_noise'] is False
    assert len(result['falls']) == 27
    assert {fall['axis'] for fall in result['falls']} == {'radar_level'}
    assert result['falls'][0]['change']['value'] == pytest.approx(-0.09)


def test_one_configuration_alone_has_no_steps() -> None:
    result = evaluation_report(evaluation(worth, every_configuration=False))
    assert result['monotony'] is None
    assert len(result['configurations']) == 1


def test_strata_are_in_an_order_for_people(report: dict) -> None:
    strata = report['strategies']['fusion']['strata']
    assert list(strata) == ['size', 'range', 'light', 'claims']
    assert list(strata['light']) == ['day', 'night']
