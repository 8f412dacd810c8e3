"""What language models take, measured on servers that pretend."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
from fake_model_process import COMMAND
from tiny_gguf import write_tiny_gguf, write_tiny_projector

from mmedge_lab.judging import EvaluationError
from mmedge_lab.judging.bench import BenchRequest, Subject, UnmeasuredError
from mmedge_lab.rivals.mmedge.model_bench import bench, measure
from mmedge_ros.questions.model_server import ModelFiles, ModelServer


def model_in(folder: Path, name: str) -> Path:
    path = folder / name
    path.write_bytes(b'GGUF and more')
    return path


def test_every_model_is_a_row_with_every_projector_and_number_of_threads(tmp_path: Path) -> None:
    models = tuple(model_in(tmp_path, name) for name in 'ab')
    eyes = ','.join(str(model_in(tmp_path, name)) for name in ('four', 'eight'))
    names = [row.name for row in bench(BenchRequest(models), mmproj=eyes, threads='1,2').rows]
    assert len(names) == 8
    assert names[:3] == [
        'a with four, 1 threads',
        'a with four, 2 threads',
        'a with eight, 1 threads',
    ]
    assert bench(BenchRequest(models)).rows[0].name == 'a, 1 threads'


def test_an_answer_is_measured_and_a_model_that_ends_is_named(tmp_path: Path) -> None:
    files = ModelFiles(model_in(tmp_path, 'a'), model_in(tmp_path, 'eye'))

    def measured(behaviour: str) -> dict[str, object]:
        def server_of(files: ModelFiles, threads: int) -> ModelServer:
            return ModelServer(files, threads, command=(*COMMAND, behaviour))

        return dict(measure(files, 1, 8, Subject('0'), server_of))

    sums = measured('answers')
    assert min(sums['load'] + sums['memory']) > 0.0  # type: ignore[operator]
    with pytest.raises(UnmeasuredError, match='the model server ended while a loaded'):
        measured('ends')


@pytest.mark.parametrize('threads', ['', '0', '1,', 'two', '9999', '-1', '1.5'])
def test_numbers_of_threads_that_are_none_are_refused(tmp_path: Path, threads: str) -> None:
    with pytest.raises(EvaluationError, match='number'):
        bench(BenchRequest((model_in(tmp_path, 'a'),)), threads=threads)


@pytest.mark.skipif(
    importlib.util.find_spec('xllamacpp') is None, reason='xllamacpp is not installed'
)
def test_a_real_model_is_measured_with_and_without_eyes(tmp_path: Path) -> None:
    model = write_tiny_gguf(tmp_path / 'tiny.gguf')
    for eye in (None, write_tiny_projector(tmp_path / 'eye.gguf')):
        sums = measure(ModelFiles(model, eye), 1, 8, Subject('0'))
        assert min(sums['load'] + sums['first_token'] + sums['tokens']) > 0.0  # type: ignore[operator]
