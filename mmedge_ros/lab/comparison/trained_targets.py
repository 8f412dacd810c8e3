"""Promises about what was trained, judged by results that other commands measured."""

from __future__ import annotations

import math
from collections.abc import Iterator

from mmedge_ros.lab.comparison.estimates import STREAMING
from mmedge_ros.lab.comparison.measured_results import (
    AblationResult,
    GateResult,
    PredictorResult,
)
from mmedge_ros.lab.comparison.plan import OURS
from mmedge_ros.lab.comparison.streaming_target import explained
from mmedge_ros.lab.comparison.verdict import (
    MET,
    MISSED,
    NOT_MEASURED,
    NOT_SHOWN,
    Evidence,
    Verdict,
    interval,
    margin,
    percent,
    signed,
    unmeasured,
)
from mmedge_ros.lab.evaluation.flight_bootstrap import Estimate
from mmedge_ros.lab.policies.schedule import STREAM

_ALPHA, _GATE_US = 0.05, 100.0
_WITHOUT = 'ours_without_aggregation'
_HANDED = 'whose report is then handed over with --results'


def gate(evidence: Evidence) -> Iterator[Verdict]:
    """Judge what the gate gets wrong, and how long a question takes."""
    target = f'gate: at most {100 * _ALPHA:g} % of early decisions differ on unseen flights'
    paper = '137.67 ms with skipping, 192.03 ms without'
    found = evidence.results.get('gate')
    if isinstance(found, GateResult):
        yield _of_gate(evidence, found, target, paper)
    else:
        yield unmeasured(
            'gate',
            target,
            f'a gate replayed in closed loop beside a shadow run, {_HANDED}. {_rested(evidence)}',
            f'mmedge train gate {evidence.bundle} --samples SET --calibration SET --test SET '
            '--out BUNDLE',
            paper,
        )
    target = f'gate: under {_GATE_US / 1e3:g} ms per question'
    if evidence.overheads is None:
        yield unmeasured('gate_time', target, 'a run with timing', evidence.command)
        return
    times = {name: found['p50'] for name, found in evidence.overheads['gate_us'].items()}
    whose = (
        "the bundle's gate"
        if evidence.overheads['gate_is_trained']
        else 'made-up weights of the trained size'
    )
    yield Verdict(
        'gate_time',
        target,
        '8.6 ms',
        f'{times["whole"]:.0f} us with five people (median, this machine)',
        MET if times['whole'] < _GATE_US else MISSED,
        margin(_GATE_US - times['whole'], ' us'),
        f'Of that {times["taking in"]:.0f} us are taking in the picture, which it costs asked or '
        f'not. Asking alone takes {times["asking"]:.0f}: {times["question"]:.0f} to put the '
        f'question and {times["network"]:.0f} for the network, with {whose}.',
        evidence.command,
    )


def _of_gate(evidence: Evidence, found: GateResult, target: str, paper: str) -> Verdict:
    unseen = found.unseen_flights > 0.0
    if not found.is_certified:
        return Verdict(
            'gate',
            target,
            paper,
            f'no threshold is certified by {found.calibration_flights:.0f} flights, and nothing '
            'rests',
            MISSED,
            '',
            f'The most careful threshold, {found.careful_threshold:g}, has '
            f'{percent(found.careful_disagreement)} of {found.careful_early:.0f} early decisions '
            f'differ, {found.threshold:g} has {percent(found.disagreement.value)} of '
            f'{found.early:.0f}. {_for_bundle(evidence, found.bundle)}',
            found.command,
        )
    differing = found.disagreement if unseen else Estimate(found.split_disagreement)
    held_out = unseen or math.isfinite(differing.value)
    where = (
        f'{found.unseen_flights:.0f} flights it never saw'
        if unseen
        else f'halves of the flights that did not certify, {found.splits:.0f} splits'
    )
    words = f'{percent(differing.value)} {interval(differing, 100.0)}'.strip()
    saved = (
        f'{percent(found.saved.value)} {interval(found.saved, 100.0)} of the camera’s encodes '
        f'saved, of {percent(found.ceiling)} that the rule allows'
    )
    why = [
        f'Certified by {found.calibration_flights:.0f} flights at {found.threshold:.3g}; '
        f'streaming mean IoU changes by {signed(found.streaming)}.',
        _rested(evidence),
        _for_bundle(evidence, found.bundle),
    ]
    kept = differing.value <= _ALPHA
    if held_out and not kept:
        why.insert(
            0,
            f'The most careful threshold, {found.careful_threshold:g}, has '
            f'{percent(found.careful_disagreement)} of {found.careful_early:.0f} differ.',
        )
    return Verdict(
        'gate',
        target,
        paper,
        f'{words} of {found.early:.0f} early decisions in {where}; {saved}'
        if held_out
        else f'– ; {saved}',
        (MET if kept else MISSED) if held_out else NOT_MEASURED,
        margin(100 * (_ALPHA - differing.value), ' points') if held_out else '',
        ' '.join(part for part in why if part),
        found.command,
    )


def _rested(evidence: Evidence) -> str:
    plan = evidence.comparison.plan
    if not plan.has(OURS, STREAM):
        return ''
    rested = evidence.value(plan.base(OURS, STREAM), 'rested_share')
    if rested == 0.0:
        return 'Here the gate never let a sensor rest: the bundle brings none that is certified.'
    return f'Here a sensor rested in {percent(rested)} of the windows.'


def _for_bundle(evidence: Evidence, bundle: str) -> str:
    same = not evidence.bundle or bundle == evidence.bundle
    return '' if same else f'Measured with the encoders of {bundle}.'


def aggregation(evidence: Evidence) -> Iterator[Verdict]:
    """Judge temporal aggregation and its rival by networks trained alike."""
    found = evidence.results.get('ablations')
    paper = '-19.5 points without temporal aggregation'
    targets = {
        'aggregation': 'temporal aggregation better than the last unit alone, trained alike',
        'whole_window': 'streaming aggregation better than a whole-window (3-D) encoder',
    }
    if not isinstance(found, AblationResult):
        for key, target in targets.items():
            yield unmeasured(
                key,
                target,
                f'trainings with and without it, {_HANDED}',
                'mmedge train ablations FEATURES --out OUT',
                paper if key == 'aggregation' else '',
            )
        return
    how = (
        f'{found.seeds:.0f} seeds, {found.learned_from:.0f} flights to learn from, '
        f'{found.flights:.0f} to be judged on'
    )
    parts = {
        'mean IoU': found.iou,
        'recall': found.recall,
        'precision': found.precision,
        'range error': found.range_error,
    }
    yield _compared(
        'aggregation',
        targets['aggregation'],
        paper,
        found.last_unit,
        f'worth of boxes {found.full:.3f}, {signed(found.last_unit)} over the last unit; {how}',
        'Over the last unit: '
        + ', '.join(f'{name} {signed(gain)}' for name, gain in parts.items())
        + f'; at the lowest rates with small networks worth {signed(found.last_unit_least)}. '
        f'Shift alone brings {signed(found.shift)}, differences {signed(found.differences)}; '
        f'the newest picture without any network is worth {found.newest_picture:.3f}.',
        found.command,
    )
    yield _compared(
        'whole_window',
        targets['whole_window'],
        '',
        found.whole_window,
        f'worth of boxes {signed(found.whole_window)} over the whole-window encoder; {how}',
        f'At the lowest rates with small networks {signed(found.whole_window_least)}. It begins '
        'when a window ends and cannot be flown in time.',
        found.command,
    )


def _compared(
    key: str, target: str, paper: str, gain: Estimate, words: str, why: str, command: str
) -> Verdict:
    verdict = MET if gain.low > 0.0 else MISSED if gain.value <= 0.0 else NOT_SHOWN
    by = f'{gain.value:+.3f}' if math.isfinite(gain.value) else ''
    return Verdict(key, target, paper, words, verdict, by, why, command)


def aggregation_in_flight(evidence: Evidence) -> Iterator[Verdict]:
    """Judge the bundle's networks over the window beside decision fusion, where it has them."""
    comparison = evidence.comparison
    plan = comparison.plan
    if not (plan.has(_WITHOUT, STREAM) and plan.has(OURS, STREAM)):
        return
    ours, other = plan.base(OURS, STREAM), plan.base(_WITHOUT, STREAM)
    gain = comparison.figure(ours, STREAMING).minus(comparison.figure(other, STREAMING))
    yield _compared(
        'aggregation_in_flight',
        'networks over the window better than decision fusion, in flight',
        '',
        gain,
        f'streaming mean IoU {signed(gain)}',
        explained(evidence, ours, other, plan.facts(_WITHOUT).short),
        evidence.with_options(f'--policies {OURS},{_WITHOUT} --protocols stream'),
    )


def predictor(evidence: Evidence) -> Iterator[Verdict]:
    """Judge the accuracy predictor beside the table, or say what the optimiser chooses by."""
    target = 'accuracy predictor better than a table over configurations on held-out flights'
    paper = 'R2 0.79'
    found = evidence.results.get('predictor')
    chosen = f'The optimiser chooses by {evidence.accuracies}.' if evidence.accuracies else ''
    if not isinstance(found, PredictorResult):
        yield unmeasured(
            'predictor',
            target,
            f'a predictor trained on flights, {_HANDED}. {chosen}'.rstrip(),
            f'mmedge train predictor {evidence.bundle} --calibration SET --test SET --out BUNDLE',
            paper,
        )
        return
    better = found.squared.high < 0.0 and found.same_squared.high < 0.0
    worse = found.squared.value >= 0.0 or found.same_squared.value >= 0.0
    used = (
        'It is used.'
        if found.is_used
        else 'So the table is used: a predictor must have less error than either table and '
        'choose no worse, both beyond doubt.'
    )
    yield Verdict(
        'predictor',
        target,
        paper,
        f'squared error {found.error:.4f} against {found.table_error:.4f} of the table, '
        f'{signed(found.squared, 4)}; {found.windows:.0f} windows of {found.flights:.0f} held-out '
        'flights',
        MET if better and found.is_used else MISSED if worse or better else NOT_SHOWN,
        f'{percent(1.0 - found.error / found.table_error)} less error'
        if found.table_error > 0.0
        else '',
        f'Choices miss the best by {signed(found.regret, 4)} against the table, and by '
        f'{signed(found.same_regret, 4)} against the table of the windows it learnt from, beside '
        f'which its squared error is {signed(found.same_squared, 4)}; without the mean of each '
        f'window the error is {signed(found.within, 4)}. {used} {chosen}'.rstrip(),
        found.command,
    )
