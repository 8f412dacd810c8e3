"""Replaying every flight of a set."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from bag_fixtures import recording, write_bag
from truth_fixtures import recording_with_truth
from typer.testing import CliRunner, Result

from mmedge_ros.commands.main import app

pytestmark = pytest.mark.usefixtures('undrawn')


def run(*arguments: object) -> Result:
    return CliRunner().invoke(
        app, ['lab', 'replay-set', *map(str, arguments)], env={'NO_COLOR': '1'}
    )


def test_each_flight_gets_a_report_and_all_of_them_one_table(
    tmp_path: Path, detector: Path
) -> None:
    for name in ('first', 'second'):
        write_bag(tmp_path / 'set' / name, messages=recording_with_truth(1.0))
    out = tmp_path / 'out'
    result = run(tmp_path / 'set', '--out', out, '--detector', detector)
    assert result.exit_code == 0, result.output
    assert '| meadow_day_near |' in result.stdout
    tables = json.loads((out / 'replay-set.json').read_text())['tables']
    assert [row['name'] for table in tables for row in table['rows']] == [
        'all flights',
        'meadow_day_near',
    ]
    for name in ('first', 'second'):
        assert json.loads((out / name / 'report.json').read_text())['accuracy'] is not None


def test_flights_without_truth_have_reports_but_no_table(tmp_path: Path, detector: Path) -> None:
    write_bag(tmp_path / 'set' / 'only', messages=recording(0.5))
    result = run(tmp_path / 'set', '--out', tmp_path / 'out', '--detector', detector)
    assert (result.exit_code, result.stdout) == (0, '')
    assert 'ground truth' in result.stderr
    assert (tmp_path / 'out/only/report.html').is_file()
