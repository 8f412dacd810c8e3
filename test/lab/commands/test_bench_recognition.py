"""`mmedge lab bench recognition`: its files, its words, and how it ends."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from hand_made_crops import coloured_crops
from tiny_recogniser import CLASSES, write_tiny_recogniser
from typer.testing import CliRunner, Result

from mmedge_lab.commands.bench import bench_app

FIGURES = {'trade_off.png', 'taps.png', 'fast_memory.png', 'drift.png', 'lock_in.png'}


@pytest.fixture(autouse=True)
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv('COLUMNS', '200')
    # The tiny recogniser has three classes of its own.
    monkeypatch.setattr('mmedge_lab.rivals.smtm.bench_crops.CLASSES', CLASSES)


@pytest.fixture(scope='module')
def crops(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return coloured_crops(tmp_path_factory.mktemp('set') / 'crops', 60)


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    return write_tiny_recogniser(tmp_path / 'bundle')


def run(bundle: Path, crops: Path, out: Path) -> Result:
    options = ['--crops', crops, '--out', out, '--looks', 321, '--seeds', 2, '--watts', 5]
    return CliRunner().invoke(bench_app, ['recognition', str(bundle), *map(str, options)])


def without(bundle: Path, entry: str) -> None:
    """Take an entry out of the section of the recogniser, or all of it."""
    path = bundle / 'manifest.yaml'
    content = yaml.safe_load(path.read_text())
    del (content if entry == 'recogniser' else content['recogniser'])[entry]
    path.write_text(yaml.safe_dump(content))


def sentence(done: Result) -> str:
    assert done.exit_code == 1
    assert 'Traceback' not in done.output
    (line,) = [line for line in done.stderr.splitlines() if line.startswith('mmedge:')]
    return line


def test_figures_and_tables_of_all_methods_are_written(
    tmp_path: Path, bundle: Path, crops: Path
) -> None:
    done = run(bundle, crops, tmp_path / 'out')
    assert done.exit_code == 0, done.stderr
    assert {path.name for path in (tmp_path / 'out').iterdir()} == {*FIGURES, 'recognition.json'}
    report: dict[str, Any] = json.loads((tmp_path / 'out/recognition.json').read_text())
    rows = report['streams']['four active']
    assert rows['full']['saved']['value'] == 0.0
    assert rows['guarded eps=0.1']['lost']['value'] == 0.0
    assert rows['guarded eps=0.1']['early']['value'] > 0.7
    assert rows['heads eps=0.1']['lost']['value'] == 0.0
    assert rows['track labels']['exits'][0] > 0.8
    saved = report['whole_ms'] - rows['track labels']['ms']
    assert rows['track labels']['mj_saved'] == pytest.approx(5.0 * saved, abs=1e-3)
    assert report['lock_in']['guarded']['after_a_switch'] == 1.0
    assert report['bytes']['guarded'] > report['bytes']['printed'] > 0
    assert report['absent'] == {}
    assert 'guarded: guarded eps=' in done.stderr
    assert 'DeepCache-like' in done.stdout


def test_what_a_bundle_lacks_is_said_and_the_rest_is_judged(
    tmp_path: Path, bundle: Path, crops: Path
) -> None:
    without(bundle, 'memory')
    done = run(bundle, crops, tmp_path / 'out')
    assert done.exit_code == 0, done.stderr
    assert 'note: guarded is not judged: the bundle has no semantic memory' in done.stderr
    assert {path.name for path in (tmp_path / 'out').iterdir()} == {
        'trade_off.png',
        'taps.png',
        'recognition.json',
    }
    report = json.loads((tmp_path / 'out/recognition.json').read_text())
    assert 'heads eps=0.1' in report['streams']['drift']
    assert not any(name.startswith('guarded') for name in report['families'])


def test_a_bundle_without_a_recogniser_ends_with_a_sentence(
    tmp_path: Path, bundle: Path, crops: Path
) -> None:
    without(bundle, 'recogniser')
    assert '`mmedge lab train recogniser` makes one' in sentence(
        run(bundle, crops, tmp_path / 'out')
    )


def test_a_folder_without_crops_ends_with_a_sentence(tmp_path: Path, bundle: Path) -> None:
    (tmp_path / 'crops').mkdir()
    assert 'holds no crops; name the folder' in sentence(
        run(bundle, tmp_path / 'crops', tmp_path / 'out')
    )


def test_damaged_crops_end_with_a_sentence(tmp_path: Path, bundle: Path) -> None:
    (tmp_path / 'crops').mkdir()
    (tmp_path / 'crops/crops_00000.npz').write_bytes(b'PK')
    assert 'crops_00000.npz cannot be read' in sentence(
        run(bundle, tmp_path / 'crops', tmp_path / 'out')
    )
