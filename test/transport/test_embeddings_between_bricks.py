"""A vision brick writes embeddings where a decoder brick reads them: in the slots of a ring."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tiny_bricks
from tiny_bricks import CLASSES, DECODER, PATCH, VISION, opened, picture, write_tiny_bricks

from mmedge_ros.transport.picture_ring import RingReader, Written

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope='module')
def bricks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_bricks(tmp_path_factory.mktemp('bricks'))


@contextmanager
def brick_process(*arguments: object) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, tiny_bricks.__file__, *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, 'PYTHONPATH': f'{ROOT}:{ROOT}/test/support'},
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def test_a_decoder_reads_what_an_encoder_in_another_process_wrote_in_place(bricks: Path) -> None:
    count = 40
    vision, decoder = opened(bricks / VISION), opened(bricks / DECODER)
    with brick_process('encode', bricks, count) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        reader = RingReader(process.stdout.readline().strip())
        process.stdin.write('go\n')
        process.stdin.flush()
        for number in range(count):
            slot, sequence = map(int, process.stdout.readline().split())
            answer = tiny_bricks.decode_in_place(decoder, reader, Written(slot, sequence))
            given = picture(number, PATCH * (1 + number % 4))
            (embedding,) = vision.run(None, {'picture': given})
            (expected,) = decoder.run(None, {'embedding': embedding})
            assert answer.shape == (CLASSES,)
            assert np.allclose(answer, expected, rtol=1e-4, atol=1e-5)
        process.stdin.write('done\n')
        process.stdin.flush()
        # Replay waits for the tokens of what is not read yet instead of dropping it.
        assert process.stdout.readline().strip() == '0'
    assert (reader.counts.read, reader.counts.missed, reader.counts.torn) == (count, 0, 0)
    reader.close()


@pytest.mark.parametrize('way', ['bind', 'copy'])
def test_the_cost_of_handing_an_embedding_on_can_be_measured(bricks: Path, way: str) -> None:
    with brick_process('costs', bricks, way, 3, 512) as process:
        assert process.stdout is not None
        figures: dict[str, Any] = json.loads(process.stdout.read())
    assert figures['embedding_mb'] == pytest.approx(1.05, abs=0.01)
    assert figures['processor_ms'] > 0.0
