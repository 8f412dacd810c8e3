"""Targets of how well people are seen and followed, as the goals of the project state them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from mmedge_lab.judging.flight_bootstrap import Estimate
from mmedge_lab.policies.schedule import STREAM
from mmedge_lab.rivals.comparison.estimates import STREAMING
from mmedge_lab.rivals.comparison.plan import OURS
from mmedge_lab.rivals.comparison.verdict import (
    MET,
    MISSED,
    NOT_SHOWN,
    Evidence,
    Target,
    Verdict,
    interval,
)

_HIGHEST = 'pipelined_max'
# What the squared error of four numbers is on average, in units of its covariance.
_EXPECTED_NEES = 4.0


class _Level(NamedTuple):
    """A figure of a policy that should be at least so much; ``first`` was asked for before."""

    target: Target
    figure: str
    least: float
    policy: str
    first: float = 0.0
    note: str = ''


_LEVELS = (
    _Level(
        Target('streaming_level', 'streaming mean IoU at least 0.53', '70.47 % mean IoU'),
        STREAMING,
        0.53,
        OURS,
        note=' Of decisions alone, as rivals publish nothing else; updates between them add to it '
        '(docs/decisions/0029-updates-between-decisions.md).',
    ),
    _Level(
        Target('mean_iou_20px', 'mean IoU of people of 20 px and more at least 0.65'),
        'accuracy.mean_iou_20px',
        0.65,
        _HIGHEST,
        0.60,
    ),
    _Level(
        Target('mean_iou_40px', 'mean IoU of people of 40 px and more at least 0.74'),
        'accuracy.mean_iou_40px',
        0.74,
        _HIGHEST,
        0.70,
    ),
    _Level(Target('mota', 'MOTA at least 0.60'), 'tracking.mota', 0.60, _HIGHEST),
    _Level(Target('idf1', 'IDF1 at least 0.70'), 'tracking.idf1', 0.70, _HIGHEST),
)
_NEES = Target('nees', f'NEES: interval by seed contains {_EXPECTED_NEES:g}')


def accuracy(evidence: Evidence) -> Iterator[Verdict]:
    """Judge figures by what was asked of them."""
    for level in _LEVELS:
        figure = _figure(evidence, level.policy, level.figure)
        if figure is None:
            yield _unmeasured(evidence, level.target, level.policy)
            continue
        words = f'{figure.value:.3f} {interval(figure, 1.0, ".3f")}'.strip()
        short = evidence.comparison.plan.facts(level.policy).short
        before = f' The first goal, {level.first:g}, is ' if level.first else ''
        if before:
            before += 'met.' if figure.value >= level.first else 'missed as well.'
        yield level.target.judged(
            words,
            MET if figure.value >= level.least else MISSED,
            f'{figure.value - level.least:+.3f}',
            f'Of {short}.{before}{level.note}',
            _command(evidence, level.policy),
        )
    figure = _figure(evidence, OURS, 'accuracy.nees')
    if figure is None:
        yield _unmeasured(evidence, _NEES, OURS)
        return
    inside = figure.low <= _EXPECTED_NEES <= figure.high
    yield _NEES.judged(
        f'{figure.value:.2f} {interval(figure, 1.0, ".2f")}'.strip(),
        MET if inside else MISSED if figure.low == figure.low else NOT_SHOWN,
        f'{figure.value - _EXPECTED_NEES:+.2f}',
        'Of horizontal position and velocity, of each track one sample per second; above four '
        'covariances are too small, below too large.',
        _command(evidence, OURS),
    )


def _figure(evidence: Evidence, policy: str, name: str) -> Estimate | None:
    comparison = evidence.comparison
    if not comparison.plan.has(policy, STREAM):
        return None
    figure = comparison.figure(comparison.plan.base(policy, STREAM), name).estimate
    return figure if figure.value == figure.value else None


def _unmeasured(evidence: Evidence, target: Target, policy: str) -> Verdict:
    needed = f'{policy} in the stream protocol, and people in the flights'
    return target.unmeasured(needed, _command(evidence, policy), target.paper)


def _command(evidence: Evidence, policy: str) -> str:
    return evidence.with_options(f'--policies {policy} --protocols stream')
