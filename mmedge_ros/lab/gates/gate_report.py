"""The report of a gate: what it saves and how often it is wrong, beside rules and ceiling."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from mmedge_ros.data_types import FloatArray
from mmedge_ros.lab.evaluation.flight_bootstrap import Drawings, interval
from mmedge_ros.lab.gates.certificate import Certificate
from mmedge_ros.lab.gates.loop_figures import FlightFigures, GateFigures, saved, saving_ceiling
from mmedge_ros.lab.reporting.page import Tile, number, percent, render_page
from mmedge_ros.lab.reporting.report_files import write_report
from mmedge_ros.records.plain_values import plain_values
from mmedge_ros.skipping.audits import AuditParameters, DriftMonitor

if TYPE_CHECKING:
    from mmedge_ros.lab.reporting.figure_style import FigureFile

PAGE = 'report.html'
# Promises that are certified, and those that are looked at across splits.
ALPHAS = (0.02, 0.05, 0.1)
SPLIT_ALPHAS = (0.02, 0.03, 0.05, 0.07, 0.1, 0.15, 0.2)
FIXED = 0.5
NAMES = {
    'ours': 'this gate',
    'fixed': 'this gate at 0.5',
    'max_score': 'best score',
    'random': 'at random',
}
_UNITS, _SENSED_SHARE = 15, 0.5
_DIGITS = 5


class Split(Protocol):
    """A threshold certified by one half of the flights, and what it does in the other."""

    @property
    def certificate(self) -> Certificate: ...
    @property
    def early(self) -> int: ...
    @property
    def differing(self) -> int: ...
    @property
    def saved(self) -> float: ...


@dataclass(frozen=True, eq=False)
class GateEvidence:
    """What was replayed: of each threshold and rival the figures of the same judged flights.

    ``rivals`` are keyed by rule and value; ``splits`` by alpha; ``alpha`` is the wanted one;
    ``audits`` say by set and flight whether audited decisions were equal; ``seeds`` are those of
    the judged flights, () where each has its own.
    """

    rows: tuple[tuple[FlightFigures, ...], ...]
    thresholds: tuple[float, ...]
    rivals: Mapping[str, Sequence[FlightFigures]]
    certificates: tuple[Certificate, ...]
    splits: Mapping[float, Sequence[Split]]
    alpha: float
    audits: Mapping[str, Sequence[Sequence[bool]]] = field(default_factory=dict)
    seeds: tuple[str, ...] = ()

    @property
    def judged(self) -> int:
        """How many flights were judged."""
        return len(self.rows[0])


def gate_report(evidence: GateEvidence) -> dict[str, Any]:
    """Return all figures as plain values; None where there is no figure."""
    drawings = Drawings.of(evidence.seeds or range(evidence.judged))
    ceiling = saving_ceiling(_UNITS, _SENSED_SHARE)
    chosen = _chosen(evidence)
    report = {
        'judged_flights': evidence.judged,
        'alpha': evidence.alpha,
        'ceiling': ceiling,
        'certificates': [_certificate(c) for c in evidence.certificates],
        'certified': bool(chosen is not None),
        'thresholds': [
            _rule('gate', threshold, row, drawings)
            for threshold, row in zip(evidence.thresholds, evidence.rows, strict=True)
        ],
        'rules': _rules(evidence, chosen, drawings),
        'reliability': _figures(_own(evidence, chosen)[1])['reliability'],
        'splits': [_splits(alpha, results) for alpha, results in evidence.splits.items()],
        'drift': [_drift(name, evidence, flights) for name, flights in evidence.audits.items()],
    }
    plain: dict[str, Any] = plain_values(report, _DIGITS)
    return plain


def write_gate_report(report: Mapping[str, Any], folder: Path) -> None:
    """Write report.json, the figures and report.html.

    :raises ReportError: if the folder or a file in it cannot be written
    """
    from mmedge_ros.lab.gates.gate_figures import GATE_FIGURES, draw_gate

    figures = draw_gate(report)
    pages = {PAGE: render_gate_page(report, figures)}
    write_report(report, folder, pages, figures, GATE_FIGURES)


def _chosen(evidence: GateEvidence) -> float | None:
    """Return the threshold that keeps the wanted promise."""
    holding = [c for c in evidence.certificates if c.holds and c.alpha <= evidence.alpha + 1e-12]
    return max(holding, key=lambda c: c.alpha).threshold if holding else None


def _own(evidence: GateEvidence, chosen: float | None) -> tuple[float, Sequence[FlightFigures]]:
    """Return the row that speaks for the gate: the certified one, or that of 0.5."""
    wanted = FIXED if chosen is None else chosen
    places = range(len(evidence.thresholds))
    place = min(places, key=lambda p: abs(evidence.thresholds[p] - wanted))
    return evidence.thresholds[place], evidence.rows[place]


def _rules(
    evidence: GateEvidence, chosen: float | None, drawings: Drawings
) -> list[dict[str, Any]]:
    """Put the gate beside its rivals: those that can be tuned save about as much as it does."""
    fixed, row = _own(evidence, None)
    rules = [_rule('fixed', fixed, row, drawings)]
    goal = row
    if chosen is not None:
        threshold, goal = _own(evidence, chosen)
        rules.insert(0, _rule('ours', threshold, goal, drawings))
    for name in sorted({key.split()[0] for key in evidence.rivals}):
        own = {key: row for key, row in evidence.rivals.items() if key.split()[0] == name}
        key = min(own, key=lambda key: abs(_saved(own[key]) - _saved(goal)))
        rules.append(_rule(name, float(key.split()[1]), own[key], drawings))
    return rules


def _rule(
    name: str, value: float, flights: Sequence[FlightFigures], drawings: Drawings
) -> dict[str, Any]:
    """Describe a rule, with intervals from drawing seeds anew."""
    early = np.array([float(flight.outcome.early) for flight in flights])
    differing = np.array([float(flight.outcome.differing) for flight in flights])
    units = np.array([float(sum(w.full for w in flight.windows)) for flight in flights])
    encoded = np.array([float(sum(w.encoded for w in flight.windows)) for flight in flights])
    return {
        **_figures(flights),
        'name': name,
        'threshold': value,
        'disagreement_interval': _interval(drawings, differing, early),
        'saved_interval': _interval(drawings, units - encoded, units),
        'saving_decisions': _saving(flights),
        'streaming_difference': _streaming(drawings, flights),
    }


def _saving(flights: Sequence[FlightFigures]) -> dict[str, float]:
    """Count early decisions in whose stride an encode was saved, and how often these differ.

    Those made when all pictures of a window are in differ less and save nothing.
    """
    differs = [
        window.differs
        for flight in flights
        for window in flight.windows
        if window.is_early and window.encoded < window.full
    ]
    share = sum(differs) / len(differs) if differs else math.nan
    return {'early': len(differs), 'disagreement': share}


def _figures(flights: Sequence[FlightFigures]) -> dict[str, Any]:
    return GateFigures(flights, saving_ceiling(_UNITS, _SENSED_SHARE)).report()


def _streaming(drawings: Drawings, flights: Sequence[FlightFigures]) -> dict[str, float]:
    """Streaming mean IoU with the gate minus without, in the same flights."""
    with_gate, without = (
        (np.array([s[0] for s in streams]), np.array([float(s[1]) for s in streams]))
        for streams in ([f.stream for f in flights], [f.reference_stream for f in flights])
    )
    drawn = _quotients(drawings, *with_gate) - _quotients(drawings, *without)
    low, high = interval(drawn, drawings.count(with_gate[1] > 0.0))
    totals = [
        float(above.sum() / below.sum()) if below.sum() else math.nan
        for above, below in (with_gate, without)
    ]
    return {'value': totals[0] - totals[1], 'low': low, 'high': high}


def _interval(drawings: Drawings, above: FloatArray, below: FloatArray) -> list[float]:
    return list(interval(_quotients(drawings, above, below), drawings.count(below > 0.0)))


def _quotients(drawings: Drawings, above: FloatArray, below: FloatArray) -> FloatArray:
    with np.errstate(invalid='ignore', divide='ignore'):
        drawn: FloatArray = (drawings.weights @ above) / (drawings.weights @ below)
    return drawn


def _saved(flights: Sequence[FlightFigures]) -> float:
    return saved([window for flight in flights for window in flight.windows])


def _splits(alpha: float, results: Sequence[Split]) -> dict[str, Any]:
    """Describe what halves of the flights certified, and how it held in the other halves."""
    held = [result for result in results if result.certificate.holds]
    acting = [result for result in held if result.early]
    wrong = [result.differing / result.early for result in acting]
    return {
        'alpha': alpha,
        'splits': len(results),
        'certified': len(held),
        'kept': sum(share <= alpha for share in wrong) + len(held) - len(acting),
        'disagreements': wrong,
        'disagreement': float(np.mean(wrong)) if wrong else math.nan,
        'saved': float(np.mean([r.saved for r in results])) if results else math.nan,
        'thresholds': [result.certificate.threshold for result in held],
    }


def _drift(name: str, evidence: GateEvidence, flights: Sequence[Sequence[bool]]) -> dict[str, Any]:
    """Say when the monitor would have raised an alarm, one flight after the other."""
    monitor = DriftMonitor(AuditParameters(), evidence.alpha)
    alarms = []
    off: int | None = None
    audits = [agreed for flight in flights for agreed in flight]
    for count, agreed in enumerate(audits, 1):
        if monitor.observe(agreed):
            alarms.append(count)
        if monitor.is_off:
            off = count
            break
    return {
        'set': name,
        'flights': len(flights),
        'audits': len(audits),
        'agreement': sum(audits) / len(audits) if audits else math.nan,
        'first_alarm': alarms[0] if alarms else None,
        'off': off,
    }


def _certificate(certificate: Certificate) -> dict[str, Any]:
    return {
        'alpha': certificate.alpha,
        'holds': certificate.holds,
        'threshold': certificate.threshold,
        'confidence': certificate.confidence,
        'method': certificate.method,
        'flights': certificate.flights,
        'early': certificate.early,
        'differing': certificate.differing,
        'p_value': certificate.p_value,
    }


def render_gate_page(report: Mapping[str, Any], figures: Sequence[FigureFile]) -> str:
    """Render the page from the content of report.json and the figures."""
    return render_page(
        'gate.html.j2',
        report,
        figures,
        {'rule': lambda name: NAMES.get(name, name)},
        title=report['bundle']['name'],
        summary=gate_summary(report),
        tiles=_tiles(report),
    )


def gate_summary(report: Mapping[str, Any]) -> str:
    """Say in plain words what came of it."""
    alpha = percent(report['alpha'], 0)
    if not report['certified']:
        return (
            f'No threshold is certified to keep differing early decisions at or below {alpha} '
            f'with the {report["calibration_flights"]} flights there are: this gate is not used.'
        )
    ours = report['rules'][0]
    return (
        f'Certified: at most {alpha} of early decisions differ from what the full window gives. '
        f'In {report["judged_flights"]} flights {percent(ours["disagreement"])} of '
        f'{ours["early"]} did, and {percent(ours["saved"])} of the camera encodes were saved, of '
        f'{percent(report["ceiling"])} that the rule allows.'
    )


def _tiles(report: Mapping[str, Any]) -> list[Tile]:
    row = report['rules'][0]
    name = NAMES.get(row['name'], row['name'])
    stream = row['streaming_difference']
    decided = row['decided_before_end_ms'].get('p50')
    return [
        Tile('threshold', number(row['threshold'], 3), name),
        Tile('differing', percent(row['disagreement']), f'of {row["early"]} early decisions'),
        Tile(
            'saved',
            percent(row['saved']),
            f'of camera encodes; at most {percent(report["ceiling"])}',
        ),
        Tile(
            'saved, easy half',
            percent(row['easy_half']['saved']),
            'windows the full run does well',
        ),
        Tile(
            'streaming mean IoU',
            number(stream['value'], 4),
            f'change; {number(stream["low"], 4)} to {number(stream["high"], 4)}',
        ),
        Tile('decided before the end', number(decided, 0, ' ms'), 'median of all windows'),
    ]
