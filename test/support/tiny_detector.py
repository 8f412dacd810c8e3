"""Writes a little ONNX network that finds coloured rectangles, for tests without weights.

The network has YOLOX's interface: input ``images`` [1, 3, H, W], BGR 0..255; output
[1, cells, 6]. What it detects is exact and always the same: for each of the channels blue,
green and red, the bounding box of all pixels above ``BRIGHT`` in that channel, as a
``person`` with score ``SCORE``. Three channels find the same box around white pixels, which
suppression makes one; a pure blue, a pure green and a pure red rectangle are three people.
Nothing is found where no pixel is bright. The box is exact to the input's pixel.

A run takes about 0.3 ms at the default size, into which a 4:3 picture fits without padding.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper
from tiny_graph import write_graph

BRIGHT = 200.0
SCORE = 0.9
_FAR = 1e6
_CHANNELS = 3


def write_tiny_detector(
    path: Path,
    width: int = 320,
    height: int = 256,
    *,
    score: float = SCORE,
    label: str = 'person',
) -> Path:
    """Write the network to ``path`` and return it.

    :param width: of the input in pixels, a multiple of 32; so is ``height``
    """
    cells = sum((width // stride) * (height // stride) for stride in (8, 16, 32))
    constants = {
        'bright': np.float32(BRIGHT),
        'far': np.float32(_FAR),
        'one': np.float32(1.0),
        'eight': np.float32(8.0),
        'two': np.float32(2.0),
        # Box i is put out by cell i of stride 8, whose corner lies at column i, row 0.
        'corner': np.arange(_CHANNELS, dtype=np.float32).reshape(1, _CHANNELS, 1),
        'score': np.full((1, _CHANNELS, 1), score, np.float32),
        'ones': np.ones((1, _CHANNELS, 1), np.float32),
        'rest': np.zeros((1, cells - _CHANNELS, 6), np.float32),
        'columns': np.arange(width, dtype=np.float32).reshape(1, 1, width),
        'rows': np.arange(height, dtype=np.float32).reshape(1, 1, height),
    }
    nodes = [
        helper.make_node('Greater', ['images', 'bright'], ['is_bright']),
        helper.make_node('Cast', ['is_bright'], ['mask'], to=TensorProto.FLOAT),
        *_extent('columns', 2, 'x'),
        *_extent('rows', 3, 'y'),
        helper.make_node('Sub', ['x_centre', 'corner'], ['x']),
        helper.make_node('Mul', ['x_any', 'score'], ['objectness']),
        helper.make_node(
            'Concat', ['x', 'y_centre', 'x_log', 'y_log', 'objectness', 'ones'], ['found'], axis=2
        ),
        helper.make_node('Concat', ['found', 'rest'], ['output'], axis=1),
    ]
    shapes = {'images': [1, 3, height, width]}
    outputs = {'output': [1, cells, 6]}
    return write_graph(path, nodes, shapes, outputs, constants, {'names': str({0: label})})


def _extent(index: str, across: int, axis: str) -> list[onnx.NodeProto]:
    """Nodes for the extent of the bright pixels along one axis, in YOLOX's raw terms.

    ``<axis>_centre`` is the middle in cells of 8 px, ``<axis>_log`` the logarithm of the size
    in cells, ``<axis>_any`` 1 where a pixel is bright and else 0; each (1, 3, 1).
    """
    steps = (
        ('ReduceMax', ['mask'], 'line', {'axes': [across], 'keepdims': 0}),
        ('Mul', [index, 'line'], 'set', {}),
        ('ReduceMax', ['set'], 'last', {'axes': [2]}),
        ('Sub', ['one', 'line'], 'unset', {}),
        ('Mul', ['unset', 'far'], 'pushed', {}),
        ('Add', ['set', 'pushed'], 'candidates', {}),
        ('ReduceMin', ['candidates'], 'first', {'axes': [2]}),
        ('Add', ['last', 'one'], 'end', {}),
        ('Add', ['first', 'end'], 'sum', {}),
        ('Div', ['sum', 'two'], 'middle', {}),
        ('Div', ['middle', 'eight'], 'centre', {}),
        ('Sub', ['end', 'first'], 'size', {}),
        ('Max', ['size', 'one'], 'positive', {}),
        ('Div', ['positive', 'eight'], 'cells', {}),
        ('Log', ['cells'], 'log', {}),
        ('ReduceMax', ['line'], 'any', {'axes': [2]}),
    )
    own = {'line', 'set', 'last', 'unset', 'pushed', 'candidates', 'first', 'end', 'sum'}
    own |= {'middle', 'size', 'positive', 'cells'}
    return [
        helper.make_node(
            kind,
            [f'{axis}_{name}' if name in own else name for name in inputs],
            [f'{axis}_{output}'],
            **attributes,
        )
        for kind, inputs, output, attributes in steps
    ]
