"""Targets of trained parts, judged by results that other commands measured."""

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
    Target,
    Verdict,
    interval,
    margin,
    percent,
    signed,
)
from mmedge_ros.lab.evaluation.flight_bootstrap import Estimate
from mmedge_ros.lab.policies.schedule import STREAM

_ALPHA, _GATE_US = 0.05, 100.0
_WITHOUT = 'ours_without_aggregation'
_HANDED = 'whose report is then handed over with --results'
_GATE = Target(
    'gate',
    f'gate: at most {100 * _ALPHA:g} % of early decisions differ on unseen flights',
    '137.67 ms with skipping, 192.03 ms without',
)
_GATE_TIME = Target('gate_time', f'gate: under {_GATE_US / 1e3:g} ms per question', '8.6 ms')
_AGGREGATION = Target(
    'aggregation',
    'temporal aggregation better than the last unit alone, trained alike',
    '-19.5 points without temporal aggregation',
)
_WHOLE_WINDOW = Target(
    'whole_window', 'streaming aggregation better than a whole-window (3-D) encoder'
)
_IN_FLIGHT = Target(
    'aggregation_in_flight', 'networks over the window better than decision fusion, in flight'
)
_PREDICTOR = Target(
    'predictor',
    'accuracy predictor better than a table over configurations on held-out flights',
    'R2 0.79',
)


def gate(evidence: Evidence) -> Iterator[Verdict]:
    """Judge the share of wrong early decisions, and how long a question takes."""
    result = evidence.results.get('gate')
    if isinstance(result, GateResult):
        yield _certified(evidence, result) if result.is_certified else _refused(evidence, result)
    else:
        yield _GATE.unmeasured(
            f'a gate replayed in closed loop beside a shadow run, {_HANDED}. {_rested(evidence)}',
            f'mmedge train gate {evidence.bundle} --train SET --calibration SET --test SET '
            '--out BUNDLE',
            _GATE.paper,
        )
    if evidence.overheads is None:
        yield _GATE_TIME.unmeasured('a run with timing', evidence.command)
        return
    times = {name: of['p50'] for name, of in evidence.overheads['gate_us'].items()}
    trained = evidence.overheads['gate_is_trained']
    whose = "the bundle's gate" if trained else 'made-up weights of the trained size'
    yield _GATE_TIME.judged(
        f'{times["whole"]:.0f} us with five people (median, this machine)',
        MET if times['whole'] < _GATE_US else MISSED,
        margin(_GATE_US - times['whole'], ' us'),
        f'Of that {times["taking in"]:.0f} us are taking in the picture, which it costs asked or '
        f'not. Asking alone takes {times["asking"]:.0f}: {times["question"]:.0f} to put the '
        f'question and {times["network"]:.0f} for the network, with {whose}.',
        evidence.command,
    )


def _refused(evidence: Evidence, result: GateResult) -> Verdict:
    return _GATE.judged(
        f'no threshold is certified by {result.calibration_flights:.0f} flights, and nothing '
        'rests',
        MISSED,
        '',
        f'The most careful threshold, {result.careful_threshold:g}, has '
        f'{percent(result.careful_disagreement)} of {result.careful_early:.0f} early decisions '
        f'differ, {result.threshold:g} has {percent(result.disagreement.value)} of '
        f'{result.early:.0f}. {_for_bundle(evidence, result.bundle)}',
        result.command,
    )


def _certified(evidence: Evidence, result: GateResult) -> Verdict:
    unseen = result.unseen_flights > 0.0
    differing = result.disagreement if unseen else Estimate(result.split_disagreement)
    held_out = unseen or math.isfinite(differing.value)
    where = (
        f'{result.unseen_flights:.0f} flights it never saw'
        if unseen
        else f'halves of the flights that did not certify, {result.splits:.0f} splits'
    )
    words = f'{percent(differing.value)} {interval(differing, 100.0)}'.strip()
    saved = (
        f'{percent(result.saved.value)} {interval(result.saved, 100.0)} of the camera’s encodes '
        f'saved, of {percent(result.ceiling)} that the rule allows'
    )
    why = [
        f'Certified by {result.calibration_flights:.0f} flights at {result.threshold:.3g}; '
        f'streaming mean IoU changes by {signed(result.streaming)}.',
        _rested(evidence),
        _for_bundle(evidence, result.bundle),
    ]
    kept = differing.value <= _ALPHA
    if held_out and not kept:
        careful = percent(result.careful_disagreement)
        why.insert(
            0,
            f'The most careful threshold, {result.careful_threshold:g}, has {careful} of '
            f'{result.careful_early:.0f} differ.',
        )
    return _GATE.judged(
        f'{words} of {result.early:.0f} early decisions in {where}; {saved}'
        if held_out
        else f'– ; {saved}',
        (MET if kept else MISSED) if held_out else NOT_MEASURED,
        margin(100 * (_ALPHA - differing.value), ' points') if held_out else '',
        ' '.join(part for part in why if part),
        result.command,
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
    result = evidence.results.get('ablations')
    if not isinstance(result, AblationResult):
        needed, command = (
            f'trainings with and without it, {_HANDED}',
            'mmedge train ablations FEATURES --out OUT',
        )
        yield _AGGREGATION.unmeasured(needed, command, _AGGREGATION.paper)
        yield _WHOLE_WINDOW.unmeasured(needed, command)
        return
    how = (
        f'{result.seeds:.0f} seeds, {result.learned_from:.0f} flights to learn from, '
        f'{result.flights:.0f} to be judged on'
    )
    yield _AGGREGATION.gained(
        result.last_unit,
        f'worth of boxes {result.full:.3f}, {signed(result.last_unit)} over the last unit; {how}',
        f'Over the last unit: mean IoU {signed(result.iou)}, recall {signed(result.recall)}, '
        f'precision {signed(result.precision)}, range error {signed(result.range_error)}; at the '
        f'lowest rates with small networks worth {signed(result.last_unit_least)}. '
        f'Shift alone brings {signed(result.shift)}, differences {signed(result.differences)}; '
        f'the newest picture without any network is worth {result.newest_picture:.3f}.',
        result.command,
    )
    yield _WHOLE_WINDOW.gained(
        result.whole_window,
        f'worth of boxes {signed(result.whole_window)} over the whole-window encoder; {how}',
        f'At the lowest rates with small networks {signed(result.whole_window_least)}. It begins '
        'when a window ends and cannot be flown in time.',
        result.command,
    )


def aggregation_in_flight(evidence: Evidence) -> Iterator[Verdict]:
    """Judge the bundle's networks over the window beside decision fusion, where it has them."""
    comparison = evidence.comparison
    plan = comparison.plan
    if not (plan.has(_WITHOUT, STREAM) and plan.has(OURS, STREAM)):
        return
    ours, other = plan.base(OURS, STREAM), plan.base(_WITHOUT, STREAM)
    gain = comparison.figure(ours, STREAMING).minus(comparison.figure(other, STREAMING))
    yield _IN_FLIGHT.gained(
        gain,
        f'streaming mean IoU {signed(gain)}',
        explained(evidence, ours, other, plan.facts(_WITHOUT).short),
        evidence.with_options(f'--policies {OURS},{_WITHOUT} --protocols stream'),
    )


def predictor(evidence: Evidence) -> Iterator[Verdict]:
    """Judge the accuracy predictor beside the table, or say what the optimiser chooses by."""
    result = evidence.results.get('predictor')
    chosen = f'The optimiser chooses by {evidence.accuracies}.' if evidence.accuracies else ''
    if not isinstance(result, PredictorResult):
        yield _PREDICTOR.unmeasured(
            f'a predictor trained on flights, {_HANDED}. {chosen}'.rstrip(),
            f'mmedge train predictor {evidence.bundle} --train SET --test SET --out BUNDLE',
            _PREDICTOR.paper,
        )
        return
    better = result.squared.high < 0.0 and result.same_squared.high < 0.0
    worse = result.squared.value >= 0.0 or result.same_squared.value >= 0.0
    less = percent(1.0 - result.error / result.table_error) if result.table_error > 0.0 else ''
    used = (
        'It is used.'
        if result.is_used
        else 'So the table is used: a predictor must have less error than either table and '
        'choose no worse, both beyond doubt.'
    )
    yield _PREDICTOR.judged(
        f'squared error {result.error:.4f} against {result.table_error:.4f} of the table, '
        f'{signed(result.squared, 4)}; {result.windows:.0f} windows of {result.flights:.0f} '
        'held-out flights',
        MET if better and result.is_used else MISSED if worse or better else NOT_SHOWN,
        f'{less} less error' if less else '',
        f'Choices miss the best by {signed(result.regret, 4)} against the table, and by '
        f'{signed(result.same_regret, 4)} against the table of the windows it learnt from, beside '
        f'which its squared error is {signed(result.same_squared, 4)}; without the mean of each '
        f'window the error is {signed(result.within, 4)}. {used} {chosen}'.rstrip(),
        result.command,
    )
