"""`mmedge model`: listing, showing, fetching with consent, judging."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from tiny_detector import write_tiny_detector
from typer.testing import CliRunner, Result

from mmedge_ros.commands.model import model_app, run_fetch
from mmedge_ros.encoding.bundle import default_model
from mmedge_ros.encoding.bundle.registry import KNOWN_MODELS, KnownModel


@pytest.fixture(autouse=True)
def home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A machine without models; returns where fetched ones go."""
    monkeypatch.setattr(default_model, '_SHIPPED', (tmp_path / 'shipped',))
    monkeypatch.setenv('XDG_DATA_HOME', str(tmp_path / 'home'))
    monkeypatch.setenv('COLUMNS', '200')
    for name in ('MMEDGE_DATA', 'AMENT_PREFIX_PATH'):
        monkeypatch.delenv(name, raising=False)
    return tmp_path / 'home/mmedge_ros/models'


@pytest.fixture
def carried(tmp_path: Path) -> Path:
    """A network that somebody brought here as a file."""
    return write_tiny_detector(tmp_path / 'carried.onnx')


@pytest.fixture
def model(carried: Path) -> KnownModel:
    content = carried.read_bytes()
    digest = hashlib.sha256(content).hexdigest()
    return KnownModel(
        'tiny', 'a tiny one', 'https://x.invalid', len(content), digest, 'MIT', 'x', 'y'
    )


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(model_app, [str(argument) for argument in arguments])


def test_the_list_names_what_is_here_and_what_can_be_fetched(
    home: Path, model: KnownModel, carried: Path
) -> None:
    run_fetch(model, home, carried, agreed=True)
    broken = home / 'broken'
    broken.mkdir()
    (broken / 'manifest.yaml').write_text('nonsense')
    done = run('list')
    assert done.exit_code == 0
    rows = {line.split()[0]: line for line in done.stdout.splitlines()}
    assert str(home / 'tiny') in rows['tiny']
    assert 'damaged' in rows['broken']
    assert 'fetch: 3.7 MB' in rows['yolox_nano']


def test_what_is_fetched_is_shown_first_and_then_asked_for(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    nano = KNOWN_MODELS[0]
    done = run('fetch', 'yolox_nano')  # standard input is no terminal: nobody can agree
    assert done.exit_code == 1
    assert done.stdout == ''
    for fact in (nano.url, str(nano.size_bytes), nano.sha256, 'Apache-2.0', '--yes'):
        assert fact in done.stderr
    assert not home.exists()


def test_a_file_that_is_here_is_installed_and_found_by_its_name(
    home: Path, model: KnownModel, carried: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run_fetch(model, home, carried, agreed=True)
    assert capsys.readouterr().out == f'{home / "tiny"}\n'
    shown = run('show', 'tiny')
    assert shown.exit_code == 0
    assert 'domain: real' in shown.stdout
    run_fetch(model, home, agreed=True)  # already here: the network is not touched
    assert 'already here' in capsys.readouterr().err


def test_a_wrong_file_ends_with_a_sentence(home: Path, carried: Path) -> None:
    done = run('fetch', 'yolox_nano', '--yes', '--from', carried)
    assert done.exit_code == 1
    assert 'of 3659407 bytes' in done.stderr
    assert 'Traceback' not in done.stderr


@pytest.mark.parametrize('command', ['show', 'fetch'])
def test_an_unknown_name_is_told_in_a_sentence(command: str) -> None:
    done = run(command, 'yolox')
    assert done.exit_code == 1
    assert "'yolox'" in done.stderr


def test_a_changed_weight_file_is_shown_to_be_none_of_the_bundle(
    home: Path, model: KnownModel, carried: Path
) -> None:
    run_fetch(model, home, carried, agreed=True)
    (home / 'tiny/tiny.onnx').write_bytes(b'x' * model.size_bytes)
    done = run('show', 'tiny')
    assert done.exit_code == 1
    assert 'SHA-256' in done.stderr
