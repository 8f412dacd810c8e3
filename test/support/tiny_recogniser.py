"""Writes a little recogniser that names the colour of a crop, for tests without weights.

Its one tap is the mean of each channel (blue, green, red, 0..1) of the crop, of blue a half more,
so that white is blue; its logits are 20 times that. Classes are ``person blue``, ``person green``
and ``dog red``; the attribute is ``light``: ``yes`` where the crop is bright in some channel. The
semantic memory knows each class as its axis.
"""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import yaml
from onnx import helper
from tiny_graph import made_graph

from mmedge_ros.encoding.semantic_memory import SemanticCentres, centres_as_bytes

CLASSES = ('person blue', 'person green', 'dog red')
LABELS = ('person', 'dog')
SIZE = (6, 8)
_WEIGHTS = np.array([[1.5, 1.0, 1.0]], np.float32)


def tiny_centres(threshold: float = 0.2) -> SemanticCentres:
    """Each class lies on its axis."""
    return SemanticCentres(
        (np.eye(3),),
        np.full(3, 10.0),
        (np.zeros(3),),
        (np.eye(3),),
        np.array([threshold]),
    )


def write_tiny_recogniser(
    folder: Path, *, manifest: dict[str, Any] | None = None, threshold: float = 0.2
) -> Path:
    """Add a recogniser to the manifest of a bundle, or write one of its own.

    :param manifest: of the bundle that is there; None for a folder that holds nothing else
    """
    folder.mkdir(parents=True, exist_ok=True)
    files = {
        'recogniser_1.onnx': _first().SerializeToString(),
        'recogniser_2.onnx': _second().SerializeToString(),
        'recogniser.npz': centres_as_bytes(tiny_centres(threshold)),
    }
    for name, content in files.items():
        (folder / name).write_bytes(content)
    entries = {
        name: {'weights': name, 'sha256': sha256(content).hexdigest(), 'bytes': len(content)}
        for name, content in files.items()
    }
    section = {
        'format': 1,
        'classes': list(CLASSES),
        'labels': list(LABELS),
        'input': {
            'size': list(SIZE),
            'mean': [0.0, 0.0, 0.0],
            'deviation': [1.0, 1.0, 1.0],
            'rgb': False,
            'margin': 0.0,
        },
        'stages': [entries['recogniser_1.onnx'], entries['recogniser_2.onnx']],
        'memory': entries['recogniser.npz'],
        'attributes': {'light': ['no', 'yes']},
    }
    content = {**(manifest or {'name': folder.name}), 'recogniser': section}
    (folder / 'manifest.yaml').write_text(yaml.safe_dump(content, sort_keys=False))
    return folder


def _first() -> onnx.ModelProto:
    nodes = [
        helper.make_node('ReduceMean', ['images', 'axes'], ['means'], keepdims=0),
        helper.make_node('Mul', ['means', 'weights'], ['tap']),
        helper.make_node('Identity', ['images'], ['pixels']),
        # Its own head: the classes, and that nothing is light.
        helper.make_node('Concat', ['tap', 'dark'], ['exit_1'], axis=1),
    ]
    return made_graph(
        nodes,
        {'images': [1, 3, SIZE[1], SIZE[0]]},
        {'tap': [1, 3], 'exit_1': [1, 5], 'pixels': [1, 3, SIZE[1], SIZE[0]]},
        {
            'axes': np.array([2, 3], np.int64),
            'weights': _WEIGHTS,
            'dark': np.array([[1.0, 0.0]], np.float32),
        },
        opset=18,
    )


def _second() -> onnx.ModelProto:
    nodes = [
        helper.make_node('ReduceMean', ['pixels', 'axes'], ['means'], keepdims=0),
        helper.make_node('Mul', ['means', 'weights'], ['logits']),
        helper.make_node('ReduceMax', ['logits', 'channels'], ['brightest'], keepdims=1),
        helper.make_node('Concat', ['ten', 'brightest'], ['attributes'], axis=1),
    ]
    return made_graph(
        nodes,
        {'pixels': [1, 3, SIZE[1], SIZE[0]]},
        {'logits': [1, 3], 'attributes': [1, 2]},
        {
            'axes': np.array([2, 3], np.int64),
            'channels': np.array([1], np.int64),
            'weights': 20.0 * _WEIGHTS,
            'ten': np.array([[10.0]], np.float32),
        },
        opset=18,
    )
