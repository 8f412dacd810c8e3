"""`mmedge lab train`: what can be refused is refused before anything is begun."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
from painted_flight import write_painted_pictures
from typer.testing import CliRunner, Result

from mmedge_lab.commands.train import train_app


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(train_app, ['detector', *map(str, arguments)])


def test_a_folder_without_pictures_is_refused(tmp_path: Path) -> None:
    (tmp_path / 'set').mkdir()
    done = run(tmp_path / 'set', '--out', tmp_path / 'bundle')
    assert done.exit_code == 1
    assert 'holds no pictures' in done.stderr
    assert not (tmp_path / '.bundle.training').exists()


def test_a_bundle_that_is_there_is_not_replaced(tmp_path: Path) -> None:
    write_painted_pictures(tmp_path / 'set', 1)
    (tmp_path / 'bundle').mkdir()
    (tmp_path / 'bundle/manifest.yaml').write_text('name: mine\n')
    done = run(tmp_path / 'set', '--out', tmp_path / 'bundle')
    assert done.exit_code == 1
    assert 'exists already' in done.stderr
    assert (tmp_path / 'bundle/manifest.yaml').read_text() == 'name: mine\n'


@pytest.mark.skipif(
    importlib.util.find_spec('torch') is not None, reason='torch is installed in this environment'
)
def test_without_torch_it_is_said_what_brings_it(tmp_path: Path) -> None:
    write_painted_pictures(tmp_path / 'set', 1)
    done = run(tmp_path / 'set', '--out', tmp_path / 'bundle')
    assert done.exit_code == 1
    assert './mmedge lab train installs' in done.stderr
    assert not (tmp_path / 'bundle').exists()
