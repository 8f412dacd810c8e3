"""The first seconds of the demo's flight, replayed with what ships, keep their figures.

Networks give slightly other numbers on other processors, so each figure has a tolerance.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from mmedge_lab.simulation.flight import DEMO_FLIGHT, kept_flight
from mmedge_ros.commands.main import app
from mmedge_ros.encoding.bundle.default_model import default_detector

ROOT = Path(__file__).resolve().parents[2]
PROFILE = ROOT / 'config/profiles/default.yaml'
DEFAULT = ROOT / 'models/flight_people'

SECONDS = 8.0
# figure: (with flight_people, with fused_people, tolerance)
FIGURES = {
    'mean_iou': (0.693, 0.694, 0.01),
    'streaming_mean_iou': (0.647, 0.649, 0.01),
    'streaming_mean_iou_decisions': (0.600, 0.594, 0.01),
    'recall': (0.904, 0.915, 0.02),
    'precision': (0.975, 0.989, 0.02),
    'range_error_m': (0.117, 0.095, 0.03),
}


@pytest.fixture(scope='session')
def flight(tmp_path_factory: pytest.TempPathFactory) -> Path:
    wanted = replace(DEMO_FLIGHT, seconds=SECONDS)
    return kept_flight(tmp_path_factory.mktemp('demo') / 'flight', wanted, lambda _: None)


def test_the_default_bundle_of_a_simulated_flight_fuses_by_rules_that_no_network_beats() -> None:
    assert default_detector(simulated=True).resolve() == DEFAULT


@pytest.mark.timeout(400)
@pytest.mark.parametrize('column', [0, 1], ids=['default bundle', 'fused_people'])
@pytest.mark.usefixtures('undrawn')
def test_the_demo_flight_keeps_its_figures(flight: Path, tmp_path: Path, column: int) -> None:
    named = ['--detector', str(ROOT / 'models/fused_people')] if column else []
    arguments = ['replay', str(flight), '--profile', str(PROFILE), '--out', str(tmp_path)]
    result = CliRunner().invoke(app, [*arguments, *named], env={'NO_COLOR': '1'})
    assert result.exit_code == 0, result.output
    found_by = (
        f'people are found by {("flight_people", "fused_people")[column]}, which learned from'
    )
    assert result.stderr.index(found_by) < result.stderr.index('81 decisions of 81 windows')
    report = json.loads((tmp_path / 'report.json').read_text())
    assert report['decisions'] == report['windows'] == 81
    accuracy = report['accuracy']
    measured = {name: accuracy[name] for name in FIGURES}
    assert measured == {
        name: pytest.approx(row[column], abs=row[2]) for name, row in FIGURES.items()
    }
