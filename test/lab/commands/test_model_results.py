"""`mmedge lab model results`, and what `mmedge lab evaluate --results` makes of the same files."""

from __future__ import annotations

from pathlib import Path

import hand_made_results as made
import yaml
from tiny_bundle import write_tiny_bundle
from typer.testing import CliRunner, Result

from mmedge_ros.commands.main import app


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, ['lab', *map(str, arguments)], env={'NO_COLOR': '1'})


def test_results_go_with_the_bundle(tmp_path: Path) -> None:
    bundle = write_tiny_bundle(tmp_path / 'tiny')
    reports = [
        made.written(tmp_path / 'gate', made.gate()),
        made.written(tmp_path / 'ablations', made.ablations()),
    ]
    result = run('model', 'results', bundle, *reports)
    assert result.exit_code == 0, result.output
    assert 'entered: gate, ablations' in result.stderr
    assert result.stdout.strip() == str(bundle / 'manifest.yaml')
    measured = yaml.safe_load((bundle / 'manifest.yaml').read_text())['measured']
    assert measured['gate']['early'] == 120.0
    assert str(tmp_path) not in str(measured)


def test_a_wrong_file_is_one_sentence_and_changes_nothing(tmp_path: Path) -> None:
    bundle = write_tiny_bundle(tmp_path / 'tiny')
    before = (bundle / 'manifest.yaml').read_bytes()
    other = tmp_path / 'other.json'
    other.write_text('{}')
    for command in (('model', 'results', bundle, other), ('evaluate', '--results', other)):
        result = run(*command)
        assert (result.exit_code, result.stdout) == (1, '')
        assert 'is no measured result; name the report.json' in result.stderr.splitlines()[-1]
    assert (bundle / 'manifest.yaml').read_bytes() == before
