"""Writes a little pair of networks that share a space of colours, for tests without weights.

A picture lies at its mean colour (red, green, blue, 0..1), and so do words: `WORDS` says which
colour each has, among them words that the vocabulary of a flight memory lacks.
"""

from __future__ import annotations

import json
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from onnx import TensorProto, helper
from tiny_graph import made_graph

WORDS = {
    'red': (1.0, 0.0, 0.0),
    'green': (0.0, 1.0, 0.0),
    'blue': (0.0, 0.0, 1.0),
    'umbrella': (1.0, 0.0, 1.0),
    'meadow': (0.0, 1.0, 0.2),
}
SIZE, LENGTH = (8, 6), 5
_UNKNOWN = '[UNK]'
_FLOAT, _INT64 = TensorProto.FLOAT, TensorProto.INT64


def write_tiny_pair(
    folder: Path,
    *,
    files: dict[str, bytes] | None = None,
    section: dict[str, Any] | None = None,
    **manifest: Any,
) -> Path:
    """Write the folder of a pair.

    :param files: other contents of its files, by name
    :param section: other entries of ``memory_encoder``; None leaves one out
    :param manifest: other entries of the manifest
    """
    folder.mkdir(parents=True, exist_ok=True)
    contents = {
        'image.onnx': image_network(),
        'text.onnx': text_network(),
        'tokenizer.json': tokenizer(),
        **(files or {}),
    }
    for name, content in contents.items():
        (folder / name).write_bytes(content)
    entries = {
        name: {'weights': name, 'sha256': sha256(content).hexdigest()}
        for name, content in contents.items()
    }
    written = {
        'format': 1,
        'image': entries['image.onnx'],
        'text': entries['text.onnx'],
        'tokenizer': entries['tokenizer.json'],
        'input': {'size': list(SIZE), 'mean': [0.0, 0.0, 0.0], 'deviation': [1.0, 1.0, 1.0]},
        'tokens': {'length': LENGTH},
        'prompt': 'a photo of {}',
        **(section or {}),
    }
    written = {name: entry for name, entry in written.items() if entry is not None}
    content = {'name': folder.name, 'memory_encoder': written, **manifest}
    (folder / 'manifest.yaml').write_text(yaml.safe_dump(content, sort_keys=False))
    return folder


@cache
def image_network(
    *,
    name: str = 'pixel_values',
    shape: tuple[Any, ...] = ('batch', 3, 'height', 'width'),
    kind: int = _FLOAT,
    values: int = 3,
    factor: float = 1.0,
) -> bytes:
    """The mean colour, times ``factor``, as the first of ``values`` values."""
    onto = factor * np.eye(3, values, dtype=np.float32)
    nodes = [
        helper.make_node('Cast', [name], ['floats'], to=_FLOAT),
        helper.make_node('Identity', ['floats'], ['last_hidden_state']),
        helper.make_node('ReduceMean', ['floats', 'axes'], ['colours'], keepdims=0),
        helper.make_node('MatMul', ['colours', 'onto'], ['image_embeds']),
    ]
    model = made_graph(
        nodes,
        {name: shape},
        {'last_hidden_state': shape, 'image_embeds': (shape[0], values)},
        {'axes': np.array([2, 3], np.int64), 'onto': onto},
        kinds={name: kind},
        opset=18,
    )
    return bytes(model.SerializeToString())


@cache
def text_network(
    *,
    name: str = 'input_ids',
    mask: str = 'attention_mask',
    shape: tuple[Any, ...] = ('batch', 'sequence'),
    kind: int = _INT64,
    values: int = 3,
    output: str = 'text_embeds',
) -> bytes:
    """The mean colour of words; those that are unknown, or no words, have none.

    :param mask: name of a second input, which leaves out what fills a text up; '' has none
    """
    table = np.zeros((len(WORDS) + 2, values), np.float32)
    for number, colour in enumerate(WORDS.values(), start=2):
        table[number, :3] = colour[: min(3, values)]
    nodes = [
        helper.make_node('Gather', ['table', name], ['all_words'], axis=0),
        helper.make_node('Cast', [mask or name], ['floats'], to=_FLOAT),
        helper.make_node('Unsqueeze', ['floats', 'last'], ['weights']),
        helper.make_node('Mul', ['all_words', 'weights' if mask else 'one'], ['words']),
        helper.make_node('ReduceMean', ['words', 'axis'], [output], keepdims=0),
    ]
    inputs = [one for one in (name, mask) if one]
    model = made_graph(
        nodes,
        dict.fromkeys(inputs, shape),
        {output: (shape[0], values)},
        {
            'table': table,
            'axis': np.array([1], np.int64),
            'last': np.array([2], np.int64),
            'one': np.array([1.0], np.float32),
        },
        kinds=dict.fromkeys(inputs, kind),
        opset=18,
    )
    return bytes(model.SerializeToString())


def tokenizer(**changes: Any) -> bytes:
    """Words between spaces are tokens; 0 fills up, 1 is every other word."""
    vocabulary = {'[PAD]': 0, _UNKNOWN: 1, **{w: n for n, w in enumerate(WORDS, start=2)}}
    content = {
        'version': '1.0',
        'truncation': None,
        'padding': None,
        'added_tokens': [],
        'normalizer': None,
        'pre_tokenizer': {'type': 'Whitespace'},
        'post_processor': None,
        'decoder': None,
        'model': {'type': 'WordLevel', 'vocab': vocabulary, 'unk_token': _UNKNOWN},
        **changes,
    }
    return json.dumps(content).encode()
