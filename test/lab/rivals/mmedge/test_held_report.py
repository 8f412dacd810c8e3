"""Sums of fixed configurations and of the optimiser become figures and judgements."""

from __future__ import annotations

import pytest

from mmedge_lab.judging import EvaluationError
from mmedge_lab.rivals.mmedge.held_bench import conditions_of
from mmedge_lab.rivals.mmedge.held_report import (
    Condition,
    Flights,
    best_held,
    condition_report,
    judged,
)

ALONE, STEPS = Condition('100', (100.0,)), Condition('steps', (100.0, 30.0, 100.0))


def sums(iou: float, late: float = 0.0, **more: float) -> dict[str, float]:
    return {'streamed': 100.0, 'overlap': 100.0 * iou, 'windows': 100.0, 'late': late, **more}


def flown(full: float, starved: float, changes: float = 0.0, release: float = 1.0) -> Flights:
    """Three flights; `fine` is the better one of a whole machine, `plain` of a starved one."""
    held = {
        'fine': {'100': [sums(0.6)] * 3, '30': [sums(0.3, late=60.0)] * 3},
        'plain': {'100': [sums(0.5)] * 3, '30': [sums(0.45)] * 3},
    }
    alone = sums(full, changes=changes, seconds=10.0)
    back = {**alone, 'release': release}
    steps = [alone, sums(starved, changes=1.0, seconds=10.0), back]
    return Flights(held, {'100': [[alone]] * 3, 'steps': [steps] * 3}, ('1', '2', '3'))


def test_a_configuration_that_breaks_the_limit_is_not_the_best_one() -> None:
    flights = flown(0.6, 0.45)
    assert best_held(flights, ALONE) == 'fine'
    assert best_held(flights, Condition('', (30.0,))) == 'plain'


def test_the_clairvoyant_flies_the_best_of_each_phase() -> None:
    report = condition_report(flown(0.57, 0.45), STEPS, 'plain')
    assert report['clairvoyant']['configurations'] == ['fine', 'plain', 'fine']
    assert report['clairvoyant']['streaming_mean_iou'] == pytest.approx(0.55)
    assert report['clairvoyant']['share']['value'] == pytest.approx(0.53 / 0.55)
    assert report['held']['plain']['ours_minus_this']['value'] == pytest.approx(0.53 - 1.45 / 3)
    assert report['release_s'] == {'median': 1.0, 'longest': 1.0, 'count': 3}
    assert report['changes_per_minute'] == pytest.approx(2.0)


@pytest.mark.parametrize(
    ('full', 'starved', 'changes', 'release', 'missed'),
    [
        (0.6, 0.45, 0.0, 1.0, []),
        (0.6, 0.45, 2.0, 1.0, ['changes a minute']),
        (0.6, 0.45, 0.0, 4.0, ['full use']),
        (0.59, 0.45, 0.0, 1.0, ['at 100 %: at most 0.5 points']),
        (0.6, 0.29, 0.0, 1.0, ['above every fixed one', 'clairvoyant']),
    ],
)
def test_what_was_asked_for_is_judged(
    full: float, starved: float, changes: float, release: float, missed: list[str]
) -> None:
    flights = flown(full, starved, changes, release)
    reports = {
        condition.name: condition_report(flights, condition, best)
        for condition, best in ((ALONE, 'fine'), (STEPS, 'fine'))
    }
    failed = [row['target'] for row in judged(reports) if not row['met']]
    assert len(failed) == len(missed)
    for words, target in zip(missed, failed, strict=True):
        assert words in target


def test_shares_are_read_and_refused_in_words() -> None:
    assert conditions_of('100, 64%', '100,30') == (
        Condition('100', (100.0,)),
        Condition('64', (64.0,)),
        Condition('steps', (100.0, 30.0)),
    )
    for text in ('0', 'half', ''):
        with pytest.raises(EvaluationError, match=r'--shares.*no share of the processor'):
            conditions_of(text, '100')
