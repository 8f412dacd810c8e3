"""`mmedge lab evaluate-bundle`: from a bundle and a set to a report."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml
from bag_fixtures import write_bag
from tiny_bundle import write_tiny_bundle
from truth_fixtures import recording_with_truth
from typer.testing import CliRunner, Result

from mmedge_lab.judging.bundle_evaluation import EvaluationRequest, bundle_bench
from mmedge_lab.judging.bundle_under_test import NOMINAL, open_bundle
from mmedge_ros.commands.main import app


@pytest.fixture(scope='module')
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_bundle(tmp_path_factory.mktemp('models') / 'tiny')


@pytest.fixture(scope='module')
def flights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp('flights')
    for name in ('first', 'second'):
        write_bag(folder / name, messages=recording_with_truth(0.8))
    return folder


def run(*arguments: object) -> Result:
    return CliRunner().invoke(
        app, ['lab', 'evaluate-bundle', *map(str, arguments)], env={'NO_COLOR': '1'}
    )


def refusal(result: Result) -> str:
    assert (result.exit_code, result.stdout) == (1, ''), result.output
    assert 'Traceback' not in result.stderr
    return result.stderr.splitlines()[-1]


def table(out: Path, title: str = '') -> dict[str, Any]:
    content = json.loads((out / 'evaluate-bundle.json').read_text())
    tables = [table for table in content['tables'] if table['title'] == title]
    return {row['name']: row for row in tables[0]['rows']} if tables else {}


def test_flights_are_judged_by_processes_of_their_own_and_once_only(
    tmp_path: Path, bundle: Path, flights: Path
) -> None:
    options = ('--configurations', 'full', '--jobs', 2, '--out', tmp_path)
    result = run(bundle, flights, *options)
    assert result.exit_code == 0, result.output
    assert result.stdout.strip() == str(tmp_path / 'evaluate-bundle.html')
    assert 'only 2 seeds of flights' in result.stderr
    rows = table(tmp_path)
    assert list(rows) == ['fusion', 'camera_only', 'radar_only']
    # The detector is exact: what is missed is the time before a track is confirmed.
    assert rows['fusion']['values']['mean_iou']['value'] > 0.4
    assert rows['fusion']['values']['precision']['value'] == 1.0
    assert rows['fusion']['against']['camera_only']['place_recall']['value'] >= 0.0
    assert table(tmp_path, 'fusion by light')
    assert table(tmp_path, 'configurations') == {}
    for name in ('evaluate-bundle.html', 'evaluate-bundle.md'):
        assert (tmp_path / name).is_file()
    stamps = {path: path.stat().st_mtime_ns for path in (tmp_path / 'judged').iterdir()}
    assert run(bundle, flights, *options).exit_code == 0
    assert stamps
    assert all(path.stat().st_mtime_ns == stamp for path, stamp in stamps.items())


def test_strategies_are_judged_anew_at_other_levels(
    tmp_path: Path, bundle: Path, flights: Path
) -> None:
    """Their rows are named alike at whatever levels are the highest of those chosen."""
    opened = open_bundle(bundle, NOMINAL)
    chosen = [
        EvaluationRequest(bundle, 'set', (flights / 'first',), tmp_path, levels=levels)
        for levels in ((), ('large',), ('small',))
    ]
    every, large, small = (bundle_bench(request, opened).key for request in chosen)
    assert every == large != small


def test_configurations_differ_by_rate_and_level_and_are_entered_into_the_bundle(
    tmp_path: Path, bundle: Path, flights: Path
) -> None:
    own = Path(shutil.copytree(bundle, tmp_path / 'tiny'))
    out = tmp_path / 'out'
    result = run(own, flights, '--flights', 1, '--jobs', 1, '--enter', '--out', out)
    assert result.exit_code == 0, result.output
    assert len(table(out, 'configurations')) == 2 * 3 * 3
    entry = yaml.safe_load((own / 'manifest.yaml').read_text())['accuracy']
    assert len(entry['configurations']) == 18
    assert entry['flights'] == ['first']
    assert {row['camera'][1] for row in entry['configurations']} == {'small', 'large'}


def test_a_corrupt_bundle_is_one_sentence(tmp_path: Path, flights: Path) -> None:
    bundle = write_tiny_bundle(tmp_path / 'tiny')
    weights = bundle / 'large.onnx'
    content = bytearray(weights.read_bytes())
    content[100] ^= 0xFF
    weights.write_bytes(content)
    assert 'SHA-256' in refusal(run(bundle, flights, '--out', tmp_path / 'out'))
    weights.unlink()
    assert str(weights) in refusal(run(bundle, flights, '--out', tmp_path / 'out'))
    assert 'no model bundle' in refusal(run(flights, flights, '--out', tmp_path / 'out'))
