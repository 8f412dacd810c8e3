"""The bench of language models, from the command line to its figures."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest
from fake_model_process import COMMAND
from tiny_gguf import write_tiny_gguf, write_tiny_projector
from typer.testing import CliRunner

from mmedge_lab.commands.bench import bench_app
from mmedge_lab.rivals.mmedge.model_bench import ModelBench, run_model_bench
from mmedge_ros.questions.model_server import ModelFiles, ModelServer


def model_in(folder: Path, name: str) -> Path:
    path = folder / name
    path.write_bytes(b'GGUF and more')
    return path


def test_every_model_is_measured_with_every_projector_and_number_of_threads(
    tmp_path: Path,
) -> None:
    asked: list[tuple[str, str, int]] = []

    def server_of(files: ModelFiles, threads: int) -> ModelServer:
        assert files.projector is not None
        asked.append((files.model.name, files.projector.name, threads))
        behaviour = 'ends' if files.model.name == 'b' else 'answers'
        return ModelServer(files, threads, command=(*COMMAND, behaviour))

    models = [model_in(tmp_path, name) for name in 'ab']
    projectors = [model_in(tmp_path, name) for name in ('four', 'eight')]
    bench = ModelBench(models, projectors, (1, 2), rounds=1)
    report = run_model_bench(bench, lambda *_: None, server_of)
    ways = [(row['model'], row['projector'], row['threads']) for row in report['rows']]
    assert ways == [('a', projector, n) for projector in ('four', 'eight') for n in (1, 2)]
    assert asked[:4] == ways
    assert all(row['load_ms'] > 0.0 and row['memory_mb'] > 0.0 for row in report['rows'])
    assert report['problems'] == ['the model server ended while b loaded'] * 4


def test_where_no_model_can_be_measured_one_line_says_why(tmp_path: Path) -> None:
    path = tmp_path / 'text.gguf'
    path.write_text('hello')
    given = ['model', str(path), '--out', str(tmp_path / 'out')]
    result = CliRunner().invoke(bench_app, given)
    assert result.exit_code == 1
    assert 'text.gguf: no GGUF file' in ' '.join(result.stderr.split())
    assert not list((tmp_path / 'out').glob('*'))


@pytest.mark.parametrize('threads', ['', '0', '1,', 'two', '9999', '-1'])
def test_numbers_of_threads_that_are_none_are_refused(tmp_path: Path, threads: str) -> None:
    given = ['model', str(model_in(tmp_path, 'a')), '--threads', threads]
    result = CliRunner().invoke(bench_app, given)
    assert result.exit_code == 2
    assert '--threads' in result.stderr


@pytest.mark.skipif(
    importlib.util.find_spec('xllamacpp') is None, reason='xllamacpp is not installed'
)
def test_a_real_model_is_measured_with_and_without_eyes(tmp_path: Path) -> None:
    model = write_tiny_gguf(tmp_path / 'tiny.gguf')
    eye = write_tiny_projector(tmp_path / 'eye.gguf')
    out = tmp_path / 'out'
    given = ['model', str(model), '--rounds', '1', '--tokens', '8', '--out', str(out)]
    for more in ([], ['--mmproj', str(eye)]):
        result = CliRunner().invoke(bench_app, [*given, *more])
        assert result.exit_code == 0, result.output
        (row,) = json.loads((out / 'model.json').read_text())['rows']
        assert min(row['load_ms'], row['first_token_ms'], row['tokens_per_s']) > 0.0
    assert 'eye.gguf' in result.stdout
