"""The report of a gate: what it saves and loses, beside other ways to encode as few pictures."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from mmedge_lab.judging import TEMPLATES
from mmedge_lab.judging.flight_bootstrap import Drawings, Estimate, interval
from mmedge_lab.training.gates.certificate import Certificate, FlightLoss, total
from mmedge_lab.training.gates.loop_figures import FlightFigures, saved
from mmedge_ros.data_types import FloatArray
from mmedge_ros.records.plain_values import plain_values
from mmedge_ros.report.page import Tile, number, percent, render_page
from mmedge_ros.report.report_files import write_report
from mmedge_ros.skipping.audits import AuditParameters, DriftMonitor

if TYPE_CHECKING:
    from mmedge_ros.report.figure_style import FigureFile

PAGE = 'report.html'
# Promises that are certified and looked at across splits.
DELTAS = (0.005, 0.01, 0.02)
# What stands for a gate that is not certified, and what a gate must save to be worth flying.
FIXED, LEAST_SAVED = 0.5, 0.1
GATE, THINNED, REUSE, BOTH = 'gate', 'thinned', 'reuse', 'gate on reuse'
NAMES = {
    GATE: 'this gate',
    BOTH: 'this gate on reuse 2',
    THINNED: 'camera rate, share of usual',
    REUSE: 'reuse, share encoded',
}
_DIGITS = 5

Sums = Callable[[FlightFigures], tuple[float, float]]


class Split(Protocol):
    """A threshold certified by one half of the flights, and what it does in the other."""

    @property
    def certificate(self) -> Certificate: ...
    @property
    def loss(self) -> FlightLoss: ...
    @property
    def saved(self) -> float: ...


@dataclass(frozen=True, eq=False)
class GateEvidence:
    """What was replayed: of each threshold and rival the figures of the same judged flights.

    ``rivals`` are keyed by rule and value; ``splits`` by delta; ``delta`` is the wanted one;
    ``audits`` are the losses of audited windows by set and flight; ``seeds`` are those of the
    judged flights, () where each has its own.
    """

    rows: tuple[tuple[FlightFigures, ...], ...]
    thresholds: tuple[float, ...]
    rivals: Mapping[str, Sequence[FlightFigures]]
    certificates: tuple[Certificate, ...]
    splits: Mapping[float, Sequence[Split]]
    delta: float
    audits: Mapping[str, Sequence[Sequence[float]]] = field(default_factory=dict)
    seeds: tuple[str, ...] = ()

    @property
    def judged(self) -> int:
        """How many flights were judged."""
        return len(self.rows[0])

    @property
    def certificate(self) -> Certificate | None:
        """The certificate of the wanted promise, or of a stricter one."""
        holding = [c for c in self.certificates if c.holds and c.delta <= self.delta + 1e-12]
        return max(holding, key=lambda c: c.delta) if holding else None

    def of_rule(self, rule: str) -> dict[float, Sequence[FlightFigures]]:
        """Return the rows of a rival by value."""
        named = ((*_rule_and_value(key), row) for key, row in self.rivals.items())
        return {value: row for name, value, row in named if name == rule}


def gate_report(evidence: GateEvidence) -> dict[str, Any]:
    """Return all figures as plain values; None where there is no figure."""
    drawings = Drawings.of(evidence.seeds or range(evidence.judged))
    certificate = evidence.certificate
    wanted = FIXED if certificate is None else certificate.threshold
    place = _nearest(evidence.thresholds, wanted)
    ours = evidence.rows[place]
    against = _against(evidence, evidence.thresholds[place], ours, drawings)
    report = {
        'judged_flights': evidence.judged,
        'judged_seeds': drawings.count(np.ones(evidence.judged, np.bool_)),
        'delta': evidence.delta,
        'certificates': [_certificate(c) for c in evidence.certificates],
        'certified': certificate is not None,
        'ours': _rule(GATE, evidence.thresholds[place], ours, drawings),
        'against': against,
        'ships': certificate is not None
        and saved(ours) >= LEAST_SAVED
        and all(_is_less(against.get(name)) for name in (THINNED, BOTH)),
        'thresholds': [
            _rule(GATE, threshold, row, drawings)
            for threshold, row in zip(evidence.thresholds, evidence.rows, strict=True)
        ],
        'rivals': [
            _rule(*_rule_and_value(key), row, drawings) for key, row in evidence.rivals.items()
        ],
        'splits': [_splits(delta, results) for delta, results in evidence.splits.items()],
        'drift': [_drift(name, certificate, of) for name, of in evidence.audits.items()],
    }
    plain: dict[str, Any] = plain_values(report, _DIGITS)
    return plain


def write_gate_report(report: Mapping[str, Any], folder: Path) -> None:
    """Write report.json, the figures and report.html.

    :raises ReportError: if the folder or a file in it cannot be written
    """
    from mmedge_lab.training.gates.gate_figures import GATE_FIGURES, draw_gate

    figures = draw_gate(report)
    pages = {PAGE: render_gate_page(report, figures)}
    write_report(report, folder, pages, figures, GATE_FIGURES)


def _rule_and_value(key: str) -> tuple[str, float]:
    name, value = key.rsplit(' ', 1)
    return name, float(value)


def _nearest(values: Sequence[float], wanted: float) -> int:
    return min(range(len(values)), key=lambda place: abs(values[place] - wanted))


def _rule(
    name: str, value: float, flights: Sequence[FlightFigures], drawings: Drawings
) -> dict[str, Any]:
    """Describe a rule, with intervals from drawing seeds anew."""
    lost = total([flight.loss for flight in flights])
    early_by = [flight.early_by for flight in flights if math.isfinite(flight.early_by)]
    shown = sum(flight.shown for flight in flights)
    people = lost.people
    return {
        'name': name,
        'value': value,
        'early': lost.early,
        'saved': _estimate(drawings, flights, _encodes_left_out),
        'iou_loss': _estimate(drawings, flights, _iou),
        'miss_loss': _estimate(drawings, flights, _missed),
        'reference_iou': sum(flight.iou for flight in flights) / people if people else math.nan,
        'early_loss': lost.early_lost / lost.early if lost.early else math.nan,
        'shown_loss': sum(f.shown_lost for f in flights) / shown if shown else math.nan,
        'early_by_ms': 1e3 * float(np.median(early_by)) if early_by else math.nan,
    }


def _encodes_left_out(flight: FlightFigures) -> tuple[float, float]:
    return float(flight.reference_encoded - flight.encoded), float(flight.reference_encoded)


def _iou(flight: FlightFigures) -> tuple[float, float]:
    return flight.loss.iou, float(flight.loss.people)


def _missed(flight: FlightFigures) -> tuple[float, float]:
    return float(flight.loss.missed), float(flight.loss.held)


def _estimate(
    drawings: Drawings, flights: Sequence[FlightFigures], sums: Sums
) -> dict[str, float]:
    pairs = np.array([sums(flight) for flight in flights])
    return _quotient(drawings, pairs[:, 0], pairs[:, 1])._asdict()


def _quotient(drawings: Drawings, above: FloatArray, below: FloatArray) -> Estimate:
    with np.errstate(invalid='ignore', divide='ignore'):
        drawn = (drawings.weights @ above) / (drawings.weights @ below)
    value = float(above.sum() / below.sum()) if below.sum() else math.nan
    return Estimate(value, *interval(drawn, drawings.count(below > 0.0)))


def _against(
    evidence: GateEvidence, threshold: float, ours: Sequence[FlightFigures], drawings: Drawings
) -> dict[str, Any]:
    """Compare the gate with thinning and reuse, and the gate on reuse with more reuse."""
    curves = {rule: list(evidence.of_rule(rule).values()) for rule in (THINNED, REUSE)}
    against = {
        rule: beside(ours, rows, drawings)._asdict() for rule, rows in curves.items() if rows
    }
    both = evidence.of_rule(BOTH)
    if both and curves[REUSE]:
        values = list(both)
        row = both[values[_nearest(values, threshold)]]
        against[BOTH] = beside(row, curves[REUSE], drawings)._asdict()
    return against


def beside(
    ours: Sequence[FlightFigures], rows: Sequence[Sequence[FlightFigures]], drawings: Drawings
) -> Estimate:
    """Return the loss of streaming IoU of ours minus that of another way with as many encodes.

    The other way is a mixture of those two of its rows that save a little less and a little more;
    saving nothing loses nothing.
    """
    lost = [np.zeros(len(ours)), *(_lost(row) for row in rows)]
    savings = np.array([0.0, *(saved(row) for row in rows)])
    order = np.argsort(savings)
    place = saved(ours)
    mixed = np.array(
        [
            np.interp(place, savings[order], [lost[number][flight] for number in order])
            for flight in range(len(ours))
        ]
    )
    people = np.array([float(flight.loss.people) for flight in ours])
    return _quotient(drawings, _lost(ours) - mixed, people)


def _lost(row: Sequence[FlightFigures]) -> FloatArray:
    return np.array([flight.loss.iou for flight in row])


def _is_less(difference: Mapping[str, float] | None) -> bool:
    return difference is not None and difference['high'] < 0.0


def _splits(delta: float, results: Sequence[Split]) -> dict[str, Any]:
    """Describe what halves of the seeds certified, and how it held in the other halves."""
    held = [result for result in results if result.certificate.holds]
    lost = [r.loss.iou / max(r.loss.people, 1) for r in held]
    missed = [r.loss.missed / max(r.loss.held, 1) for r in held]
    return {
        'delta': delta,
        'splits': len(results),
        'certified': len(held),
        'kept': sum(max(pair) <= delta for pair in zip(lost, missed, strict=True)),
        'iou_loss': float(np.mean(lost)) if lost else math.nan,
        'largest_iou_loss': max(lost, default=math.nan),
        'miss_loss': float(np.mean(missed)) if missed else math.nan,
        'saved': float(np.mean([r.saved for r in results])) if results else math.nan,
    }


def _drift(
    name: str, certificate: Certificate | None, flights: Sequence[Sequence[float]]
) -> dict[str, Any]:
    """Say when the monitor would have raised an alarm, one flight after the other."""
    known = FlightLoss() if certificate is None else certificate.total
    monitor = DriftMonitor(AuditParameters(), known.early_lost / max(known.early, 1))
    audits = [loss for flight in flights for loss in flight]
    alarms = [count for count, loss in enumerate(audits, 1) if monitor.observe(loss)]
    return {
        'set': name,
        'flights': len(flights),
        'audits': len(audits),
        'loss': sum(audits) / len(audits) if audits else math.nan,
        'first_alarm': alarms[0] if alarms else None,
        'off': alarms[2] if len(alarms) > 2 else None,
    }


def _certificate(certificate: Certificate) -> dict[str, Any]:
    lost = certificate.total
    return {
        'delta': certificate.delta,
        'holds': certificate.holds,
        'threshold': certificate.threshold,
        'confidence': certificate.confidence,
        'seeds': certificate.seeds,
        'early': lost.early,
        'iou_loss': lost.iou / lost.people if lost.people else math.nan,
        'miss_loss': lost.missed / lost.held if lost.held else math.nan,
        'early_loss': lost.early_lost / lost.early if lost.early else math.nan,
        'p_value': certificate.p_value,
    }


def render_gate_page(report: Mapping[str, Any], figures: Sequence[FigureFile]) -> str:
    """Render the page from the content of report.json and the figures."""
    return render_page(
        'gate.html.j2',
        report,
        figures,
        {'rule': lambda name: NAMES.get(name, name), 'points': _points},
        folder=TEMPLATES,
        title=report['bundle']['name'],
        summary=gate_summary(report),
        tiles=_tiles(report),
    )


def gate_summary(report: Mapping[str, Any]) -> str:
    """Say in plain words what came of it."""
    delta, ours = f'{100.0 * report["delta"]:g} points', report['ours']
    if not report['certified']:
        return (
            f'No threshold is certified to lose at most {delta} of streaming IoU with the '
            f'{report["calibration_flights"]} flights there are: this gate is not used.'
        )
    verdict = (
        'It is worth flying.'
        if report['ships']
        else f'It is not worth flying: that takes {percent(LEAST_SAVED, 0)} of the encodes, a '
        'smaller loss than a lower rate of the camera at as many, and than more reuse on top of '
        'reuse.'
    )
    return (
        f'Certified: skipping loses at most {delta} of streaming IoU. In '
        f'{report["judged_flights"]} flights it lost {_points(ours["iou_loss"])}, and '
        f'{percent(ours["saved"]["value"])} of the camera encodes were saved. {verdict}'
    )


def _points(estimate: Mapping[str, float | None]) -> str:
    """Write an estimate in points, with its interval where it has one."""
    value, low, high = (estimate[name] for name in ('value', 'low', 'high'))
    if value is None:
        return '–'
    words = f'{100.0 * value:.2f}'
    return (
        words if low is None or high is None else f'{words} ({100 * low:.2f} to {100 * high:.2f})'
    )


def _tiles(report: Mapping[str, Any]) -> list[Tile]:
    ours = report['ours']
    return [
        Tile('threshold', number(ours['value'], 3), 'certified' if report['certified'] else ''),
        Tile('saved', percent(ours['saved']['value']), 'of camera encodes'),
        Tile('loss', _points(ours['iou_loss']), 'points of streaming IoU'),
        Tile('more missed', _points(ours['miss_loss']), 'points, of people kept in view'),
        *(
            Tile(f'against {NAMES[name]}', _points(difference), 'points, at equal encodes')
            for name, difference in report['against'].items()
        ),
    ]
