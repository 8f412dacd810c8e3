"""The report of a gate: figures, charts and the page."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hand_made_gate_figures import flight
from page_outline import PageOutline

from mmedge_lab.judging.flight_bootstrap import Drawings
from mmedge_lab.training.gates import gate_figures
from mmedge_lab.training.gates.certificate import Certificate, FlightLoss
from mmedge_lab.training.gates.gate_figures import GATE_FIGURES, draw_gate
from mmedge_lab.training.gates.gate_report import (
    PAGE,
    GateEvidence,
    beside,
    gate_report,
    gate_summary,
    render_gate_page,
    write_gate_report,
)
from mmedge_lab.training.gates.loop_figures import FlightFigures
from mmedge_ros.report.figure_style import render
from mmedge_ros.report.report_files import REPORT

DESCRIBED = {
    'bundle': {'name': 'people', 'path': 'models/people'},
    'software': {'version': '1', 'git': ''},
    'strategy': 'decision',
    'camera_level': 'medium',
    'profile': 'nominal',
    'sets': {'samples': 'a', 'calibration': 'b'},
    'fit': {
        'samples': 900,
        'flights': 9,
        'epochs': 20,
        'held_out_loss': 0.4,
        'constant_loss': 0.6,
    },
    'calibration_flights': 12,
    'confidence': 0.9,
}
KNOWN = FlightLoss(6000, 30.0, 3000, 0, 120, 12.0)


class Split(NamedTuple):
    certificate: Certificate
    loss: FlightLoss
    saved: float


def certificate(delta: float, threshold: float) -> Certificate:
    return Certificate(delta, 0.9, threshold, 12, KNOWN, 0.04)


def flights(lost: float, saved: float) -> tuple[FlightFigures, ...]:
    return tuple(flight(lost + 0.001 * number, saved) for number in range(6))


def evidence(threshold: float = 0.9, saved: float = 0.2) -> GateEvidence:
    """Six flights; the gate loses half a point, where thinning loses a whole one."""
    none, good, bad = (
        Split(certificate(0.01, limit), FlightLoss(1000, lost, 500, 0, 20, 2.0), 0.2 * (lost > 0))
        for limit, lost in ((math.inf, 0.0), (0.9, 4.0), (0.9, 12.0))
    )
    return GateEvidence(
        (flights(0.0025, saved), flights(0.05, 0.4)),
        (0.9, 0.5),
        {
            'thinned 0.8': flights(0.0075, 0.2),
            'thinned 0.5': flights(0.1, 0.5),
            'reuse 0.5': flights(0.0025, 0.5),
            'gate on reuse 0.9': flights(0.0, 0.5),
        },
        (certificate(0.005, math.inf), certificate(0.01, threshold)),
        {0.005: (), 0.01: (none, good, bad)},
        0.01,
        {'test': [(0.1,) * 20] * 3, 'shifted': [(0.2, 1.0, 0.6) * 5] * 3},
    )


@pytest.fixture(autouse=True)
def _coarse(monkeypatch: pytest.MonkeyPatch) -> None:
    """Draw with few dots: what takes longest is to compress them."""
    monkeypatch.setattr(
        gate_figures, 'render', lambda draw, width, height: render(draw, width, height, dpi=40)
    )


def reported(threshold: float = 0.9, saved: float = 0.2) -> dict[str, Any]:
    return DESCRIBED | gate_report(evidence(threshold, saved))


def test_the_certified_threshold_speaks_for_the_gate() -> None:
    report = reported()
    ours = report['ours']
    assert report['certified']
    assert ours['value'] == 0.9
    assert ours['saved']['value'] == pytest.approx(0.2)
    assert ours['iou_loss']['value'] == pytest.approx(0.005)
    assert ours['iou_loss']['low'] < 0.005 < ours['iou_loss']['high']
    assert ours['shown_loss'] == pytest.approx(0.08)


def test_the_intervals_are_drawn_by_seed() -> None:
    def width_of(seeds: tuple[str, ...]) -> float | None:
        found = gate_report(replace(evidence(), seeds=seeds))['ours']['iou_loss']
        return None if found['low'] is None else found['high'] - found['low']

    apart, in_halves = width_of(()), width_of(('a', 'a', 'a', 'b', 'b', 'b'))
    assert apart == width_of(tuple('abcdef'))
    assert in_halves > apart
    assert width_of(('same',) * 6) is None


def test_rivals_are_compared_at_as_many_encodes() -> None:
    drawings = Drawings.of(range(6))
    rows = [flights(0.01, 0.2), flights(0.04, 0.5)]
    between = beside(flights(0.02, 0.35), rows, drawings)
    assert between.value == pytest.approx(0.02 - 0.025)
    assert between.high < 0.0
    # Saving nothing loses nothing.
    little = beside([flight(0.004, 0.1)] * 6, [[flight(0.01, 0.2)] * 6], drawings)
    assert little.value == pytest.approx(0.004 - 0.005)


def test_a_gate_is_worth_flying_where_it_saves_enough_and_loses_least() -> None:
    assert reported()['ships']
    assert 'is worth flying' in gate_summary(reported())
    assert not reported(saved=0.09)['ships']
    assert not reported(math.inf)['ships']
    slower = replace(evidence(), rivals={**evidence().rivals, 'thinned 0.8': flights(0.0, 0.2)})
    assert not gate_report(slower)['ships']
    more = {**evidence().rivals, 'gate on reuse 0.9': flights(0.004, 0.5)}
    assert not gate_report(replace(evidence(), rivals=more))['ships']
    assert 'not worth flying' in gate_summary(reported(saved=0.09))


def test_splits_that_certify_nothing_save_nothing() -> None:
    row = next(row for row in reported()['splits'] if row['delta'] == 0.01)
    assert (row['splits'], row['certified'], row['kept']) == (3, 2, 1)
    assert row['saved'] == pytest.approx(0.4 / 3, abs=1e-4)
    assert row['largest_iou_loss'] == pytest.approx(0.012)


def test_audits_of_other_flights_raise_an_alarm() -> None:
    usual, shifted = reported()['drift']
    assert (usual['set'], usual['audits'], usual['loss']) == ('test', 60, 0.1)
    assert usual['first_alarm'] is usual['off'] is None
    assert 2 <= shifted['first_alarm'] < shifted['off'] <= 45
    assert shifted['loss'] == pytest.approx(0.6)


def test_without_a_certificate_nothing_is_claimed() -> None:
    report = reported(math.inf)
    assert not report['certified']
    assert report['ours']['value'] == 0.5
    assert 'No threshold is certified' in gate_summary(report)
    render_gate_page(report, draw_gate(report))


def test_everything_is_drawn_and_written(tmp_path: Path) -> None:
    report = reported()
    write_gate_report(report, tmp_path)
    written = json.loads((tmp_path / REPORT).read_text())
    assert written == report
    page = (tmp_path / PAGE).read_text()
    for name in GATE_FIGURES:
        assert (tmp_path / name).read_bytes().startswith(b'\x89PNG')
    assert page.count('data:image/png;base64,') >= len(GATE_FIGURES)
    assert 'this gate on reuse 2' in PageOutline(page).text


def test_foreign_text_on_the_page_stays_text() -> None:
    report = reported()
    report['bundle'] = {'name': '<script>x</script>', 'path': '<b>'}
    assert '<script>x</script>' in PageOutline(render_gate_page(report, [])).text
