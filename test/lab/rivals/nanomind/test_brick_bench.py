"""What language models take, on a server that pretends; the command measures bricks."""

from __future__ import annotations

from pathlib import Path

import pytest
from fake_model_process import COMMAND
from tiny_bundle import write_tiny_bundle

from mmedge_lab.judging.bench import BenchRequest, Subject, UnmeasuredError
from mmedge_lab.rivals.nanomind.brick_bench import answer_cost, bench
from mmedge_ros.questions.model_server import ModelFiles, ModelServer


def test_an_answer_is_measured_and_a_model_that_ends_is_named(tmp_path: Path) -> None:
    model = tmp_path / 'a.gguf'
    model.write_bytes(b'GGUF and more')

    def measured(behaviour: str) -> dict[str, object]:
        def server_of(files: ModelFiles, threads: int) -> ModelServer:
            return ModelServer(files, threads, command=(*COMMAND, behaviour))

        return dict(answer_cost(model, Subject('0'), server_of))

    sums = measured('answers')
    assert min(sums['load_ms'], sums['memory_mb']) > 0.0  # type: ignore[type-var]
    with pytest.raises(UnmeasuredError, match=r'ended while a\.gguf loaded'):
        measured('ends')
    bundle = write_tiny_bundle(tmp_path / 'tiny')
    assert bench(BenchRequest((bundle, model))).rows[-1].name == 'a.gguf'
