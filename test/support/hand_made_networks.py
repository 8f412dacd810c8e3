"""Little networks in ultralytics' formats: they see one box, whatever the picture."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper
from tiny_graph import write_graph

SIZE = (416, 320)
_CELLS = 52 * 40 + 26 * 20 + 13 * 10
# In pixels of the input.
BOX = (100.0, 60.0, 160.0, 240.0)


def ultralytics_network(path: Path, names: tuple[str, ...], boxes: int = 1) -> Path:
    """Write a plain head (1, 4 + classes, cells): every class is seen at ``boxes`` places."""
    answer = np.zeros((1, 4 + len(names), _CELLS), np.float32)
    x0, y0, x1, y1 = BOX
    for cell in range(boxes):
        # Apart, unless there is only one.
        shift = 3.0 * cell
        size = (x1 - x0, y1 - y0) if boxes == 1 else (2.0, 2.0)
        answer[0, :4, cell] = ((x0 + x1) / 2 + shift, (y0 + y1) / 2, *size)
        answer[0, 4:, cell] = 0.9
    if len(names) > 1:
        # The classes see the same object from neighbouring cells.
        answer[0, :, 1] = answer[0, :, 0]
        answer[0, 4, 1], answer[0, 5, 0] = 0.0, 0.0
    return _constant(path, answer, {'names': str(dict(enumerate(names)))})


def endless_network(path: Path) -> Path:
    """Write a network that counts on for years."""
    body = helper.make_graph(
        [
            helper.make_node('Identity', ['going'], ['goes']),
            helper.make_node('Add', ['x', 'x'], ['y']),
        ],
        'body',
        [
            helper.make_tensor_value_info('n', TensorProto.INT64, []),
            helper.make_tensor_value_info('going', TensorProto.BOOL, []),
            helper.make_tensor_value_info('x', TensorProto.FLOAT, [1, 3, 320, 416]),
        ],
        [
            helper.make_tensor_value_info('goes', TensorProto.BOOL, []),
            helper.make_tensor_value_info('y', TensorProto.FLOAT, [1, 3, 320, 416]),
        ],
    )
    graph = helper.make_graph(
        [helper.make_node('Loop', ['count', 'yes', 'images'], ['output'], body=body)],
        'endless',
        [helper.make_tensor_value_info('images', TensorProto.FLOAT, [1, 3, 320, 416])],
        [helper.make_tensor_value_info('output', TensorProto.FLOAT, [1, 3, 320, 416])],
        [
            numpy_helper.from_array(np.array(1 << 60), 'count'),
            numpy_helper.from_array(np.array(True), 'yes'),
        ],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid('', 13)], ir_version=8)
    onnx.save(model, str(path))
    return path


def _constant(path: Path, answer: NDArray[np.float32], metadata: dict[str, str]) -> Path:
    node = helper.make_node('Constant', [], ['output'], value=numpy_helper.from_array(answer))
    images = {'images': (1, 3, SIZE[1], SIZE[0])}
    return write_graph(path, [node], images, {'output': answer.shape}, metadata=metadata)
