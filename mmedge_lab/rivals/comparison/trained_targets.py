"""Targets of trained parts, judged by results that other commands measured."""

from __future__ import annotations

from collections.abc import Iterator

from mmedge_lab.judging.flight_bootstrap import Estimate
from mmedge_lab.policies.schedule import STREAM
from mmedge_lab.rivals.comparison.estimates import STREAMING
from mmedge_lab.rivals.comparison.measured_results import (
    AblationResult,
    GateResult,
    PredictorResult,
)
from mmedge_lab.rivals.comparison.plan import OURS
from mmedge_lab.rivals.comparison.streaming_target import explained
from mmedge_lab.rivals.comparison.verdict import (
    MET,
    MISSED,
    NOT_SHOWN,
    Evidence,
    Target,
    Verdict,
    interval,
    margin,
    percent,
    signed,
)

_DELTA, _LEAST_SAVED, _GATE_US = 0.01, 0.1, 100.0
_WITHOUT = 'ours_without_aggregation'
_HANDED = 'whose report is then handed over with --results'
_GATE = Target(
    'gate',
    f'gate: {100 * _LEAST_SAVED:g} % of encodes saved for at most {100 * _DELTA:g} point of '
    'streaming IoU, and more than by a lower rate or reuse',
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
    'aggregation_in_flight', 'aggregation of the window better than its newest unit, in flight'
)
_PREDICTOR = Target(
    'predictor',
    'choices by the accuracy predictor better than by a table, on held-out flights',
    'R2 0.79',
)


def gate(evidence: Evidence) -> Iterator[Verdict]:
    """Judge what the gate loses for what it saves, and how long a question takes."""
    result = evidence.results.get('gate')
    if isinstance(result, GateResult):
        yield _gated(evidence, result)
    else:
        yield _GATE.unmeasured(
            f'a gate replayed in closed loop beside a shadow run, {_HANDED}. {_rested(evidence)}',
            f'mmedge lab train gate {evidence.bundle} --train SET --calibration SET --test SET '
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


def _gated(evidence: Evidence, result: GateResult) -> Verdict:
    where = (
        f'{result.unseen_flights:.0f} flights it never saw'
        if result.unseen_flights > 0.0
        else 'the flights that certified it'
    )
    saves = result.saved.value >= _LEAST_SAVED
    is_met = result.is_worth_it and result.unseen_flights > 0.0 and result.loss.value <= _DELTA
    certified = (
        f'Certified by {result.calibration_flights:.0f} flights at {result.threshold:.3g}.'
        if result.is_certified
        else f'No threshold is certified by {result.calibration_flights:.0f} flights; these are '
        f'figures of {result.threshold:g}.'
    )
    why = [
        certified,
        f'Of people kept in view {_points(result.missed)} points more are missed. At equal '
        f'encodes the loss less that of a lower rate is {_points(result.beside_rate)} points, '
        f'less that of reuse {_points(result.beside_reuse)}, and on top of reuse less that of '
        f'more reuse {_points(result.on_reuse)}.',
        _rested(evidence),
        _for_bundle(evidence, result.bundle),
    ]
    return _GATE.judged(
        f'{percent(result.saved.value)} {interval(result.saved, 100.0)} of the camera’s encodes '
        f'saved for {_points(result.loss)} points of streaming IoU in {where}',
        MET if is_met else MISSED,
        '' if saves else margin(100 * (result.saved.value - _LEAST_SAVED), ' points'),
        ' '.join(part for part in why if part),
        result.command,
    )


def _points(estimate: Estimate) -> str:
    return f'{100.0 * estimate.value:.2f} {interval(estimate, 100.0)}'.strip()


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
            'mmedge lab train ablations FEATURES --out OUT',
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
    """Judge the bundle's networks beside the same ones given the newest unit alone."""
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
            f'mmedge lab train predictor {evidence.bundle} --train SET --test SET --out BUNDLE',
            _PREDICTOR.paper,
        )
        return
    regrets = (result.regret, result.same_regret)
    better = all(regret.high < 0.0 for regret in regrets)
    worse = any(regret.value >= 0.0 for regret in regrets)
    used = (
        'It is used.'
        if result.is_used
        else 'So the table is used: a predictor must choose better than either table beyond doubt.'
    )
    yield _PREDICTOR.judged(
        f'choices miss the best by {signed(result.regret, 4)} against the table of the bundle, '
        f'and by {signed(result.same_regret, 4)} against that of the windows it learnt from; '
        f'{result.windows:.0f} windows of {result.flights:.0f} held-out flights',
        MET if better and result.is_used else MISSED if worse or better else NOT_SHOWN,
        '',
        f'Its squared error is {result.error:.4f} against {result.table_error:.4f} of the table, '
        f'{signed(result.squared, 4)}; without the mean of each window, on which no choice '
        f'depends, {signed(result.within, 4)}. {used} {chosen}'.rstrip(),
        result.command,
    )
