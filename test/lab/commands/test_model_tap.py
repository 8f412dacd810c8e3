"""`mmedge lab model tap`: what it prints, and how it ends where something is wrong."""

from __future__ import annotations

import builtins
from pathlib import Path
from typing import Any

import pytest
from hand_made_classifiers import residual_classifier, write_model, write_pictures
from typer.testing import CliRunner, Result

from mmedge_lab.commands.model import model_app
from mmedge_ros.encoding.classifier_description import describe_classifier


@pytest.fixture(autouse=True)
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv('COLUMNS', '200')


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return write_model(tmp_path / 'model.onnx', residual_classifier())


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(model_app, ['tap', *map(str, arguments)])


def test_stages_figures_and_the_path_of_the_bundle_are_printed(
    tmp_path: Path, model: Path
) -> None:
    pictures, out = write_pictures(tmp_path / 'pictures', 42), tmp_path / 'bundle'
    done = run(model, '--out', out, '--classes', pictures)
    assert done.exit_code == 0, done.stderr
    title, *rows, path = done.stdout.splitlines()
    assert title.split() == [
        'stage',
        'work',
        'time',
        'values',
        'of',
        'its',
        'tap',
        'leave',
        'there',
    ]
    assert [row.split()[0].strip(',') for row in rows] == ['1', '2', '3', '4']
    assert [row.split()[5] for row in rows[:3]] == ['16', '16', '24']
    assert path == str(out)
    assert '112 pictures fitted, 56 held out' in done.stderr
    assert '% without the memory' in done.stderr
    assert 'at 3 places only, not at 4' in done.stderr
    assert 'never left early' not in done.stderr
    assert describe_classifier(out) is not None


def test_too_few_pictures_to_prove_anything_are_said_to_be_so(tmp_path: Path, model: Path) -> None:
    pictures = write_pictures(tmp_path / 'pictures', 3)
    done = run(model, '--out', tmp_path / 'bundle', '--classes', pictures, '--taps', '2')
    assert done.exit_code == 0, done.stderr
    assert 'never left early; 4 held-out pictures cannot prove a share of 0.02' in done.stderr


def test_a_broken_model_ends_with_a_sentence_and_nothing_is_written(tmp_path: Path) -> None:
    broken, pictures = tmp_path / 'broken.onnx', write_pictures(tmp_path / 'pictures', 3)
    broken.write_bytes(b'no model')
    done = run(broken, '--out', tmp_path / 'out/bundle', '--classes', pictures)
    assert (done.exit_code, done.stdout) == (1, '')
    assert 'is no ONNX model' in done.stderr
    assert 'Traceback' not in done.stderr
    assert not list((tmp_path / 'out').iterdir())


@pytest.mark.parametrize(
    ('name', 'value'),
    [
        ('--size', '32'),
        ('--size', '٣x4'),
        ('--mean', '0.5'),
        ('--mean', '1,2,nan'),
        ('--deviation', '1,0,1'),
        ('--taps', '0'),
        ('--error', '0.7'),
    ],
)
def test_options_that_do_not_read_as_they_should_are_named(
    tmp_path: Path, model: Path, name: str, value: str
) -> None:
    done = run(model, '--out', tmp_path / 'out', '--classes', tmp_path, name, value)
    assert done.exit_code == 2
    assert name in done.stderr


def test_without_onnx_the_command_says_how_to_get_it(
    tmp_path: Path, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = builtins.__import__

    def without_onnx(name: str, *rest: Any, **more: Any) -> Any:
        if name.split('.')[0] == 'onnx':
            raise ModuleNotFoundError(f'No module named {name!r}', name='onnx')
        return real(name, *rest, **more)

    monkeypatch.setattr(builtins, '__import__', without_onnx)
    done = run(model, '--out', tmp_path / 'out', '--classes', tmp_path)
    assert done.exit_code == 1
    assert 'onnx is not installed; ./mmedge install train' in done.stderr
