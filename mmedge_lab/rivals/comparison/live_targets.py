"""Targets that only real graphs can show: latency beside graphs that wait, and other benches."""

from __future__ import annotations

from collections.abc import Iterator

from mmedge_lab.rivals.comparison.measured_results import LATENCY, LatencyResult
from mmedge_lab.rivals.comparison.verdict import (
    MET,
    MISSED,
    Evidence,
    Target,
    Verdict,
    interval,
    margin,
    percent,
)

_REDUCTION = 0.85
# Of what the floor allows.
_NEARLY = 0.9
_BLOCKING = Target(
    'blocking_live',
    f'live: mean latency at least {100 * _REDUCTION:.0f} % below a real blocking graph',
    '75.83 % below blocking',
)
_CACHED = Target(
    'cached_live',
    f'live: at least {100 * _NEARLY:.0f} % of the reduction that the floor allows below a real '
    'blocking graph that caches units',
)
_COMMAND = 'mmedge lab bench latency FLIGHT'
# What each bench measures, the command, and the page with its figures.
_BENCHES = (
    (
        Target('drift', 'drift noticed within 20 s, no false alarm in an hour of normal flight'),
        'mmedge lab bench drift SET',
        'docs/results/drift.md',
    ),
    (
        Target(
            'pace',
            'updates between decisions: streaming mean IoU at least 1.5 points above decisions '
            'alone, at most 15 % more processor time',
        ),
        'mmedge lab replay-set SET',
        'docs/decisions/0029-updates-between-decisions.md',
    ),
    (
        Target('steps_live', 'live, processor in steps: at least 97 % of decisions in time'),
        'mmedge lab bench adaptation --out DIR',
        'docs/adaptation.md',
    ),
    (
        Target('release_live', 'live: within 3 s at full use again after the processor is free'),
        'mmedge lab bench adaptation --out DIR',
        'docs/adaptation.md',
    ),
    (
        Target('changes_live', 'adapting on a steady machine: at most 6 changes a minute'),
        'mmedge demo',
        'docs/adaptation.md',
    ),
    (
        Target('ids', 'at most 1.5 ids per person who is never hidden for longer than 2 s'),
        'mmedge lab bench trackers SET --level large',
        'docs/evaluation.md',
    ),
)


def live(evidence: Evidence) -> Iterator[Verdict]:
    """Judge the latency of real graphs, and list what other benches measure."""
    result = evidence.results.get(LATENCY)
    if isinstance(result, LatencyResult):
        yield from _latency(result)
    else:
        needed = 'real graphs on a machine with nothing else to do, given with --results'
        for target in (_BLOCKING, _CACHED):
            yield target.unmeasured(needed, _COMMAND, target.paper)
    for target, command, page in _BENCHES:
        yield target.unmeasured(f'a bench of its own, whose figures stand in {page}', command)


def _latency(result: LatencyResult) -> Iterator[Verdict]:
    ours = (
        f'p50 {result.p50:.1f}, p95 {result.p95:.1f}, mean {result.mean:.1f} ms; floor of the '
        f'same decisions: mean {result.floor:.1f} ms'
    )
    below = result.below_blocking
    yield _BLOCKING.judged(
        f'{result.mean:.1f} against {result.blocking:.1f} ms: {percent(below.value)} '
        f'{interval(below, 100.0)} by run',
        MET if below.value >= _REDUCTION else MISSED,
        margin(100 * (below.value - _REDUCTION), ' points'),
        f'Ours: {ours}. The blocking graph dropped {percent(result.dropped)} of its windows, so '
        f'that its latency stays bounded. Flight {result.flight}.',
        result.command,
    )
    below, allowed = result.below_cached, result.cached_allows
    share = below.value / allowed if allowed > 0.0 else 0.0
    yield _CACHED.judged(
        f'{result.mean:.1f} against {result.cached:.1f} ms: {percent(below.value)} '
        f'{interval(below, 100.0)} by run; the floor allows {percent(allowed)}',
        MET if share >= _NEARLY else MISSED,
        margin(100 * (share - _NEARLY), ' points'),
        f'Ours: {ours}. What is above the floor is closing the window and fusion.',
        result.command,
    )
