"""Promises about trained parts are judged by results of their trainings."""

from __future__ import annotations

from typing import Any

import hand_made_results as made
import pytest
from hand_made_outcomes import FACTS, better_ours, comparison

from mmedge_lab.policies.settings import STATED
from mmedge_lab.rivals.comparison.measured_results import KINDS, kind_of
from mmedge_lab.rivals.comparison.plain_fields import Fields
from mmedge_lab.rivals.comparison.plan import PolicyFacts, plan_comparison
from mmedge_lab.rivals.comparison.targets import verdicts
from mmedge_lab.rivals.comparison.verdict import Evidence


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
        'mmedge lab evaluate',
        results=results,
        **more,
    )
    return {verdict['key']: verdict for verdict in verdicts(evidence)}


def test_what_was_not_measured_names_the_command_that_measures_it() -> None:
    result = judged(bundle='people', accuracies='the table of the bundle')
    for key, command in (
        ('gate', 'mmedge lab train gate people --train'),
        ('aggregation', 'mmedge lab train ablations'),
        ('whole_window', 'mmedge lab train ablations'),
        ('predictor', 'mmedge lab train predictor'),
    ):
        assert result[key]['verdict'] == 'not measured'
        assert result[key]['command'].startswith(command)
        assert '--results' in result[key]['why']
    assert 'chooses by the table of the bundle' in result['predictor']['why']


@pytest.mark.parametrize(
    ('lost', 'saved', 'verdict'),
    [(0.004, 0.2, 'met'), (0.004, 0.05, 'missed'), (0.02, 0.2, 'missed')],
)
def test_a_gate_is_judged_by_what_it_loses_for_what_it_saves(
    lost: float, saved: float, verdict: str
) -> None:
    result = judged(made.gate(lost, saved))['gate']
    assert result['verdict'] == verdict
    assert f'{100 * saved:.1f} %' in result['found']
    assert 'in 6 flights it never saw' in result['found']
    assert f'{100 * lost + 0.025:.2f} (' in result['found']
    assert 'less that of a lower rate' in result['why']


def test_flights_that_certified_a_gate_do_not_judge_it() -> None:
    result = judged(made.gate(tested=False))['gate']
    assert result['verdict'] == 'missed'
    assert 'the flights that certified it' in result['found']


def test_without_a_certified_threshold_the_target_is_missed_and_figures_say_why() -> None:
    result = judged(made.gate(certified=False))['gate']
    assert result['verdict'] == 'missed'
    assert 'No threshold is certified by 12 flights' in result['why']


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
def test_a_predictor_must_choose_better_than_the_table(
    high: float, used: bool, verdict: str
) -> None:
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
