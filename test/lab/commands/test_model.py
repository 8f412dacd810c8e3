"""`mmedge lab model evaluate`: a detector of any origin is judged on flights."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from painted_flight import Seen, write_painted_flight
from tiny_detector import write_tiny_detector
from typer.testing import CliRunner, Result

from mmedge_lab.commands.model import model_app


@pytest.fixture
def carried(tmp_path: Path) -> Path:
    """A network that somebody brought here as a file."""
    return write_tiny_detector(tmp_path / 'carried.onnx')


def run(*arguments: object) -> Result:
    return CliRunner().invoke(model_app, [*map(str, arguments)], env={'COLUMNS': '200'})


def test_a_detector_is_judged_in_a_table_and_as_json(tmp_path: Path, carried: Path) -> None:
    person = Seen('person', (100.0, 50.0, 120.0, 110.0))
    write_painted_flight(tmp_path / 'set/flight', pictures=3, seen=[person])
    report = tmp_path / 'out' / 'figures.json'
    done = run('evaluate', carried, tmp_path / 'set', '--out', report)
    assert done.exit_code == 0, done.stderr
    (row,) = [line for line in done.stdout.splitlines() if '20 px and more' in line]
    assert row.split()[-4:] == ['3', '1.000', '1.000', '1.000']
    content = json.loads(report.read_text())
    assert (content['detector'], content['map50_20px']) == ('carried.onnx', 1.0)


def test_a_set_without_flights_ends_with_a_sentence(tmp_path: Path, carried: Path) -> None:
    (tmp_path / 'set').mkdir()
    done = run('evaluate', carried, tmp_path / 'set')
    assert done.exit_code == 1
    assert 'holds no flights' in done.stderr
