"""Promises about trained parts are judged by results of their trainings."""

from __future__ import annotations

from typing import Any

import hand_made_results as made
import pytest
from hand_made_outcomes import FACTS, better_ours, comparison

from mmedge_ros.lab.comparison.measured_results import KINDS, kind_of
from mmedge_ros.lab.comparison.plain_fields import Fields
from mmedge_ros.lab.comparison.plan import PolicyFacts, plan_comparison
from mmedge_ros.lab.comparison.targets import verdicts
from mmedge_ros.lab.comparison.verdict import Evidence
from mmedge_ros.lab.policies.settings import STATED


def judged(*reports: dict[str, Any], **more: Any) -> dict[str, dict[str, Any]]:
    results = {}
    for report in reports:
        kind = kind_of(report)
        assert kind is not None
        results[kind] = KINDS[kind].read(Fields('report', report))
    evidence = Evidence(
        more.pop('made', None) or comparison(better_ours),
        STATED,
        None,
        'mmedge evaluate',
        results=results,
        **more,
    )
    return {verdict['key']: verdict for verdict in verdicts(evidence)}


def test_what_was_not_measured_names_the_command_that_measures_it() -> None:
    result = judged(bundle='people', accuracies='the table of the bundle')
    for key, command in (
        ('gate', 'mmedge train gate people --train'),
        ('aggregation', 'mmedge train ablations'),
        ('whole_window', 'mmedge train ablations'),
        ('predictor', 'mmedge train predictor'),
    ):
        assert result[key]['verdict'] == 'not measured'
        assert result[key]['command'].startswith(command)
        assert '--results' in result[key]['why']
    assert 'chooses by the table of the bundle' in result['predictor']['why']


@pytest.mark.parametrize(('wrong', 'verdict'), [(1, 'met'), (2, 'met'), (3, 'missed')])
def test_a_gate_is_judged_by_flights_it_never_saw(wrong: int, verdict: str) -> None:
    result = judged(made.gate(wrong))['gate']
    assert result['verdict'] == verdict
    assert f'{100 * wrong / 40:.1f} %' in result['found']
    assert '240 early decisions in 6 flights it never saw' in result['found']
    assert '46.7 % that the rule allows' in result['found']
    assert ('most careful' in result['why']) == (verdict == 'missed')


def test_without_flights_of_their_own_halves_judge_the_gate() -> None:
    result = judged(made.gate(3, tested=False))['gate']
    assert result['verdict'] == 'met'
    assert result['found'].startswith('3.0 %')
    assert 'halves of the flights' in result['found']
    assert '2.00 points to spare' in result['by']


def test_without_a_certified_threshold_the_promise_is_missed_and_figures_say_why() -> None:
    result = judged(made.gate(4, certified=False))['gate']
    assert result['verdict'] == 'missed'
    assert 'no threshold is certified by 12 flights' in result['found']
    assert '0.9, has 10.0 % of 240 early decisions differ' in result['why']


def test_results_for_another_bundle_say_so() -> None:
    assert 'encoders of people' in judged(made.gate(), bundle='others')['gate']['why']
    assert 'encoders of' not in judged(made.gate(), bundle='people')['gate']['why']


@pytest.mark.parametrize(('last_unit', 'verdict'), [(40.0, 'met'), (52.0, 'missed')])
def test_aggregation_is_judged_by_networks_trained_alike(last_unit: float, verdict: str) -> None:
    result = judged(made.ablations(last_unit=last_unit))
    assert result['aggregation']['verdict'] == verdict
    assert result['whole_window']['verdict'] == 'met'
    assert '3 seeds, 2 flights to learn from, 4 to be judged on' in result['aggregation']['found']
    assert 'recall +0.000' in result['aggregation']['why']


@pytest.mark.parametrize(
    ('high', 'used', 'verdict'),
    [
        (-0.002, True, 'met'),
        (0.001, False, 'not shown'),
        (0.02, False, 'missed'),
        (-0.002, False, 'missed'),
    ],
)
def test_a_predictor_must_beat_the_table(high: float, used: bool, verdict: str) -> None:
    result = judged(made.predictor(high, used=used), accuracies='the table')['predictor']
    assert result['verdict'] == verdict
    assert ('It is used' in result['why']) == used
    assert ('So the table is used' in result['why']) != used
    assert '60 windows of 6 held-out flights' in result['found']
    assert 'The optimiser chooses by the table.' in result['why']


def test_networks_over_the_window_are_judged_in_flight_where_a_bundle_has_them() -> None:
    name = 'ours_without_aggregation'
    assert 'aggregation_in_flight' not in judged()
    plan = plan_comparison([*FACTS, PolicyFacts(name, 'no aggregation', 'does less')])
    with_it = comparison(
        lambda case, flight: 0.4 + 0.03 * flight + 0.1 * (case.policy == 'ours'), plan=plan
    )
    result = judged(made=with_it)['aggregation_in_flight']
    assert result['verdict'] == 'met'
    assert '+0.100' in result['found']
    assert 'Ours and no aggregation' in result['why']
