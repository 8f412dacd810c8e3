"""What is compared is what was asked for, and nothing that cannot be."""

from __future__ import annotations

import pytest
from hand_made_outcomes import FACTS

from mmedge_lab.judging import EvaluationError
from mmedge_lab.rivals.comparison.plan import ComparisonCase, plan_comparison


def test_shares_and_limits_vary_one_at_a_time_from_the_base() -> None:
    plan = plan_comparison(FACTS, 'ours', '', '50ms,100ms', '100,64,50')
    assert plan.cases == (
        ComparisonCase('ours', 'sample', 100.0, 50.0),
        ComparisonCase('ours', 'stream', 100.0, 50.0),
        ComparisonCase('ours', 'stream', 64.0, 50.0),
        ComparisonCase('ours', 'stream', 50.0, 50.0),
        ComparisonCase('ours', 'sample', 100.0, 100.0),
        ComparisonCase('ours', 'stream', 100.0, 100.0),
    )
    assert plan.base('ours') == ComparisonCase('ours', 'stream', 100.0, 50.0)


def test_without_the_stream_protocol_the_sample_protocol_is_the_headline() -> None:
    plan = plan_comparison(FACTS, 'ours', 'sample', '50ms', '100,50')
    assert plan.protocol == 'sample'
    assert {case.protocol for case in plan.cases} == {'sample'}
    assert not plan.has('ours', 'stream')


def test_ours_without_a_part_is_no_rival() -> None:
    plan = plan_comparison(FACTS)
    assert [facts.name for facts in plan.rivals] == ['blocking', 'non_blocking']
    assert [facts.name for facts in plan.ablations] == ['ours_without_skipping']


def test_keys_of_cases_are_names_of_files_and_all_different() -> None:
    cases = plan_comparison(FACTS, '', '', '50ms,62.5ms', '100,33.3').cases
    keys = [case.key for case in cases]
    assert len(set(keys)) == len(cases)
    assert all('/' not in key and ' ' not in key for key in keys)


@pytest.mark.parametrize(
    ('options', 'sentence'),
    [
        (('our', '', '50ms', '100'), "no policy 'our'; the nearest is 'ours'"),
        (('', 'streem', '50ms', '100'), "no protocol 'streem'; the nearest is 'stream'"),
        (('', '', '0ms', '100'), "'0ms' is no latency limit"),
        (('', '', 'nan', '100'), 'no latency limit'),
        (('', '', '1e9', '100'), 'no latency limit'),
        (('', '', 'soon', '100'), "'soon' is no latency limit"),
        (('', '', ',', '100'), '--limits names no value'),
        (('', '', '50ms', '101'), "'101' is no share"),
        (('', '', '50ms', '0'), "'0' is no share"),
        (('', '', '50ms', 'half'), "'half' is no share"),
    ],
)
def test_what_cannot_be_is_one_sentence(options: tuple[str, str, str, str], sentence: str) -> None:
    with pytest.raises(EvaluationError, match=sentence):
        plan_comparison(FACTS, *options)
