"""Verdicts follow from figures; what was not run is not measured."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hand_made_outcomes import FACTS, Worth, better_ours, comparison

from mmedge_lab.judging.flight_bootstrap import Estimate
from mmedge_lab.policies.settings import STATED
from mmedge_lab.rivals.comparison.measured_results import LatencyResult
from mmedge_lab.rivals.comparison.plan import ComparisonCase, PolicyFacts, plan_comparison
from mmedge_lab.rivals.comparison.report import Comparison
from mmedge_lab.rivals.comparison.streaming_target import alike_share
from mmedge_lab.rivals.comparison.targets import verdicts
from mmedge_lab.rivals.comparison.verdict import Evidence

ROOT = Path(__file__).resolve().parents[4]
OVERHEADS = {
    'optimizer_us': {
        '2401': {
            'fresh': {'p50': 700.0, 'processor_p50': 650.0},
            'equal_to_exhaustive': True,
        }
    },
    'gate_us': {
        name: {'p50': 20.0, 'p95': 30.0}
        for name in ('whole', 'asking', 'taking in', 'question', 'network')
    },
    'gate_is_trained': False,
    'aggregation_us': None,
}


def judged(made: Comparison, overheads: Any = OVERHEADS, **more: Any) -> dict[str, dict[str, Any]]:
    result = verdicts(Evidence(made, STATED, overheads, 'mmedge lab evaluate SET', **more))
    assert len({verdict['key'] for verdict in result}) == len(result)
    return {verdict['key']: verdict for verdict in result}


def streaming(worth: Worth) -> dict[str, Any]:
    return judged(comparison(worth))['streaming']


def test_better_than_every_rival_beyond_doubt_is_met() -> None:
    verdict = streaming(better_ours)
    assert verdict['verdict'] == 'met'
    assert 'better than 2 of 2' in verdict['found']
    assert '+0.100' in verdict['by']


def test_worse_than_one_rival_is_missed_and_the_miss_is_explained_by_figures() -> None:
    verdict = streaming(lambda case, flight: 0.6 if case.policy == 'non_blocking' else 0.5)
    assert verdict['verdict'] == 'missed'
    assert '-0.100' in verdict['by']
    assert 'non blocking: mean IoU at state times 0.500 and 0.600' in verdict['why']
    assert 'median latency' in verdict['why']


def test_better_by_chance_alone_is_not_shown() -> None:
    def worth(case: ComparisonCase, flight: int) -> float:
        return 0.5 + (0.2 if flight == 0 else -0.02) * (case.policy == 'ours')

    assert streaming(worth)['verdict'] == 'not shown'


def test_each_share_of_the_processor_has_a_verdict() -> None:
    def worth(case: ComparisonCase, flight: int) -> float:
        return better_ours(case, flight) - 0.3 * (case.policy == 'ours' and case.share == 50.0)

    result = judged(comparison(worth))
    assert result['streaming']['verdict'] == 'met'
    assert result['streaming_50']['verdict'] == 'missed'
    assert 'at 50 % of the processor' in result['streaming_50']['target']
    assert '-0.200' in result['streaming_50']['by']


@pytest.mark.parametrize('luck', [0.0, 1e-4, -1e-4])
def test_a_tie_is_neither_better_nor_worse_and_says_that_both_did_the_same(luck: float) -> None:
    def worth(case: ComparisonCase, flight: int) -> float:
        signs = (-1.0 if flight % 2 else 1.2) if case.policy == 'ours' else 0.0
        rival = 0.1 if case.policy == 'blocking' else 0.0
        return 0.4 + 0.05 * flight + luck * signs - rival

    verdict = streaming(worth)
    assert verdict['verdict'] == 'not shown'
    assert 'better than 1 of 2, a tie with non blocking' in verdict['found']
    assert 'In 100 % of the windows both had the camera at the same rate' in verdict['why']
    assert 'windows late or dropped 0.0 % and 0.0 %' in verdict['why']
    assert 'all that is asked for fits' in verdict['why']


def test_a_tie_of_late_policies_is_not_said_to_be_because_everything_fits() -> None:
    made = comparison(lambda case, flight: 0.4, latency=lambda case: 80.0)
    verdict = judged(made)['streaming']
    assert 'a tie with' in verdict['found']
    assert 'fits' not in verdict['why']


def test_it_is_said_at_which_shares_and_limits_the_headline_is_shown() -> None:
    def worth(case: ComparisonCase, flight: int) -> float:
        return better_ours(case, flight) - 0.1 * (case.policy == 'ours' and case.share == 100.0)

    result = judged(comparison(worth))
    assert [result[k]['verdict'] for k in ('streaming', 'streaming_50', 'streaming_100ms')] == [
        'not shown',
        'met',
        'not shown',
    ]
    assert result['streaming']['why'].endswith(
        'It is shown at 50 % of the processor and 50 ms, and not at 100 % of the processor and '
        '50 ms, 100 % of the processor and 100 ms.'
    )
    nowhere = judged(comparison(lambda case, flight: 0.5))['streaming']
    assert 'shown at none' in nowhere['why']


def test_a_rival_as_good_at_another_time_is_no_tie() -> None:
    made = comparison(lambda case, flight: 0.5, latency=lambda case: 5.0 + len(case.policy))
    verdict = judged(made)['streaming']
    assert verdict['verdict'] == 'not shown'
    assert 'tie' not in verdict['found'] + verdict['why']
    assert 'median latency' in verdict['why']


def test_windows_at_another_level_or_rate_are_not_the_same() -> None:
    made = comparison(better_ours)
    ours, other = made.plan.base('ours'), made.plan.base('non_blocking')
    assert alike_share(made, ours, other) == 1.0
    changed = {
        **made.outcomes,
        ours: [replace(o, levels=('small', *o.levels[1:])) for o in made.outcomes[ours]],
    }
    for outcome in made.outcomes[other]:
        outcome.column('rate_camera')[1] = 10.0
    assert alike_share(replace(made, outcomes=changed), ours, other) == pytest.approx(0.5)


PHASE = {'late': 1, 'regret_at_end': 0.4, 'feasible': True}
STEPPED = {
    'limit_ms': 120.0,
    'decisions': 60,
    'names': ['H', 'C50'],
    'phases': [PHASE, PHASE | {'late': 3}],
    'static_phases': [PHASE | {'late': 0}, PHASE | {'late': 60}],
    'command': 'mmedge lab bench contention --limits 120ms',
}


@pytest.mark.parametrize(
    ('change', 'verdict'),
    [({}, 'met'), ({'late': 6}, 'missed'), ({'regret_at_end': 2.5}, 'missed')],
)
def test_a_contention_step_is_judged_by_its_worst_phase(
    change: dict[str, Any], verdict: str
) -> None:
    stepped = STEPPED | {'phases': [PHASE, PHASE | {'late': 3} | change]}
    result = judged(comparison(better_ours), contention=stepped)['contention']
    assert result['verdict'] == verdict
    assert 'late of 60 in H, C50' in result['found']
    assert '0/60 late' in result['why']


def test_an_ablation_is_no_rival() -> None:
    verdict = streaming(
        lambda case, flight: {'ours_without_skipping': 0.9, 'ours': 0.5}.get(case.policy, 0.3)
    )
    assert verdict['verdict'] == 'met'


@pytest.mark.parametrize(
    ('ours_ms', 'verdict'), [(5.0, 'met'), (16.0, 'met'), (30.0, 'missed'), (200.0, 'missed')]
)
def test_latency_is_judged_by_the_floor_of_one_encoding_and_its_way(
    ours_ms: float, verdict: str
) -> None:
    # 10 ms to encode and 1.4 ms transport: 1.5 times that is 17.1 ms, p95 2.85 ms above.
    made = comparison(better_ours, latency=lambda case: ours_ms - 2.85)
    result = judged(made)['latency']
    assert result['verdict'] == verdict
    assert 'one encoding and its way (11.4 ms)' in result['found']


def test_the_floor_beside_a_latency_is_that_of_the_same_windows() -> None:
    made = comparison(better_ours, latency=lambda case: 8.5)
    # Latencies of 8.5 to 11.5 ms, and floors of six tenths of them.
    why = judged(made)['latency']['why']
    assert 'mean 6.0 ms, p95 6.9 ms, beside 10.0 and 11.5 ms' in why
    assert 'mean 6.0 ms' in judged(made)['blocking']['why']


@pytest.mark.parametrize(
    ('key', 'worth', 'verdict'),
    [
        ('streaming_level', 0.55, 'met'),
        ('streaming_level', 0.52, 'missed'),
        ('mean_iou_20px', 0.66, 'met'),
        ('mean_iou_20px', 0.62, 'missed'),
        ('mean_iou_40px', 0.69, 'missed'),
        ('idf1', 0.71, 'met'),
        ('mota', 0.55, 'missed'),
    ],
)
def test_each_goal_of_accuracy_is_judged_and_a_missed_one_is_called_missed(
    key: str, worth: float, verdict: str
) -> None:
    facts = (*FACTS, PolicyFacts('pipelined_max', 'pipelined, max', 'does the most'))
    plan = plan_comparison(facts, '', 'stream')
    result = judged(comparison(lambda case, flight: worth, plan=plan))[key]
    assert result['verdict'] == verdict
    first = {'mean_iou_20px': 0.60, 'mean_iou_40px': 0.70}.get(key)
    assert ('The first goal' in result['why']) == (first is not None)
    if first is not None:
        assert ('met.' in result['why']) == (worth >= first)


@pytest.mark.parametrize(('spread', 'verdict'), [(0.5, 'met'), (0.0, 'missed')])
def test_nees_is_met_where_the_interval_contains_four(spread: float, verdict: str) -> None:
    made = comparison(lambda case, flight: 0.5 + spread * (flight % 2))
    for number, outcome in enumerate(made.outcomes[made.plan.base('ours')]):
        outcome.totals['nees'] = 390.0 if number % 2 and spread else 410.0
    assert judged(made)['nees']['verdict'] == verdict


def test_what_only_other_benches_measure_is_listed_with_their_commands() -> None:
    result = judged(comparison(better_ours))
    live = ('drift', 'pace', 'steps_live', 'release_live', 'changes_live', 'ids')
    for key in (*live, 'blocking_live', 'cached_live'):
        assert result[key]['verdict'] == 'not measured'
        assert result[key]['command'].startswith('mmedge ')
    pages = [result[key]['why'].split()[-1].rstrip('.') for key in live]
    assert all((ROOT / page).is_file() for page in pages)


def latency(below: float, cached: float) -> LatencyResult:
    return LatencyResult(
        *('mmedge lab bench latency F', 'a flight', 9.0, 20.0, 10.0),
        floor=6.0,
        blocking=260.0,
        cached=55.0,
        below_blocking=Estimate(below, below - 0.01, below + 0.01),
        below_cached=Estimate(cached, cached - 0.01, cached + 0.01),
        cached_allows=0.89,
        dropped=0.6,
    )


@pytest.mark.parametrize(
    ('below', 'cached', 'verdicts_'),
    [(0.96, 0.82, ['met', 'met']), (0.84, 0.79, ['missed', 'missed'])],
)
def test_live_latency_is_judged_by_real_graphs(
    below: float, cached: float, verdicts_: list[str]
) -> None:
    result = judged(comparison(better_ours), results={'latency': latency(below, cached)})
    judged_live = [result[key] for key in ('blocking_live', 'cached_live')]
    assert [verdict['verdict'] for verdict in judged_live] == verdicts_
    assert 'the floor allows 89.0 %' in judged_live[1]['found']
    assert 'dropped 60.0 % of its windows' in judged_live[0]['why']
    assert judged_live[0]['command'] == 'mmedge lab bench latency F'


def test_blocking_is_compared_with_each_window_unloaded() -> None:
    made = comparison(better_ours, latency=lambda case: 98.5 if case.policy == 'blocking' else 8.5)
    result = judged(made)['blocking']
    assert result['verdict'] == 'met'
    assert '90.0 %' in result['found']
    slow = comparison(
        better_ours, latency=lambda case: 98.5 if case.policy == 'blocking' else 28.5
    )
    assert judged(slow)['blocking']['verdict'] == 'missed'
    assert '15.00 points short' in judged(slow)['blocking']['by']


def test_slow_or_wrong_deciding_is_missed() -> None:
    made = comparison(better_ours)
    assert judged(made)['optimizer']['verdict'] == 'met'
    entry = OVERHEADS['optimizer_us']['2401']
    for change in (
        {'fresh': {'p50': 1500.0, 'processor_p50': 1.0}},
        {'equal_to_exhaustive': False},
    ):
        other = {**OVERHEADS, 'optimizer_us': {'2401': {**entry, **change}}}
        assert judged(made, other)['optimizer']['verdict'] == 'missed'


@pytest.mark.parametrize(('whole', 'verdict'), [(99.0, 'met'), (206.0, 'missed')])
def test_asking_the_gate_costs_all_that_is_done_for_it(whole: float, verdict: str) -> None:
    times = {**OVERHEADS['gate_us'], 'whole': {'p50': whole, 'p95': 500.0}}
    result = judged(comparison(better_ours), {**OVERHEADS, 'gate_us': times})['gate_time']
    assert result['verdict'] == verdict
    assert f'{whole:.0f} us' in result['found']
    assert '20 us are taking in' in result['why']
    assert 'Asking alone takes 20' in result['why']


def test_what_was_not_run_is_not_measured_and_says_what_it_needs() -> None:
    plan = plan_comparison(FACTS, 'non_blocking', 'stream')
    result = judged(comparison(better_ours, plan=plan), None)
    for key in ('streaming', 'latency', 'blocking', 'calls', 'optimizer', 'contention', 'gate'):
        assert result[key]['verdict'] == 'not measured', key
        assert result[key]['why'], key
        assert result[key]['found'] == '–'


def test_encoding_a_unit_twice_is_missed() -> None:
    made = comparison(better_ours)
    case = made.plan.base('ours')
    for outcome in made.outcomes[case]:
        outcome.totals['calls_camera'] *= 2.0
    assert judged(made)['calls']['verdict'] == 'missed'
    assert judged(comparison(better_ours))['calls']['verdict'] == 'met'
