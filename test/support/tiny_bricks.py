"""Two bricks of a model that hand embeddings on through a ring: a vision encoder and a decoder.

As a program: PYTHONPATH=.:test/support python test/support/tiny_bricks.py encode FOLDER COUNT
puts embeddings into a ring and prints where, and `costs` measures binding beside copying.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime

from mmedge_ros.transport.picture_ring import RingReader, RingWriter, Written
from mmedge_ros.transport.ring_layout import embedding_header, embedding_of

PATCH, WIDTH, CLASSES = 16, 256, 5
VISION, DECODER = 'vision.onnx', 'decoder.onnx'


def write_tiny_bricks(folder: Path) -> Path:
    """Write a vision encoder (a token per patch of 16 x 16 px) and a decoder of its tokens."""
    from onnx import helper
    from tiny_graph import write_graph

    random = np.random.default_rng(5)
    nodes = [
        helper.make_node(
            'Conv', ['picture', 'w'], ['map'], kernel_shape=[PATCH] * 2, strides=[PATCH] * 2
        ),
        helper.make_node('Reshape', ['map', 'shape'], ['rows']),
        helper.make_node('Transpose', ['rows'], ['embedding'], perm=[1, 0]),
    ]
    constants = {
        'w': random.normal(0, 0.1, (WIDTH, 1, PATCH, PATCH)).astype(np.float32),
        'shape': np.array([WIDTH, -1]),
    }
    write_graph(
        folder / VISION,
        nodes,
        {'picture': (1, 1, 'height', 'width')},  # type: ignore[dict-item]
        {'embedding': ('tokens', WIDTH)},  # type: ignore[dict-item]
        constants,
    )
    nodes = [
        helper.make_node('MatMul', ['embedding', 'head'], ['scores']),
        helper.make_node('ReduceMean', ['scores'], ['answer'], axes=[0], keepdims=0),
    ]
    head = random.normal(0, 1, (WIDTH, CLASSES)).astype(np.float32)
    write_graph(
        folder / DECODER,
        nodes,
        {'embedding': ('tokens', WIDTH)},  # type: ignore[dict-item]
        {'answer': (CLASSES,)},
        {'head': head},
    )
    return folder


def opened(path: Path) -> Any:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(str(path), options, providers=['CPUExecutionProvider'])


def picture(number: int, side: int) -> np.ndarray:
    values = np.random.default_rng(number).random((1, 1, side, side), np.float32)
    return np.ascontiguousarray(values)


def encode_in_place(vision: Any, writer: RingWriter, given: np.ndarray) -> Written | None:
    """Have the encoder write its embedding into a slot."""
    tokens = given.size // PATCH**2
    size = 4 * tokens * WIDTH
    slot = writer.claim(size, tokens, patience=10.0)
    assert slot is not None
    binding = vision.io_binding()
    binding.bind_cpu_input('picture', given)
    address = writer.view(slot, size).ctypes.data
    binding.bind_output('embedding', 'cpu', 0, np.float32, (tokens, WIDTH), address)
    vision.run_with_iobinding(binding)
    return writer.publish(slot, embedding_header(1, tokens, WIDTH), size)


def decode_in_place(decoder: Any, reader: RingReader, at: Written) -> np.ndarray:
    """Have the decoder read its input from the slot."""
    with reader.bind(*at, lease=10.0) as content:
        assert content is not None
        embedding = embedding_of(content)
        binding = decoder.io_binding()
        binding.bind_input(
            'embedding', 'cpu', 0, np.float32, embedding.shape, embedding.ctypes.data
        )
        binding.bind_output('answer', 'cpu')
        decoder.run_with_iobinding(binding)
        answer: np.ndarray = binding.copy_outputs_to_cpu()[0]
    return answer


def encode_and_copy(vision: Any, writer: RingWriter, given: np.ndarray) -> Written | None:
    (embedding,) = vision.run(None, {'picture': given})
    tokens = len(embedding)
    data = np.ascontiguousarray(embedding).reshape(-1).view(np.uint8)
    return writer.write(data, embedding_header(1, tokens, WIDTH), 10.0)


def copy_and_decode(decoder: Any, reader: RingReader, at: Written) -> np.ndarray:
    copied = reader.copy(*at)
    assert copied is not None
    embedding = np.frombuffer(copied[1], np.float32).reshape(-1, WIDTH)
    (answer,) = decoder.run(None, {'embedding': embedding})
    return np.asarray(answer)


def encode_until_done(folder: Path, count: int) -> None:
    """Encode pictures of 1 to 16 patches, within a budget of 20 tokens."""
    vision = opened(folder / VISION)
    writer = RingWriter(4 * 16 * WIDTH, 4, token_budget=20)
    print(writer.name, flush=True)
    sys.stdin.readline()
    for number in range(count):
        written = encode_in_place(vision, writer, picture(number, PATCH * (1 + number % 4)))
        assert written is not None
        print(*written, flush=True)
    sys.stdin.readline()
    print(writer.counts.dropped, flush=True)


def costs(folder: Path, way: str, count: int, side: int) -> dict[str, float]:
    """Measure what handing an embedding on costs beside running both bricks.

    :return: processor time per embedding (ms), and the peak of memory above that of
        the loaded bricks, with the slots of the ring (MB)
    """
    tokens = (side // PATCH) ** 2
    vision, decoder = opened(folder / VISION), opened(folder / DECODER)
    writer = RingWriter(4 * tokens * WIDTH, 2, token_budget=2 * tokens)
    reader = RingReader(writer.name)
    given = picture(1, side)
    encode, decode = (
        (encode_in_place, decode_in_place) if way == 'bind' else (encode_and_copy, copy_and_decode)
    )
    # Forgets the peak of loading (proc(5)).
    Path('/proc/self/clear_refs').write_text('5')
    before = _memory_kb('VmRSS')
    begun = time.process_time()
    for _ in range(count):
        at = encode(vision, writer, given)
        assert at is not None
        decode(decoder, reader, at)
    spent = time.process_time() - begun
    grown = _memory_kb('VmHWM') - before
    return {
        'embedding_mb': 4 * tokens * WIDTH / 1e6,
        'processor_ms': 1e3 * spent / count,
        'memory_mb': grown * 1024 / 1e6,
    }


def _memory_kb(name: str) -> int:
    status = Path('/proc/self/status').read_text()
    return int(status.split(f'{name}:')[1].split()[0])


if __name__ == '__main__':
    what, folder, *numbers = sys.argv[1:]
    if what == 'encode':
        encode_until_done(Path(folder), int(numbers[0]))
    else:
        print(json.dumps(costs(Path(folder), numbers[0], int(numbers[1]), int(numbers[2]))))
