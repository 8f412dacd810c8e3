"""Targets of deciding, and every target with its verdict and what explains a miss."""

from __future__ import annotations

import math
from dataclasses import asdict
from itertools import chain
from typing import Any

from mmedge_lab.judging.flight_bootstrap import Estimate
from mmedge_lab.policies.schedule import SAMPLE, STREAM
from mmedge_lab.rivals.comparison.accuracy_targets import accuracy
from mmedge_lab.rivals.comparison.estimates import MEAN, P50, P95
from mmedge_lab.rivals.comparison.live_targets import live
from mmedge_lab.rivals.comparison.plan import BLOCKING, OURS, ComparisonCase
from mmedge_lab.rivals.comparison.streaming_target import streaming
from mmedge_lab.rivals.comparison.trained_targets import (
    aggregation,
    aggregation_in_flight,
    gate,
    predictor,
)
from mmedge_lab.rivals.comparison.verdict import (
    MET,
    MISSED,
    Evidence,
    Target,
    Verdict,
    interval,
    margin,
)
from mmedge_ros.data_types import CAMERA, RADAR
from mmedge_ros.records.device_profile import PROBABILITIES

_TIMES_FLOOR = 1.5
_REDUCTION = 0.85
_OPTIMIZER_US = 1000.0
_MOST_LATE, _MOST_POINTS = 5, 2.0
_LARGEST_SPACE = str(7**4)
_TRANSPORT = 'features.transport'
_LATENCY = Target(
    'latency',
    f'p95 decision latency at most {_TIMES_FLOOR:g} x (encode of the last unit + transport)',
)
_AGAINST_BLOCKING = Target(
    'blocking',
    f'latency at least {100 * _REDUCTION:.0f} % below blocking, each window unloaded',
    '75.83 % below blocking',
)
_CALLS = Target('calls', 'encoder calls: one per unit, 30 + 20 per second')
_OPTIMIZER = Target(
    'optimizer',
    'optimiser at 7^4: under 1 ms, equal to exhaustive search',
    '8.2 ms; 5.9 ms (3^4) to 37 ms (7^4)',
)
_CONTENTION = Target(
    'contention',
    f'contention step: at most {_MOST_LATE} late of 60 in each phase, {_MOST_POINTS:g} points '
    'below the best',
    '81 ms promised, 519 ms taken (static table)',
)


def verdicts(evidence: Evidence) -> list[dict[str, Any]]:
    """Judge every target; those for which nothing was run are said to be not measured."""
    judged = chain(
        streaming(evidence),
        accuracy(evidence),
        (_latency(evidence), _against_blocking(evidence), _calls(evidence)),
        (_optimizer(evidence), _contention(evidence)),
        gate(evidence),
        aggregation(evidence),
        aggregation_in_flight(evidence),
        predictor(evidence),
        live(evidence),
    )
    return [asdict(verdict) for verdict in judged]


def _latency(evidence: Evidence) -> Verdict:
    comparison = evidence.comparison
    command = evidence.with_options('--policies ours --protocols stream')
    ours = comparison.plan.base(OURS, STREAM)
    way = _encode_and_way(evidence, ours)
    if ours not in comparison.outcomes or not way > 0.0:
        return _LATENCY.unmeasured('ours in the stream protocol', command)
    p95 = comparison.figure(ours, P95)
    times = p95.value / way
    encode = comparison.bootstrap.quantile(_encode_ms(evidence, ours), 0.95)
    mean, floor, floor_p95 = (
        evidence.value(ours, name) for name in (MEAN, 'floor_ms.mean', 'floor_ms.p95')
    )
    waits = ', '.join(
        f'{m} {evidence.value(ours, f"waiting_ms.{m}.p95"):.0f} ms' for m in (CAMERA, RADAR)
    )
    why = (
        f'Floor of these windows (the last unit encoded and sent the moment it was there; what is '
        f'done before the end is not waited for): mean {floor:.1f} ms, p95 {floor_p95:.1f} ms, '
        f'beside {mean:.1f} and {p95.value:.1f} ms. p95 of waiting after the end: {waits}; p95 of '
        f'one encoding {encode.value:.0f} ms.'
    )
    return _LATENCY.judged(
        f'{p95.value:.1f} ms, {times:.2f} x one encoding and its way ({way:.1f} ms); age p95 of '
        f'the picture {evidence.value(ours, f"age_ms.{CAMERA}.p95"):.0f} ms',
        MET if times <= _TIMES_FLOOR else MISSED,
        margin(_TIMES_FLOOR - times, ' x'),
        why,
        command,
    )


def _encode_and_way(evidence: Evidence, case: ComparisonCase) -> float:
    """Median encode time of the unit waited for last, plus median transport, ms.

    No floor of a latency: a unit that came before the end is encoded before it, in part.
    """
    if case not in evidence.comparison.outcomes:
        return math.nan
    encode = evidence.comparison.bootstrap.quantile(_encode_ms(evidence, case), 0.5)
    transport = evidence.profile.stages.get(_TRANSPORT, (0.0,) * len(PROBABILITIES))
    return encode.value + 1e3 * transport[PROBABILITIES.index(0.5)]


def _encode_ms(evidence: Evidence, case: ComparisonCase) -> list[Any]:
    outcomes = evidence.comparison.outcomes[case]
    return [1e3 * outcome.column('last_encode') for outcome in outcomes]


def _against_blocking(evidence: Evidence) -> Verdict:
    comparison = evidence.comparison
    plan = comparison.plan
    command = evidence.with_options('--policies ours,blocking --protocols sample')
    if not (plan.has(OURS, SAMPLE) and plan.has(BLOCKING, SAMPLE)):
        return _AGAINST_BLOCKING.unmeasured('ours and blocking in the sample protocol', command)
    ours, theirs = plan.base(OURS, SAMPLE), plan.base(BLOCKING, SAMPLE)
    mine, other = comparison.figure(ours, MEAN), comparison.figure(theirs, MEAN)
    share = mine.over(other)
    reduction = Estimate(1.0 - share.value, 1.0 - share.high, 1.0 - share.low)
    floor = evidence.value(ours, 'floor_ms.mean')
    physical = 1.0 - floor / other.value if other.value else math.nan
    why = (
        f'Floor of these windows (the last unit must be encoded and sent): mean {floor:.1f} ms, '
        f'{100 * physical:.1f} % below blocking.'
    )
    if plan.has(BLOCKING, STREAM):
        dropped = evidence.value(plan.base(BLOCKING, STREAM), 'dropped_share')
        latency = evidence.value(plan.base(BLOCKING, STREAM), P50)
        why += (
            f' In streaming, blocking drops {100 * dropped:.0f} % of the windows at a median '
            f'latency of {latency:.0f} ms.'
        )
    return _AGAINST_BLOCKING.judged(
        f'{mine.value:.1f} against {other.value:.1f} ms: {100 * reduction.value:.1f} % '
        f'{interval(reduction, 100.0)}',
        MET if reduction.value >= _REDUCTION else MISSED,
        margin(100 * (reduction.value - _REDUCTION), ' points'),
        why,
        command,
    )


def _calls(evidence: Evidence) -> Verdict:
    plan = evidence.comparison.plan
    command = evidence.with_options('--policies ours,blocking --protocols stream')
    if not plan.has(OURS, STREAM):
        return _CALLS.unmeasured('ours in the stream protocol', command)
    case = plan.base(OURS, STREAM)
    each = {m: evidence.value(case, f'encoder_calls_per_unit.{m}') for m in (CAMERA, RADAR)}
    rate = {m: evidence.value(case, f'encoder_calls_per_s.{m}') for m in (CAMERA, RADAR)}
    once = all(abs(value - 1.0) < 1e-9 for value in each.values())
    why = (
        'That features are the same bit for bit is tested elsewhere: offline and live '
        'encode a unit once and keep it.'
    )
    if plan.has(BLOCKING, SAMPLE):
        other = plan.base(BLOCKING, SAMPLE)
        needed = ' + '.join(
            f'{evidence.value(other, f"encoder_calls_per_s.{m}"):.0f}' for m in (CAMERA, RADAR)
        )
        why += f' Blocking needs {needed} per second to encode each window anew.'
    return _CALLS.judged(
        f'{each[CAMERA]:.2f} per picture and {each[RADAR]:.2f} per scan, {rate[CAMERA]:.1f} + '
        f'{rate[RADAR]:.1f} per second',
        MET if once and rate[CAMERA] <= 30.5 and rate[RADAR] <= 20.5 else MISSED,
        '',
        why,
        command,
    )


def _optimizer(evidence: Evidence) -> Verdict:
    command = 'mmedge lab bench optimizer'
    if evidence.overheads is None:
        return _OPTIMIZER.unmeasured('a run with timing', command)
    times = evidence.overheads['optimizer_us'][_LARGEST_SPACE]
    fresh = times['fresh']['p50']
    fast = fresh < _OPTIMIZER_US
    return _OPTIMIZER.judged(
        f'{fresh / 1e3:.2f} ms (median, this machine)',
        MET if fast and times['equal_to_exhaustive'] else MISSED,
        margin((_OPTIMIZER_US - fresh) / 1e3, ' ms'),
        f'Processor time p50 {times["fresh"]["processor_p50"] / 1e3:.2f} ms; the rest is waiting '
        'for a core.',
        command,
    )


def _contention(evidence: Evidence) -> Verdict:
    steps = evidence.contention
    if steps is None:
        return _CONTENTION.unmeasured(
            'the published latency tables below $MMEDGE_DATA, for mmedge lab bench contention',
            'mmedge lab bench contention',
            _CONTENTION.paper,
        )
    feasible = [phase for phase in steps['phases'] if phase['feasible']]
    late = max(phase['late'] for phase in feasible)
    points = max(phase['regret_at_end'] for phase in feasible)
    static = '/'.join(str(phase['late']) for phase in steps['static_phases'])
    return _CONTENTION.judged(
        f'{"/".join(str(phase["late"]) for phase in steps["phases"])} late of '
        f'{steps["decisions"]} in {", ".join(steps["names"])}; {points:.2f} points at most at the '
        'end',
        MET if late <= _MOST_LATE and points <= _MOST_POINTS else MISSED,
        f'{_MOST_LATE - late:+d} decisions, {_MOST_POINTS - points:+.2f} points to the target',
        f'Tables and a limit of {steps["limit_ms"]:g} ms; the first table, never corrected, '
        f'has {static} late.',
        steps['command'],
    )
