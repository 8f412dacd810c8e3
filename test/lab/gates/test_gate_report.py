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

from mmedge_ros.lab.gates import gate_figures
from mmedge_ros.lab.gates.certificate import Certificate
from mmedge_ros.lab.gates.gate_figures import GATE_FIGURES, draw_gate
from mmedge_ros.lab.gates.gate_report import (
    PAGE,
    GateEvidence,
    gate_report,
    gate_summary,
    render_gate_page,
    write_gate_report,
)
from mmedge_ros.lab.reporting.figure_style import render
from mmedge_ros.lab.reporting.report_files import REPORT

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
    'method': 'student',
}


class Split(NamedTuple):
    certificate: Certificate
    early: int
    differing: int
    saved: float


def certificate(alpha: float, threshold: float) -> Certificate:
    return Certificate(alpha, 0.9, 'student', threshold, 12, 240, 6, 0.04)


def evidence(threshold: float = 0.9) -> GateEvidence:
    """Six flights at two thresholds; 0.9 is right more often and saves less."""
    none = Split(certificate(0.05, math.inf), 0, 0, 0.0)
    good, bad = (Split(certificate(0.05, 0.9), 100, wrong, 0.2) for wrong in (4, 6))
    return GateEvidence(
        (
            tuple(flight(early=20, differing=n % 2, confidence=0.95) for n in range(6)),
            tuple(flight(early=30, differing=6, confidence=0.6) for _ in range(6)),
        ),
        (0.9, 0.5),
        {
            'random 0.95': [flight(early=5, differing=2)] * 6,
            'random 0.8': [flight(early=18, differing=9)] * 6,
            'max_score 0.7': [flight(early=25, differing=8)] * 6,
        },
        (certificate(0.02, math.inf), certificate(0.05, threshold)),
        {0.02: (), 0.05: (none, good, bad)},
        0.05,
        {'test': [(True,) * 20] * 3, 'shifted': [(True, False, False) * 5] * 3},
    )


@pytest.fixture(autouse=True)
def _coarse(monkeypatch: pytest.MonkeyPatch) -> None:
    """Draw with few dots: what takes longest is to compress them."""
    monkeypatch.setattr(
        gate_figures, 'render', lambda draw, width, height: render(draw, width, height, dpi=40)
    )


def reported(threshold: float = 0.9) -> dict[str, Any]:
    return DESCRIBED | gate_report(evidence(threshold))


def test_the_certified_threshold_speaks_for_the_gate() -> None:
    report = reported()
    rules = {row['name']: row for row in report['rules']}
    ours = rules['ours']
    assert report['certified']
    assert ours['threshold'] == 0.9
    assert ours['disagreement'] == pytest.approx(3 / 120)
    assert ours['saved'] == pytest.approx(20 / 120, abs=1e-4)
    assert ours['saved_interval'] == [ours['saved']] * 2
    low, high = ours['disagreement_interval']
    assert low < ours['disagreement'] < high
    assert ours['easy_half']['saved'] == pytest.approx(1 / 3, abs=1e-4)
    assert ours['hard_half']['saved'] == 0.0
    assert rules['fixed']['disagreement'] == pytest.approx(0.2)
    assert ours['saving_decisions'] == {'early': 120, 'disagreement': ours['disagreement']}


def test_the_intervals_are_drawn_by_seed() -> None:
    def interval_of(seeds: tuple[str, ...]) -> list[float | None]:
        report = gate_report(replace(evidence(), seeds=seeds))
        found: list[float | None] = report['rules'][0]['disagreement_interval']
        return found

    apart, in_pairs = interval_of(()), interval_of(('a', 'b', 'a', 'b', 'a', 'b'))
    assert apart == interval_of(tuple('abcdef'))
    assert in_pairs[1] - in_pairs[0] > apart[1] - apart[0]
    assert interval_of(('same',) * 6) == [None, None]


def test_a_rival_is_shown_where_it_saves_as_much() -> None:
    rules = {row['name']: row for row in reported()['rules']}
    assert rules['random']['threshold'] == 0.8
    assert rules['max_score']['threshold'] == 0.7


def test_the_change_of_streaming_iou_has_an_interval() -> None:
    change = reported()['rules'][0]['streaming_difference']
    assert change['low'] < change['value'] < change['high'] <= 0.0
    assert change['value'] == pytest.approx(-0.01 * 3 / 240, abs=1e-5)


def test_splits_that_certify_nothing_save_nothing() -> None:
    row = next(row for row in reported()['splits'] if row['alpha'] == 0.05)
    assert (row['splits'], row['certified'], row['kept']) == (3, 2, 1)
    assert row['saved'] == pytest.approx(0.4 / 3, abs=1e-4)
    assert row['disagreements'] == [0.04, 0.06]


def test_audits_of_other_flights_raise_an_alarm() -> None:
    usual, shifted = reported()['drift']
    assert (usual['set'], usual['audits'], usual['agreement']) == ('test', 60, 1.0)
    assert usual['first_alarm'] is usual['off'] is None
    assert 3 <= shifted['first_alarm'] < shifted['off'] <= 45
    assert shifted['agreement'] == pytest.approx(1 / 3, abs=1e-4)


def test_without_a_certificate_nothing_is_claimed() -> None:
    report = reported(math.inf)
    assert not report['certified']
    assert [row['name'] for row in report['rules']] == ['fixed', 'max_score', 'random']
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
    assert 'at random' in PageOutline(page).text


def test_foreign_text_on_the_page_stays_text() -> None:
    report = reported()
    report['bundle'] = {'name': '<script>x</script>', 'path': '<b>'}
    assert '<script>x</script>' in PageOutline(render_gate_page(report, [])).text
